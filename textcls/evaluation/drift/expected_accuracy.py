"""Estimate the accuracy of answers whose right labels are not known.

The scores are calibrated, so their mean over new rows is the accuracy that they promise (average confidence). Held-out
rows show the effect of chance on it: on how many rows a bin of scores was calibrated, and how many of these were right.
If texts are of another kind, scores promise more or less than they keep, the more so the more the texts differ
(`of_another_kind`), and the interval is that much wider. Held-out rows do not correct the mean: that was tried, along
with other estimates, and gained nothing (training/README.md, benchmarks/drift.py).

Shapes: N new rows, B bins.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.drift.summary import HeldOutSummary
from textcls.evaluation.drift.tally import Differences
from textcls.evaluation.intervals import DEVIATE, Estimate

# The number of held-out rows needed for ten bins to be meaningful.
LEAST_HELD_OUT: Final = 50
# How far scores promise too much or too little, as a standard deviation: for each share of tokens that is unknown
# beyond those expected, and for each distance (of labels, scores, lengths) of 1 or more. Chosen on 51 pairs of sets and
# parts of sets, and increased by a quarter when 43 of 48 others were inside the interval; measured on yet others by
# benchmarks/drift_kinds.py.
_UNKNOWN, _DISTANCE = 1.25, 0.05
# Likewise for a column beside the text that is entirely lost: on two sets with an informative one, accuracy fell 17
# and 47 points below what the scores promised.
_COLUMN: Final = 0.25


def of_another_kind(found: Differences, lost: float = 0.0) -> float:
    """Return how far the accuracy may be off because texts are of another kind, as a standard deviation.

    Args:
        found: the differences from held-out rows.
        lost: the share of the rows for which a column beside the text has lost the information that it had before.
    """
    unknown = found.unknown
    more_unknown = 0.0 if unknown is None else max(0.0, unknown.now - unknown.before)
    far = sum(min(1.0, max(0.0, one.psi - one.by_chance)) for one in found.distances.values())
    return math.hypot(_UNKNOWN * more_unknown, _DISTANCE * math.sqrt(far), _COLUMN * lost)


def expected_accuracy(
    held_out: HeldOutSummary, score_N: NDArray[np.float64], another_kind: float = 0.0
) -> Estimate | None:
    """Return the accuracy to be expected on new rows, with its interval.

    Args:
        held_out: the summary of held-out rows.
        score_N: the score of the answers to new rows, at least one.
        another_kind: how far it may be off beyond the effect of chance on both sets of rows, as a standard deviation.

    Returns:
        The estimate; None with fewer than `LEAST_HELD_OUT` held-out rows, which say too little.
    """
    if held_out.rows < LEAST_HELD_OUT:
        return None
    right_B, rows_B = np.array(held_out.right, np.float64), np.array(held_out.scores.counts, np.float64)
    share_B = np.array(held_out.scores.count(score_N), np.float64) / len(score_N)
    # A bin that was always right need not always be: its variance assumes one more right and one more wrong answer.
    less_sure_B = (right_B + 1) / (rows_B + 2)
    variance_B = less_sure_B * (1 - less_sure_B)
    of_held_out, of_new = share_B**2 @ (variance_B / np.maximum(rows_B, 1)), share_B @ variance_B / len(score_N)
    value, half = float(score_N.mean()), DEVIATE * math.sqrt(float(of_held_out + of_new) + another_kind**2)
    return Estimate(value, max(0.0, value - half), min(1.0, value + half))
