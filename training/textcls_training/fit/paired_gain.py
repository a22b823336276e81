"""Measure how much better one model answers held-out rows than another, by the paired differences of their losses.

The same rows are easy or hard for both, so their differences say more than two means do.
"""

import math
from typing import NamedTuple

from textcls_training.data.arrays import Float64


class PairedGain(NamedTuple):
    """The mean gain per row.

    Attributes:
        nats: how much lower the loss of a row is.
        error: its standard error; infinite with fewer than two rows.
    """

    nats: float
    error: float

    @classmethod
    def of(cls, loss_R: Float64, other_R: Float64) -> "PairedGain":
        """Compare the losses of rows with those of another model."""
        gain_R = other_R - loss_R
        if len(gain_R) < 2:
            return cls(0.0, math.inf)
        return cls(float(gain_R.mean()), float(gain_R.std(ddof=1)) / math.sqrt(len(gain_R)))

    def beyond(self, errors: float) -> bool:
        """Return whether it is more than this many standard errors."""
        return self.nats > errors * self.error
