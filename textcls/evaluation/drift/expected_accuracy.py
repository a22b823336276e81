"""The accuracy to be expected of answers whose right labels nobody knows.

The scores are calibrated, so their mean over new rows is the accuracy that they promise (average confidence). Held-out
rows say how far that can be trusted by chance alone: of how many a bin of scores was calibrated, and how many of them
were right. They do not correct the mean: that was tried, beside other estimates, and brought nothing
(training/README.md, benchmarks/drift.py).

Shapes: N new rows, B bins.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.drift.summary import HeldOutSummary
from textcls.evaluation.intervals import DEVIATE, Estimate

# Held-out rows that are needed for ten bins to say anything.
LEAST_HELD_OUT: Final = 50


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
    right_B, rows_B = np.array(held_out.right, np.float64), np.array(held_out.scores.counts, np.float64)
    share_B = np.array(held_out.scores.count(score_N), np.float64) / len(score_N)
    # A bin that is always right is not known to be: its variance is that of one right and one wrong answer more.
    less_sure_B = (right_B + 1) / (rows_B + 2)
    variance_B = less_sure_B * (1 - less_sure_B)
    of_held_out, of_new = share_B**2 @ (variance_B / np.maximum(rows_B, 1)), share_B @ variance_B / len(score_N)
    value, half = float(score_N.mean()), DEVIATE * math.sqrt(float(of_held_out + of_new))
    return Estimate(value, max(0.0, value - half), min(1.0, value + half))
