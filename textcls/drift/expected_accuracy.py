"""The accuracy to be expected of answers whose right labels nobody knows.

In each bin of scores, held-out rows say how many answers are right: calibration by histogram (Zadrozny, Elkan 2001).
The scores of new rows say it as well, since they are calibrated; in each bin they count as so many held-out rows, like
the prior of a beta distribution. The mean over new rows is their averaged confidence, corrected. How near it comes
under made shifts, and how near others come, is measured by benchmarks/drift.py.

Shapes: N new rows, B bins.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.drift.summary import HeldOutSummary
from textcls.evaluation.intervals import Estimate

# Held-out rows that are needed for ten bins to say anything.
LEAST_HELD_OUT: Final = 50
# So many held-out rows in each bin the scores count for; chosen on three other data sets than those of the benchmark.
PRIOR: Final = 100
_DEVIATE: Final = 1.959963984540054


def expected_accuracy(held_out: HeldOutSummary, score_N: NDArray[np.float64]) -> Estimate | None:
    """Return the accuracy to be expected on new rows, with the interval of what chance does to both lots of rows.

    Args:
        held_out: what is known of held-out rows.
        score_N: of the answers to new rows, at least one.

    Returns:
        The estimate; None of fewer than `LEAST_HELD_OUT` held-out rows, which say too little.
    """
    if held_out.rows < LEAST_HELD_OUT:
        return None
    bin_N = held_out.scores.bins(score_N)
    bins = len(held_out.scores.counts)
    right_B, rows_B = np.array(held_out.right, np.float64), np.array(held_out.scores.counts, np.float64)
    now_B = np.bincount(bin_N, minlength=bins)
    score_B = np.bincount(bin_N, score_N, bins) / np.maximum(now_B, 1)
    accuracy_B = (right_B + PRIOR * score_B) / (rows_B + PRIOR)
    share_B = now_B / len(score_N)
    # A bin that is always right is not known to be: its variance is that of one right and one wrong answer more.
    less_sure_B = (right_B + 1) / (rows_B + 2)
    variance_B = less_sure_B * (1 - less_sure_B)
    of_held_out, of_new = share_B**2 @ (variance_B / np.maximum(rows_B, 1)), share_B @ variance_B / len(score_N)
    value, half = float(share_B @ accuracy_B), _DEVIATE * math.sqrt(float(of_held_out + of_new))
    return Estimate(value, max(0.0, value - half), min(1.0, value + half))
