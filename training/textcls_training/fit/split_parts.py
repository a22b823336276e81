"""The vectors of the rows of a split, in parts: what the attention of each view sums up, and the spelling of each text.

Shapes: R rows, D entries of a part.
"""

from dataclasses import dataclass

from textcls_training.data.arrays import Float32, Int64


@dataclass(slots=True)
class SplitParts:
    """The parts of the vectors of a split, the spelling last.

    Attributes:
        train: those of the rows that were learned from and are sure of their label, not all where they are very many.
        labels: the labels of these.
        valid: those of the validation rows.
    """

    train: list[Float32]
    labels: Int64
    valid: list[Float32]

    def drop(self, view: int) -> None:
        """Leave out a view, which validation rows do not want."""
        del self.train[view], self.valid[view]
