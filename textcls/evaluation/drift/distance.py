"""The distance between two sets of counts, and how large it would be by chance alone.

The population stability index (Lewis 1994; Yurdakul and Naranjo 2020) of shares p then and q now is the sum over bins
of (q - p) ln(q / p): the symmetric Kullback-Leibler divergence. By convention, 0.1 is worth a look and 0.25 is large.
With few rows, chance alone reaches both; so two sets are drawn repeatedly from the pooled shares, to see what it does
reach.

Shapes: B bins, D draws.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.intervals import CHANCE

DRAWS: Final = 2000
# Below this, a difference does not matter even if it is not due to chance.
SLIGHT: Final = 0.1
MUCH: Final = 0.25
# Added to each count, so that an empty bin has a finite distance.
_MORE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance between two sets of counts.

    Attributes:
        psi: the population stability index.
        by_chance: the value that it stays below in 95 of 100 cases if nothing has changed.
        p_value: the probability that chance alone reaches it.
        before: the number counted then.
        now: the number counted now.
    """

    psi: float
    by_chance: float
    p_value: float
    before: int
    now: int

    @property
    def is_sure(self) -> bool:
        """Whether it is more than chance, and not slight."""
        return self.p_value < CHANCE and self.psi >= SLIGHT

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return asdict(self) | {"is_sure": self.is_sure}


def distance(before_B: Sequence[int], now_B: Sequence[int], seed: int = 0, draws: int = DRAWS) -> Distance:
    """Return the distance between counts in the same bins.

    Args:
        before_B: counts then.
        now_B: counts now.
        seed: the seed of the draws.
        draws: the number of draws that estimate the effect of chance.
    """
    before, now = np.array(before_B, np.int64), np.array(now_B, np.int64)
    rng, both = np.random.default_rng(seed), before + now
    share_B = both / max(1, both.sum())
    found = psi(before, now)
    if not before.sum() or not now.sum():
        return Distance(0.0, 0.0, 1.0, int(before.sum()), int(now.sum()))
    drawn_D = _psi(rng.multinomial(before.sum(), share_B, draws), rng.multinomial(now.sum(), share_B, draws))
    p_value = (1 + int((drawn_D >= found).sum())) / (1 + draws)
    return Distance(found, float(np.quantile(drawn_D, 1 - CHANCE)), p_value, int(before.sum()), int(now.sum()))


def psi(before_B: Sequence[int] | NDArray[np.int64], now_B: Sequence[int] | NDArray[np.int64]) -> float:
    """Return the population stability index of counts in the same bins."""
    return float(_psi(np.array(before_B, np.int64), np.array(now_B, np.int64)))


def _psi(before: NDArray[np.int64], now: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the index of counts [..., B]."""
    p, q = before + _MORE, now + _MORE
    p, q = p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)
    return np.asarray(((q - p) * np.log(q / p)).sum(-1))
