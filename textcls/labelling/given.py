"""Answers that come with the texts, such as those of a language model: proposed, and asked about if doubtful.

Shapes: R texts, C labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textcls.labelling.choice import Float64, doubt


@dataclass(frozen=True)
class GivenAnswers:
    """Given probabilities of the labels of each text.

    Attributes:
        labels: their names.
        probability_RC: the probability of each label.
        several: whether labels are not mutually exclusive.
    """

    labels: tuple[str, ...]
    probability_RC: Float64
    several: bool

    @classmethod
    def of(cls, answers: Sequence[Mapping[str, float]], *, several: bool) -> "GivenAnswers":
        """Return the answers to some texts, each with the probabilities of some labels; that of the others is 0."""
        labels = tuple(dict.fromkeys(label for answer in answers for label in answer))
        rows = [[answer.get(label, 0.0) for label in labels] for answer in answers]
        return cls(labels, np.array(rows, np.float64).reshape(len(answers), len(labels)), several)

    def order(self) -> list[int]:
        """Return the texts, those with the least certain answers first."""
        return np.argsort(-doubt(self.probability_RC, several=self.several), kind="stable").tolist()  # type: ignore[no-any-return]

    def answered(self, row: int) -> frozenset[str]:
        """Return the labels that a text is answered with."""
        probability_C = self.probability_RC[row]
        if self.several:
            return frozenset(self.labels[c] for c in np.flatnonzero(probability_C >= 0.5).tolist())
        return frozenset([self.labels[int(probability_C.argmax())]]) if probability_C.any() else frozenset()

    def proposal(self, row: int) -> dict[str, Any]:
        """Return what is proposed for a text, as plain data for the page."""
        order = np.argsort(-self.probability_RC[row], kind="stable").tolist()
        labels = [{"label": self.labels[c], "score": float(self.probability_RC[row, c])} for c in order]
        assigned = [one["label"] for one in labels if one["label"] in self.answered(row)]
        return {"by": "answers", "labels": labels, "assigned": assigned if self.several else []}
