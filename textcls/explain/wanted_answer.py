"""What answer is wanted in the place of one that was given, and how far another answer is from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ConfigError
from textcls.model.classifier import Classifier
from textcls.model.label_paths import contrasted, labels_below
from textcls.model.prediction import Prediction


@dataclass(frozen=True, slots=True)
class WantedAnswer:
    """A label, or a node above labels, that is to be lost; and what is wanted instead, of the same kinds.

    Attributes:
        before: what is to be lost.
        own: the numbers of its labels.
        against: what is wanted; None for anything else.
        other: the numbers of its labels.
        node: whether what is to be lost is a node.
    """

    before: str
    own: list[int]
    against: str | None
    other: list[int]
    node: bool

    @classmethod
    def of(cls, classifier: Classifier, answer: Prediction, lost: str | None, against: str | None) -> "WantedAnswer":
        """Return what is wanted instead of an answer, or, where there may be several labels, of one of them.

        Args:
            classifier: the model.
            answer: what it says.
            lost: of several labels the one that is to be lost, by default the most probable; of one label a node above
                it, by default itself, which another label does not change.
            against: the label, or node, that is wanted; by default any other.

        Raises:
            ConfigError: there is no such label or node, it is not in the answer, or the one wanted is.
        """
        labels, tree = classifier.labels, classifier.tree
        before = answer.label if lost is None else classifier.known_as(lost)
        below = labels_below(labels, tree, before)
        if not answer.several and before in labels:
            before, below = answer.label, [labels.index(answer.label)]
        assigned = answer.assigned if answer.several else (answer.label,)
        numbers = {labels.index(label) for label in assigned}
        if numbers.isdisjoint(below):
            if answer.several:
                raise ConfigError(
                    f"{before!r} is not assigned, so that no change can take it away; name a label that is."
                )
            raise ConfigError(f"{before!r} is not above the answer, {answer.label!r}; name a node that is.")
        if against is not None:
            against = classifier.known_as(against)
            if not numbers.isdisjoint(labels_below(labels, tree, against)):
                raise ConfigError(f"{against!r} is the answer already; name another label that it might be.")
        own, other = contrasted(labels, tree, before, against)
        return cls(before, own, against, [] if against is None else other, before not in labels)

    def margin(self, answer: Prediction) -> float:
        """Return how far an answer is from what is wanted, in logarithms of probabilities; below 0 it is that."""
        scores = _log(answer.probabilities)
        if answer.thresholds is not None:
            # Lost, and if another is wanted, that assigned.
            above = scores - _log(answer.thresholds)
            lost = above[self.own].max()
            return float(lost if self.against is None else max(lost, -above[self.other].max()))
        if self.against is not None:
            return _most_but(scores, self.other) - float(scores[self.other].max())
        return float(scores[self.own].max()) - _most_but(scores, self.own)

    def told(self, answer: Prediction) -> tuple[str, float, float]:
        """Return of another answer its label, the probability of that, and of what was to be lost."""
        number = answer.label_names.index(answer.label)
        if self.other and answer.several:
            number = max(self.other, key=answer.probabilities.__getitem__)
        score, before_score = float(answer.probabilities[number]), float(answer.probabilities[self.own].sum())
        return answer.label_names[number], score, before_score


def _log(probability_C: NDArray[np.float32]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.log(np.maximum(probability_C.astype(np.float64), 1e-30))
    return found


def _most_but(score_C: NDArray[np.float64], numbers: list[int]) -> float:
    return float(np.delete(score_C, numbers).max(initial=-np.inf))
