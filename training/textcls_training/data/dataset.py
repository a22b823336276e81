"""Texts with their targets, and their train-valid splits.

A target is the probability of each label, with a weight per row. If a text has one label, its target is a distribution
over the labels; a hard label, certain of one, is a special case, stored as its number alone. If a text may have several
labels, or none, each probability is independent. Shapes: R rows, B rows of a batch, C labels, T tokens of the longest
one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls._util.spill import IN_MEMORY, Spill
from textcls.errors import InputError
from textcls_training.data import rationales
from textcls_training.data.arrays import Bools, Float32, Float64, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts


class Dataset(NamedTuple):
    """Texts with the target of each one, and which of their tokens belong to its human rationale.

    Attributes:
        corpus: the tokens of the texts.
        labels: the number of each text's label; for a soft target, that of its most probable one; for several, that of
            the rarest, by which rows are assigned to splits.
        rationale: one flag per token of `corpus`; None without rationales.
        probability_RC: the targets, each row summing to 1; None if all are hard labels.
        weight_R: the weight of each row, at least 0; None if each is 1.
        sets: the targets of texts with several labels; None if each has one.
    """

    corpus: Corpus
    labels: Int64
    rationale: Bools | None = None
    probability_RC: Float32 | None = None
    weight_R: Float32 | None = None
    sets: LabelMatrix | None = None

    @classmethod
    def of(cls, given: LabelledTexts, names: Sequence[str], max_tokens: int, spill: Spill = IN_MEMORY) -> "Dataset":
        """Tokenise texts and number their labels.

        Args:
            given: the texts.
            names: the labels of the training rows, in the order of their numbers.
            max_tokens: tokens of a text that are read.
            spill: where arrays with one number per token are stored.

        Raises:
            InputError: a label is not in `names`.
        """
        strangers = sorted(given.labels_in_use() - set(names))
        if strangers:
            raise InputError(f"The validation rows have the label {strangers[0]!r}, which no training row has.")
        corpus = Corpus.of(given.texts, max_tokens, spill)
        flags = None
        if given.rationales is not None:
            flags = rationales.token_flags(given.texts, given.rationales, max_tokens)
        weight_R = None if given.weights is None else np.array(given.weights, np.float32)
        if given.label_sets is not None:
            sets = LabelMatrix.of(given.label_sets, names)
            return cls(corpus, sets.rarest(), flags, weight_R=weight_R, sets=sets)
        number = {name: i for i, name in enumerate(names)}
        labels = np.fromiter(map(number.__getitem__, given.labels), np.int64, len(given.labels))
        return cls(corpus, labels, flags, weight_R=weight_R)

    @property
    def several(self) -> bool:
        """Return whether a text may have several labels, or none."""
        return self.sets is not None

    @property
    def label_matrix(self) -> LabelMatrix:
        """Return the targets of texts with several labels."""
        if self.sets is None:
            raise TypeError("each text has one label")
        return self.sets

    def target(self, classes: int) -> Float32:
        """Return the probability of each label of each row [R, C], however it is stored."""
        if self.sets is not None:
            return self.sets.dense(np.arange(len(self.labels)))
        if self.probability_RC is not None:
            return self.probability_RC
        return np.eye(classes, dtype=np.float32)[self.labels]

    def weight(self) -> float:
        """Return the total weight of all rows."""
        return float(len(self.labels) if self.weight_R is None else self.weight_R.sum(dtype=np.float64))

    def select(self, which: Int64) -> "Dataset":
        """Return the rows `which`."""
        return Dataset(
            self.corpus.select(which),
            self.labels[which],
            None if self.rationale is None else self.rationale[self.corpus.places(which)],
            None if self.probability_RC is None else self.probability_RC[which],
            None if self.weight_R is None else self.weight_R[which],
            None if self.sets is None else self.sets.select(which),
        )

    def label_mass(self, classes: int) -> Float64:
        """Return how many rows each label has [C]: a row counts as its weight, divided according to its target."""
        if self.sets is not None:
            return self.sets.mass(self.weight_R)
        if self.probability_RC is None:
            return np.bincount(self.labels, self.weight_R, minlength=classes).astype(np.float64)
        weight_R = np.ones(len(self.labels)) if self.weight_R is None else self.weight_R.astype(np.float64)
        return np.asarray(weight_R @ self.probability_RC.astype(np.float64))

    def split(self, valid: Bools) -> "Split":
        """Return the rows `valid` as validation rows, and the others as training rows."""
        return Split(self.select(np.flatnonzero(~valid)), self.select(np.flatnonzero(valid)))

    def rationale_mask(self, text_B: Int64, mask_BT: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Return which tokens of a padded batch belong to a rationale [B, T]; None if none do.

        Args:
            text_B: numbers of the texts.
            mask_BT: True at real tokens.
        """
        if self.rationale is None:
            return None
        flags = self.rationale[self.corpus.places(text_B)]
        if not flags.any():
            return None
        rationale_BT = np.zeros_like(mask_BT)
        rationale_BT[mask_BT] = flags
        return rationale_BT


class Split(NamedTuple):
    """A train-valid split: training rows, and validation rows, which choose epoch, ensemble and temperature."""

    train: Dataset
    valid: Dataset
