"""The targets of rows with several labels: a sparse matrix of probabilities.

Shapes: R rows, B rows of a batch, C labels, N labels in all rows together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from textcls_training.data.arrays import Bools, Float32, Float64, Int32, Int64, ranges, starts


@dataclass(frozen=True, slots=True)
class LabelMatrix:
    """The probability of each label of each row; what is not listed is 0.

    Attributes:
        classes: how many labels there are.
        start: where the labels of each row begin [R + 1].
        label: their numbers [N], ascending within a row.
        probability: the probability of each [N], above 0; 1 for a label that is simply present.
    """

    classes: int
    start: Int64
    label: Int32
    probability: Float32

    @classmethod
    def of(cls, sets: Sequence[Mapping[str, float]], names: Sequence[str]) -> "LabelMatrix":
        """Number the labels of rows.

        Args:
            sets: the labels of each row, with their probabilities.
            names: the labels in the order of their numbers, which is the order of their names.

        Raises:
            KeyError: a label is not in `names`.
        """
        number = {name: i for i, name in enumerate(names)}
        pairs = [sorted((number[name], share) for name, share in one.items()) for one in sets]
        every = list(chain.from_iterable(pairs))
        label = np.fromiter((found for found, _ in every), np.int32, len(every))
        probability = np.fromiter((share for _, share in every), np.float32, len(every))
        return cls(len(names), starts(np.fromiter(map(len, pairs), np.int64, len(pairs))), label, probability)

    @classmethod
    def of_dense(cls, probability_RC: Float32) -> "LabelMatrix":
        """Build the matrix from dense probabilities [R, C]."""
        row, column = np.nonzero(probability_RC)
        start = starts(np.bincount(row, minlength=len(probability_RC)))
        return cls(probability_RC.shape[1], start, column.astype(np.int32), probability_RC[row, column])

    def __len__(self) -> int:
        return len(self.start) - 1

    def lengths(self) -> Int64:
        """Return how many labels each row has."""
        return np.diff(self.start)

    def select(self, which: Int64) -> "LabelMatrix":
        """Return the rows `which`."""
        place = ranges(self.start[which], self.lengths()[which])
        return LabelMatrix(self.classes, starts(self.lengths()[which]), self.label[place], self.probability[place])

    def dense(self, row_B: Int64) -> Float32:
        """Return the probabilities of some rows [B, C]."""
        found_BC = np.zeros((len(row_B), self.classes), np.float32)
        length = self.lengths()[row_B]
        place = ranges(self.start[row_B], length)
        found_BC[np.repeat(np.arange(len(row_B)), length), self.label[place]] = self.probability[place]
        return found_BC

    def gold(self) -> Bools:
        """Return the labels of each row [R, C]: those that are more probable than not."""
        return np.asarray(self.dense(np.arange(len(self))) >= 0.5)

    def mass(self, weight_R: Float32 | None = None) -> Float64:
        """Return how many rows each label has [C], a row counting as its weight times the probability."""
        counted = self.probability.astype(np.float64)
        if weight_R is not None:
            counted = counted * np.repeat(weight_R.astype(np.float64), self.lengths())
        return np.bincount(self.label, counted, minlength=self.classes).astype(np.float64)

    def rarest(self) -> Int64:
        """Return the rarest label of each row [R], by which rows are assigned to splits; `classes` for none."""
        by_mass_C = np.argsort(self.mass(), kind="stable")
        rank_C = np.argsort(by_mass_C)
        rarest_R = np.full(len(self), self.classes)
        np.minimum.at(rarest_R, np.repeat(np.arange(len(self)), self.lengths()), rank_C[self.label])
        found: Int64 = np.append(by_mass_C, self.classes)[rarest_R]
        return found


def end_to_end(matrices: Sequence[LabelMatrix]) -> LabelMatrix:
    """Join the rows of several matrices with the same labels."""
    return LabelMatrix(
        matrices[0].classes,
        starts(np.concatenate([one.lengths() for one in matrices])),
        np.concatenate([one.label for one in matrices]),
        np.concatenate([one.probability for one in matrices]),
    )
