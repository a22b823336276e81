"""Rows that count a little differently: the Bayesian bootstrap (Rubin 1981, "The Bayesian Bootstrap").

The bootstrap draws rows, and leaves out a third of them and every word that stands in these alone. Here each row has a
weight from the exponential distribution instead, 1 in the mean: all rows stay, some count little.
"""

from collections.abc import Sequence

import numpy as np


def resampled(weights: Sequence[float] | None, rows: int, seed: int) -> list[float]:
    """Return weights of rows drawn at random, times those that they have, if any; the same seed gives the same."""
    drawn = np.random.default_rng(seed).exponential(size=rows)
    found: list[float] = (drawn if weights is None else drawn * np.asarray(weights, np.float64)).tolist()
    return found
