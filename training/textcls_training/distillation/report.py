"""The results on held-out labelled rows of a teacher, the student, and the model without unlabelled texts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from textcls.evaluation.intervals import share
from textcls_training.data.arrays import Float64
from textcls_training.fit.validation import Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutScore:
    """The score of a teacher or model on held-out labelled rows, whose labels it does not know.

    Attributes:
        name: `teacher`, `labels alone`, `student` (with unlabelled texts), or `student with vectors`.
        accuracy: share of right answers; if rows may have several labels, of as many answers as there are labels, the
            most probable of all rows (`textcls_training.fit.validation.RightAnswers`).
        low: the lower end of its 95 % interval (Wilson 1927).
        high: the upper end.
        cross_entropy: mean negative log-likelihood of a row's label, or of all labels, present or not, in nats.
    """

    name: str
    accuracy: float
    low: float
    high: float
    cross_entropy: float

    @classmethod
    def of(cls, name: str, probability_RC: Float64, validation: Validation) -> "HeldOutScore":
        """Score the probabilities of held-out rows, at least one."""
        accuracy = share(*validation.right(probability_RC))
        loss = float(validation.losses(probability_RC).mean())
        return cls(name=name, accuracy=accuracy.value, low=accuracy.low, high=accuracy.high, cross_entropy=loss)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillationReport:
    """The effect of the unlabelled texts.

    Attributes:
        teacher: the name of the teacher that answered them.
        given: the number of unlabelled texts given.
        copies: how many were left out because labelled rows contain the same tokens.
        used: how many were answered.
        weight: the weight of each, a labelled row having 1; 0 if held-out rows preferred the model without them.
        rows: the number of held-out labelled rows.
        scores: the scores on these rows.
        kept: the model that was saved, by the name of its score.
    """

    teacher: str
    given: int
    copies: int
    used: int
    weight: float
    rows: int
    scores: Sequence[HeldOutScore]
    kept: str

    def score(self, name: str) -> HeldOutScore | None:
        """Return the score with that name."""
        return next((score for score in self.scores if score.name == name), None)

    def conclusion(self) -> str:
        """Return the conclusion in one sentence."""
        teacher, kept, alone = map(self.score, (TEACHER, self.kept, LABELS_ALONE))
        if not self.rows and not self.weight:
            return (
                "No row could be held out, so whether the unlabelled texts help is unknown, and the model of "
                "the labelled rows alone was saved; --unlabelled-weight 1 uses the texts anyway."
            )
        if not self.weight:
            return (
                "The unlabelled texts did not help: the model of the labelled rows alone does better on "
                "held-out rows, and was saved."
            )
        if kept is None or alone is None:
            return "The unlabelled texts were used; whether they helped is unknown, since no row could be held out."
        gain = 100 * (kept.accuracy - alone.accuracy)
        helped = f"The unlabelled texts changed the accuracy on held-out rows by {gain:+.1f} points"
        if kept.cross_entropy > alone.cross_entropy:
            helped += f" and raised their cross-entropy by {kept.cross_entropy - alone.cross_entropy:.3f}"
        if teacher is not None and teacher.accuracy < alone.accuracy:
            helped += ", though the teacher itself is worse than the labelled rows alone"
        return f"{helped}; the {self.kept} was saved."

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {**asdict(self), "conclusion": self.conclusion()}


TEACHER: Final = "teacher"
STUDENT: Final = "student"
STUDENT_WITH_VECTORS: Final = "student with vectors"
LABELS_ALONE: Final = "labels alone"
