"""Labelled texts as training sees them, and their parts."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from textcls_training.arrays import Bools, Int64
from textcls_training.encoding import Corpus


class Rows(NamedTuple):
    """Texts with the number of each one's label, and which of their tokens people have marked as its reasons.

    `marked` is one flag a token of `corpus`, or None where nobody has marked any.
    """

    corpus: Corpus
    labels: Int64
    marked: Bools | None = None

    def select(self, which: Int64) -> "Rows":
        """Return the rows `which`."""
        marked = None if self.marked is None else self.marked[self.corpus.places(which)]
        return Rows(self.corpus.select(which), self.labels[which], marked)

    def split(self, judging: Bools) -> "Fold":
        """Return the rows `judging` as judges, and the others to learn from."""
        return Fold(self.select(np.flatnonzero(~judging)), self.select(np.flatnonzero(judging)))

    def marks(self, text_B: Int64, mask_BT: Tensor) -> Tensor | None:
        """Return which tokens of a padded batch are marked [B, T]; None if none are."""
        marked = None if self.marked is None else self.marked[self.corpus.places(text_B)]
        if marked is None or not marked.any():
            return None
        marked_BT = torch.zeros_like(mask_BT)
        marked_BT[mask_BT] = torch.from_numpy(marked)
        return marked_BT


class Fold(NamedTuple):
    """Rows to learn from, and rows that judge."""

    train: Rows
    judges: Rows
