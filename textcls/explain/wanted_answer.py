"""Define which answer is wanted instead of a given one, and how far another answer is from it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from textcls.errors import ConfigError
from textcls.model.classifier import Classifier
from textcls.model.label_paths import contrasted, labels_below
from textcls.model.prediction import Prediction


class _Answer(NamedTuple):
    """A label, or a node above labels, by the numbers of those below it.

    A text is answered with a node if these labels are together more probable than all others; if there may be several
    labels, one is assigned from its threshold on.
    """

    name: str
    numbers: list[int]
    node: bool
    threshold: float

    @classmethod
    def of(cls, classifier: Classifier, name: str, answer: Prediction) -> "_Answer":
        """Return a label or node, with the threshold that it has in an answer."""
        numbers = labels_below(classifier.labels, classifier.tree, name)
        threshold = 0.0 if answer.thresholds is None else float(answer.thresholds[numbers[0]])
        return cls(name, numbers, name not in classifier.labels, threshold)

    def probability(self, answer: Prediction) -> float:
        return float(answer.probabilities[self.numbers].sum())

    def lead(self, answer: Prediction) -> float:
        """Return how far a text is from an answer other than this one; below 0 it has another."""
        others = np.delete(answer.probabilities, self.numbers)
        return _log(self.probability(answer)) - _log(others.sum() if self.node else others.max(initial=0))

    def above_threshold(self, answer: Prediction) -> float:
        """Return how far above its threshold a label is; below 0 it is not assigned."""
        return _log(self.probability(answer)) - _log(self.threshold)

    def holds(self, answer: Prediction) -> bool:
        """Return whether a text has this answer, sure enough or not."""
        if answer.several:
            return self.name in answer.assigned
        return self.lead(answer) > 0 if self.node else self.name == answer.label


@dataclass(frozen=True, slots=True)
class WantedAnswer:
    """What is to be lost, and what is wanted instead.

    Attributes:
        before: what is to be lost: a label, or a node above labels.
        against: what is wanted; None for anything else.
    """

    before: _Answer
    against: _Answer | None

    @classmethod
    def of(cls, classifier: Classifier, answer: Prediction, lost: str | None, against: str | None) -> "WantedAnswer":
        """Return what is wanted instead of an answer, or, if there may be several labels, instead of one of them.

        Args:
            classifier: the model.
            answer: the model's answer.
            lost: with several labels, the one to be lost, by default the most probable; with one label, a node above
                it, by default the answer itself, even if another label is named.
            against: the label, or node, that is wanted; by default any other.

        Raises:
            ConfigError: there is no such label or node, it is not the answer, or the one wanted is.
        """
        before = _Answer.of(classifier, answer.label if lost is None else classifier.known_as(lost), answer)
        if not (answer.several or before.node):
            before = _Answer.of(classifier, answer.label, answer)
        wanted = None if against is None else _Answer.of(classifier, classifier.known_as(against), answer)
        if wanted is not None and wanted.holds(answer):
            raise ConfigError(f"{wanted.name!r} is the answer already; name another label that it might be.")
        contrasted(classifier.labels, classifier.tree, before.name, None if wanted is None else wanted.name)
        if not before.holds(answer):
            has = f"not the answer, with {before.probability(answer):.1%}; name a node of more than half."
            lacks = "not assigned, so that no change can take it away; name a label that is."
            raise ConfigError(f"{before.name!r} is {has if before.node else lacks}")
        return cls(before, wanted)

    def margin(self, answer: Prediction) -> float:
        """Return how far an answer is from what is wanted, in logarithms of probabilities; below 0 it is that."""
        if answer.several:
            # Lost, and the wanted one, if any, assigned.
            lost = self.before.above_threshold(answer)
            return lost if self.against is None else max(lost, -self.against.above_threshold(answer))
        return self.before.lead(answer) if self.against is None else -self.against.lead(answer)

    def told(self, answer: Prediction) -> tuple[str, float, float]:
        """Return the new answer, its probability, and that of what was to be lost."""
        before_score = self.before.probability(answer)
        if self.against is not None and (answer.several or self.against.node):
            return self.against.name, self.against.probability(answer), before_score
        return answer.label, float(answer.probabilities.max()), before_score


def _log(probability: float) -> float:
    return float(np.log(max(float(probability), 1e-30)))
