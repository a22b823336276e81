"""How sure a figure is: percentile bootstrap intervals over texts, by SciPy, and paired ones of differences.

Shapes: N texts, K values of a text that a statistic is made of. A text whose figure is not defined is nan and left out;
of a difference, a text that either side leaves out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from textcls_training.data.arrays import Float64

RESAMPLES: Final = 2000
CONFIDENCE: Final = 0.95
# Resamples that are in memory at once.
BATCH: Final = 100

# [..., N, K] -> [...]
Statistic = Callable[[Float64], Float64]
Verdict = Literal["better", "not worse", "worse"]


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval; None where it is not defined: no text, or for an interval fewer than two.

    Attributes:
        value: the figure.
        low, high: the ends of its 95 % interval.
        count: texts it is made of.
    """

    value: float | None
    low: float | None
    high: float | None
    count: int


def mean(values_NK: Float64) -> Float64:
    """Return the mean of the first value."""
    return np.asarray(values_NK[..., 0].mean(-1))


def f1_of_means(values_NK: Float64) -> Float64:
    """Return F1 of the mean precision and the mean recall, the two values of a text."""
    precision, recall = np.moveaxis(values_NK.mean(-2), -1, 0)
    both = precision + recall
    return np.asarray(2 * precision * recall / np.where(both > 0, both, 1.0))


def estimate(values_NK: Float64, statistic: Statistic = mean, seed: int = 0) -> Estimate:
    """Return the statistic of the texts and its interval."""
    return _interval(values_NK[np.isfinite(values_NK).all(1)], statistic, seed)


def difference(one_NK: Float64, other_NK: Float64, statistic: Statistic = mean, seed: int = 0) -> Estimate:
    """Return how much higher the statistic of `one` is, and the interval of that, texts drawn in pairs."""
    pairs_N2K = np.stack([one_NK, other_NK], 1)
    pairs_N2K = pairs_N2K[np.isfinite(pairs_N2K).all((1, 2))]
    return _interval(pairs_N2K, lambda pairs: statistic(pairs[..., 0, :]) - statistic(pairs[..., 1, :]), seed)


def verdict(found: Estimate, higher_is_better: bool) -> Verdict | None:
    """Say what a difference means: `better` or `worse` where its interval is wholly on one side of 0."""
    if found.low is None or found.high is None:
        return None
    if found.low > 0 or found.high < 0:
        return "better" if (found.low > 0) == higher_is_better else "worse"
    return "not worse"


def _interval(values: Float64, statistic: Statistic, seed: int) -> Estimate:
    count = len(values)
    if not count:
        return Estimate(None, None, None, 0)
    value = float(statistic(values))
    if count < 2:
        return Estimate(value, None, None, count)

    def of(index: NDArray[np.int64], axis: int = -1) -> Float64:
        return statistic(values[index])

    found = stats.bootstrap(
        (np.arange(count),),
        of,
        n_resamples=RESAMPLES,
        batch=BATCH,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value, float(found.low), float(found.high), count)
