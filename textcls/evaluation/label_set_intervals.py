"""Confidence intervals of figures if rows may have several labels: rows are redrawn with all their labels.

A row is drawn as a whole (Efron 1979), since its labels are dependent. Sides that answered the same rows share the
draws.

Shapes: N rows, C labels, K kinds of rows (with the same labels, and assigned the same ones), B draws.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies
from textcls.evaluation.intervals import DRAWS, DrawnFigures, Estimate, of_draws, share

Bools = NDArray[np.bool_]
Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

# Numbers of the draws that are in memory at once: with a hundred thousand kinds of rows, or as many labels, all draws
# together would fill it.
_AT_ONCE: Final = 4_000_000


class LabelSetIntervals(NamedTuple):
    """The figures, each with its interval."""

    micro_f1: Estimate
    macro_f1: Estimate
    exact: Estimate
    f1: tuple[Estimate, ...]


def label_set_intervals(gold_NC: Bools, assigned_NC: Bools) -> LabelSetIntervals:
    """Return the figures of answers with their intervals; the interval of a share of rows is Wilson's.

    For draws that are all alike, see `textcls.evaluation.intervals.f1_intervals`.

    Args:
        gold_NC: which labels each row has; there is a row.
        assigned_NC: which it was assigned.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    rows = len(gold_NC)
    (drawn,) = drawn_figures(gold_NC, [assigned_NC])
    rows_C = (gold_NC | assigned_NC).sum(0).tolist()
    return LabelSetIntervals(
        micro_f1=of_draws(drawn.micro_f1, rows),
        macro_f1=of_draws(drawn.macro_f1, rows, biased=True),
        exact=share(int((gold_NC == assigned_NC).all(1).sum()), rows),
        f1=tuple(of_draws(f1_B, count) for f1_B, count in zip(drawn.f1.T, rows_C, strict=True)),
    )


def label_set_figures(gold_NC: Bools, assigned_NC: Bools) -> DrawnFigures:
    """Return the figures of the rows as they are, without any draws.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    return _Counts(gold_NC, assigned_NC).figures(np.ones((1, len(gold_NC)), np.int64))


def drawn_figures(gold_NC: Bools, sides: Sequence[Bools]) -> list[DrawnFigures]:
    """Return the figures of each side on the rows, and on `DRAWS` draws of them, shared by all sides.

    Args:
        gold_NC: which labels each row has; there is a row.
        sides: which labels each side assigned to each row [rows, labels].

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    first_K, count_K = _kinds([gold_NC, *sides])
    kinds = [_Counts(gold_NC[first_K], assigned_NC[first_K]) for assigned_NC in sides]
    found: list[list[DrawnFigures]] = [[] for _ in sides]
    for count_BK in _draws(count_K, gold_NC.shape[1]):
        for figures, counts in zip(found, kinds, strict=True):
            figures.append(counts.figures(count_BK))
    return [DrawnFigures(*(np.concatenate(parts) for parts in zip(*figures, strict=True))) for figures in found]


def _kinds(flags: Sequence[Bools]) -> tuple[Int64, Int64]:
    """Return the first row of each kind, and the number of rows of that kind."""
    packed = np.packbits(np.concatenate(flags, 1), axis=1)
    # One opaque value per row is sorted far faster than its separate bytes.
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first_K, count_K = np.unique(rows, return_index=True, return_counts=True)
    return first_K.astype(np.int64), count_K.astype(np.int64)


def _draws(count_K: Int64, labels: int) -> Iterator[Int64]:
    """Yield how many rows of each kind there are, first in the data and then in each draw, a batch at a time [B, K]."""
    yield count_K[None]
    random, rows = np.random.default_rng(0), int(count_K.sum())
    step = max(1, _AT_ONCE // max(len(count_K), labels))
    for first in range(0, DRAWS, step):
        yield random.multinomial(rows, count_K / rows, min(step, DRAWS - first))


class _Counts:
    """What one row of each kind adds to the counts of each label."""

    def __init__(self, gold_KC: Bools, assigned_KC: Bools) -> None:
        with optional_dependencies.needed_by("Intervals of several labels"):
            from scipy.sparse import csr_array

        # A row has few of the labels, and is assigned few.
        def sparse(flags_KC: Bools) -> Any:
            return csr_array(np.ascontiguousarray(flags_KC.T).astype(np.int64))

        self._hits_CK, self._gold_CK = sparse(gold_KC & assigned_KC), sparse(gold_KC)
        self._assigned_CK = sparse(assigned_KC)
        self._exact_K = (gold_KC == assigned_KC).all(1).astype(np.int64)

    def figures(self, count_BK: Int64) -> DrawnFigures:
        count_KB = np.ascontiguousarray(count_BK.T)
        hits_BC, gold_BC = (self._hits_CK @ count_KB).T, (self._gold_CK @ count_KB).T
        either_BC = gold_BC + (self._assigned_CK @ count_KB).T
        f1_BC = 2 * hits_BC / np.maximum(either_BC, 1)
        occurs_BC = gold_BC > 0
        return DrawnFigures(
            micro_f1=2 * hits_BC.sum(1) / np.maximum(either_BC.sum(1), 1),
            macro_f1=(f1_BC * occurs_BC).sum(1) / np.maximum(occurs_BC.sum(1), 1),
            exact=count_BK @ self._exact_K / count_BK.sum(1),
            f1=f1_BC,
        )
