"""Metrics: accuracy and F1 as in scikit-learn, and calibration as in Guo et al. 2017 (1706.04599)."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies
from textcls.evaluation.intervals import Estimate, share, share_of_grouped

Int64 = NDArray[np.int64]
Float = NDArray[np.floating[Any]]

BINS: Final = 15
# The right label is also looked for among this many of the best labels.
TOP: Final = (3, 5)
# Rows that are compared at a time, to limit memory with thousands of labels.
_BLOCK: Final = 1024


@dataclass(frozen=True, slots=True)
class LabelReport:
    """The figures of one label: precision, recall, F1, and how many rows have it."""

    label: str
    precision: float
    recall: float
    f1: float
    rows: int


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Rows of similar confidence: how many, their mean confidence, and how many are answered correctly.

    The share of correct answers lies between `low` and `high`.
    """

    rows: int
    confidence: float
    right: int
    low: float
    high: float

    @property
    def share(self) -> Estimate:
        """The share that is right, with its interval."""
        return Estimate(self.right / self.rows, self.low, self.high)


@dataclass(frozen=True, slots=True)
class ClassificationReport:
    """The figures of a model on labelled rows.

    Attributes:
        rows: number of rows.
        accuracy: share of rows whose best label is the right one.
        macro_f1: mean F1 of the labels that occur.
        ece: expected calibration error, 0 to 1, `BINS` bins of equal width.
        cross_entropy: see `cross_entropy`; None without rows, and if a label is unknown, as its logarithm is infinite.
        perplexity: its exponential: the number of equally likely labels among which a guess would be as good.
        labels: each label that the model or the data knows.
        counts: rows per true and answered label, given as indices into `labels`, for the pairs that occur.
        top_k_accuracy: see `top_k_accuracy`, for each k of `TOP` that is fewer than the model's labels.
        reliability: see `reliability`.
    """

    rows: int
    accuracy: float
    macro_f1: float
    ece: float
    cross_entropy: float | None
    perplexity: float | None
    labels: tuple[LabelReport, ...]
    counts: tuple[tuple[int, int, int], ...]
    top_k_accuracy: dict[int, float]
    reliability: tuple[ReliabilityBin, ...]

    @property
    def confusion(self) -> tuple[tuple[int, ...], ...]:
        """Rows by true label (first axis) and answered label, in the order of `labels`."""
        found = np.zeros((len(self.labels), len(self.labels)), np.int64)
        for right, answered, rows in self.counts:
            found[right, answered] = rows
        return tuple(map(tuple, found.tolist()))

    @property
    def confusions(self) -> tuple[tuple[str, str, int], ...]:
        """The right label, the answer, and the number of rows of each confusion; the most frequent first."""
        wrong = sorted((pair for pair in self.counts if pair[0] != pair[1]), key=lambda pair: -pair[2])
        names = [label.label for label in self.labels]
        return tuple((names[right], names[answered], rows) for right, answered, rows in wrong)

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        found = asdict(self)
        # The matrix replaces the counts of pairs.
        return {("confusion" if key == "counts" else key): found[key] for key in found} | {"confusion": self.confusion}


def expected_calibration_error(probabilities: Float, labels: Int64) -> float:
    """Return the mean gap between confidence and accuracy over bins of confidence, weighted by rows (Guo 2017, eq. 3).

    Args:
        probabilities: [rows, labels].
        labels: the right label of each row; an index that is not a column counts as wrong.
    """
    return calibration_gap(probabilities.max(1), probabilities.argmax(1) == labels)


def calibration_gap(probability_N: Float, right_N: NDArray[np.bool_]) -> float:
    """Return the mean gap between a probability and the share of rows for which it is right, likewise."""
    gap = np.bincount(_bins(probability_N), probability_N - right_N, BINS)
    return float(np.abs(gap).sum() / max(1, len(right_N)))


def reliability(confidence: Float, right: NDArray[np.bool_]) -> tuple[ReliabilityBin, ...]:
    """Return the bins of `expected_calibration_error` that have rows, by rising confidence.

    Args:
        confidence: the probability of each answer [rows].
        right: whether it is right [rows].
    """
    bins = _bins(confidence)
    rows = np.bincount(bins, minlength=BINS).tolist()
    sums = np.bincount(bins, confidence, BINS).tolist()
    hits = np.bincount(bins, right, BINS).astype(np.int64).tolist()
    return tuple(_bin(n, total, hit, share(hit, n)) for n, total, hit in zip(rows, sums, hits, strict=True) if n)


def reliability_of_labels(probabilities: Float, has: NDArray[np.bool_]) -> tuple[ReliabilityBin, ...]:
    """Return the bins of the probabilities of all labels of all rows; their "rows" are pairs of a row and a label.

    The labels of a row are dependent, so the intervals are those of rows drawn as wholes.

    Args:
        probabilities: the probabilities of the labels [rows, labels].
        has: which of them each row has [rows, labels].

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    bins, found = _bins(probabilities).astype(np.uint8), []
    for number in range(BINS):
        inside = bins == number
        if inside.any():
            count_of_row, hits_of_row = inside.sum(1), (inside & has).sum(1)
            total = float(probabilities.sum(where=inside, dtype=np.float64))
            interval = share_of_grouped(hits_of_row, count_of_row)
            found.append(_bin(int(count_of_row.sum()), total, int(hits_of_row.sum()), interval))
    return tuple(found)


def _bin(rows: int, total: float, right: int, found: Estimate) -> ReliabilityBin:
    return ReliabilityBin(rows, total / rows, right, found.low, found.high)


def _bins(confidence: Float) -> Int64:
    return np.minimum((confidence * BINS).astype(np.int64), BINS - 1)


def cross_entropy(probabilities: Float, labels: Int64) -> float | None:
    """Return the mean negative log-likelihood of the right labels in nats; None without rows, or if it is infinite.

    This is the cross-entropy of the predictions, whose exponential is the perplexity (Jelinek et al. 1977); the entropy
    of the predictions themselves, which some texts use instead, says nothing about the right labels.

    Args:
        probabilities: calibrated probabilities [rows, labels].
        labels: the right label of each row; one without a column in `probabilities` has a probability of 0.
    """
    if not len(labels) or labels.min() < 0 or labels.max() >= probabilities.shape[1]:
        return None
    right = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    # A probability that was rounded to zero in 32 bits was not impossible.
    return float(abs(np.log(np.maximum(right, np.finfo(np.float32).tiny)).mean()))


def top_k_accuracy(probabilities: Float, labels: Int64) -> dict[int, float]:
    """Return for each k of `TOP` the share of rows whose right label is among the first k answers.

    Args:
        probabilities: [rows, labels]; of two equal ones the first column comes first.
        labels: the right label of each row; one without a column in `probabilities` is never among them.
    """
    columns = probabilities.shape[1]
    places = np.empty(len(labels), np.int64)
    for at in range(0, len(labels), _BLOCK):
        some = slice(at, at + _BLOCK)
        places[some] = _places(probabilities[some], labels[some])
    return {k: float((places < k).sum() / max(len(labels), 1)) for k in TOP if k < columns}


def _places(probabilities: Float, labels: Int64) -> Int64:
    """Return how many labels are ranked above the right one in each row; all of them if it has no column."""
    columns = probabilities.shape[1]
    known, right = labels < columns, np.minimum(labels, columns - 1)[:, None]
    chance = np.take_along_axis(probabilities, right, 1)
    before = (probabilities > chance) | ((probabilities == chance) & (np.arange(columns) < right))
    places: Int64 = np.where(known, before.sum(1), columns)
    return places


def require() -> None:
    """Check, before the work rather than after it, that intervals and the figures of several labels can be computed.

    Raises:
        MissingExtraError: scikit-learn or SciPy is not installed.
    """
    with optional_dependencies.needed_by("Scoring a model"):
        optional_dependencies.look_for("scipy", "sklearn")


def report(
    probabilities: Float, labels: Int64, names: Sequence[str], unknown: Sequence[str] = ()
) -> ClassificationReport:
    """Score `probabilities` [rows, labels] against the right labels.

    Args:
        probabilities: calibrated, columns in the order of `names`.
        labels: indices into `names` followed by `unknown`.
        names: the labels the model knows.
        unknown: labels of the data that the model does not know; every such row counts as an error.
    """
    if not len(labels):
        zero = tuple(LabelReport(name, 0.0, 0.0, 0.0, 0) for name in (*names, *unknown))
        return ClassificationReport(0, 0.0, 0.0, 0.0, None, None, zero, (), {}, ())
    guess = probabilities.argmax(1)
    every = [*names, *unknown]
    rows, answered = (np.bincount(of, minlength=len(every)) for of in (labels, guess))
    right = np.bincount(labels[labels == guess], minlength=len(every))
    pairs, times = np.unique(labels * len(every) + guess, return_counts=True)
    precision, recall = right / np.maximum(answered, 1), right / np.maximum(rows, 1)
    f1 = 2 * right / np.maximum(rows + answered, 1)
    present = rows + answered > 0
    loss = cross_entropy(probabilities, labels)
    per_label = zip(every, precision.tolist(), recall.tolist(), f1.tolist(), rows.tolist(), strict=True)
    return ClassificationReport(
        rows=len(labels),
        accuracy=float((guess == labels).mean()),
        macro_f1=float(f1[present].mean()) if present.any() else 0.0,
        ece=expected_calibration_error(probabilities, labels),
        cross_entropy=loss,
        perplexity=None if loss is None else math.exp(loss),
        labels=tuple(LabelReport(*row) for row in per_label),
        counts=tuple(zip(*(of.tolist() for of in (*np.divmod(pairs, len(every)), times)), strict=True)),
        top_k_accuracy=top_k_accuracy(probabilities, labels),
        reliability=reliability(probabilities.max(1), guess == labels),
    )
