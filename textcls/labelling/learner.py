"""What a model has learned from the answers so far; this module does not depend on the learner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from textcls.labelling.answers import Annotation


@dataclass(frozen=True, slots=True)
class Learned:
    """What has been learned.

    Attributes:
        answers: the number of answers that it was learned from.
        model: the file of the model; None if there are too few answers for one.
        order: the texts to ask for next, the most informative first.
        held_out: for texts with an answer, whether a model that had not seen them answers the same.
        changed: the share of the texts that are answered differently by the model of half the answers; None if there
            was none.
        hints: for texts, the labels whose names are nearest, the nearest first; used while no model does better.
    """

    answers: int
    model: Path | None
    order: Sequence[int] = ()
    held_out: Mapping[int, bool] = field(default_factory=dict)
    changed: float | None = None
    hints: Mapping[int, Sequence[str]] = field(default_factory=dict)


class Learner(Protocol):
    """Learns in the background, in a process of its own."""

    def learn(self, labels: Sequence[str], answers: Sequence[Annotation]) -> Learned:
        """Learn from answers; this takes seconds.

        Args:
            labels: all labels, including those without an answer.
            answers: the answers.

        Raises:
            TextclsError: nothing could be learned; the message says why.
        """

    def close(self) -> None:
        """End the process."""
