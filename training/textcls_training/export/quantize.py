"""Quantisation: low-bit rows. Shapes as in `textcls_training.export`."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ConfigError
from textcls_training.data.arrays import Float32
from textcls_training.models.constants import TINY

# The type of a loaded table; half the size of 32 bits, and exact to 1 in 2,000 from 6e-5 up, to 3e-8 below it, whereas
# a step is 1 in 254 or in 14 of the largest column.
LOADED_TYPE: type[np.floating] = np.float16

# The largest number that a loaded table can represent: 65,504.
LARGEST: Final = float(np.finfo(np.float16).max)


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """Rows with 8 or 4 bits per column, and a scale for each group.

    Attributes:
        bits: the bits per column. Words, which are sums of many rows, have 8; sequences and n-grams 4.
        step_RGY: columns, in steps of the scale.
        scale_RG: as a fraction of `largest`; below 6e-5 of it digits are lost, below 3e-8 the row is zero: an error of
            at most 3e-8 of `largest` per step.
        largest: the largest scale.
        squared_norm_R: squared feature norms: sums of squared weights.
    """

    bits: Literal[4, 8]
    step_RGY: NDArray[np.int8]
    scale_RG: NDArray[np.float16]
    largest: float
    squared_norm_R: NDArray[np.float16]

    @classmethod
    def of(cls, column_RGY: Float32, squared_norm_R: Float32, bits: Literal[4, 8]) -> "QuantizedRows":
        """Quantise rows.

        Raises:
            ConfigError: a loaded table could not represent one of the numbers.
        """
        _check_range(column_RGY)
        _check_range(squared_norm_R)
        step_RG = np.maximum(np.abs(column_RGY).max(2, initial=0), TINY) / (2 ** (bits - 1) - 1)
        step_RGY = np.rint(column_RGY / step_RG[..., None]).astype(np.int8)
        largest = float(step_RG.max(initial=TINY))
        # A squared norm of 0 means out of vocabulary, so none may vanish.
        norm_R = np.maximum(squared_norm_R, np.finfo(np.float16).smallest_normal)
        return cls(bits, step_RGY, (step_RG / largest).astype(np.float16), largest, norm_R.astype(np.float16))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the numbers of rows, groups, and columns with the squared norm."""
        rows, groups, columns = self.step_RGY.shape
        return rows, groups, columns + 1

    def dequantized(self) -> Float32:
        """Return columns and squared norm [R, G, X], exactly as in a loaded table."""
        scale_RG1 = (self.scale_RG.astype(np.float32) * np.float32(self.largest))[..., None]
        column_RGY = self.step_RGY.astype(np.float32) * scale_RG1
        squared_norm_RG1 = np.broadcast_to(self.squared_norm_R[:, None, None], scale_RG1.shape)
        return np.concatenate([column_RGY.astype(LOADED_TYPE), squared_norm_RG1], 2).astype(np.float32)


def _check_range(numbers: Float32) -> None:
    if not (np.abs(numbers) <= LARGEST).all():
        raise ConfigError(
            f"Training diverged: a row of the model holds a number that is not finite or above {LARGEST:,.0f}; lower "
            "the learning rate."
        )
