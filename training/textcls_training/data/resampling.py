"""Rows with random weights: the Bayesian bootstrap (Rubin 1981, "The Bayesian Bootstrap").

The ordinary bootstrap draws rows, leaving out a third of them and every word that occurs in these alone. Here each row
has a weight from the exponential distribution instead, with mean 1: all rows stay, some count little.
"""

from collections.abc import Sequence

import numpy as np


def resampled(weights: Sequence[float] | None, rows: int, seed: int) -> list[float]:
    """Return random weights of rows, times their own weights, if any; the same seed gives the same result."""
    drawn = np.random.default_rng(seed).exponential(size=rows)
    found: list[float] = (drawn if weights is None else drawn * np.asarray(weights, np.float64)).tolist()
    return found
