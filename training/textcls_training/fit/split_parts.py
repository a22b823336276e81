"""The vectors of the rows of a split, in parts: the attention sums of each view, and the spelling of each text.

Shapes: R rows, D entries of a part.
"""

from dataclasses import dataclass

from textcls_training.data.arrays import Float32, Int64


@dataclass(slots=True)
class SplitParts:
    """The parts of the vectors of a split, the spelling last.

    Attributes:
        train: those of the rows that were learned from and have a certain label; a subset if there are very many.
        labels: the labels of these.
        valid: the parts of the validation rows.
    """

    train: list[Float32]
    labels: Int64
    valid: list[Float32]

    def drop(self, view: int) -> None:
        """Leave out a view that validation rows do not prefer."""
        del self.train[view], self.valid[view]
