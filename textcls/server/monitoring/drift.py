"""Answers of all workers, counted in the bins of the held-out rows, and how far the latest are from those rows.

For each model a worker keeps a row of numbers among its counts: sums since its start, and their values at the start of
the current window and of the previous one. An answer thus adds to one place only, the exported counts never decrease,
and the difference is the window: between N and 2N texts. No text is kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from textcls.evaluation.drift.distance import psi
from textcls.evaluation.drift.tally import Bins, Tally, chance, compared, unknown_tokens
from textcls.server.monitoring import metrics
from textcls.server.monitoring.metrics import Counts, Numbers

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_ROW: Final = "textcls_drift"


class Outcome(NamedTuple):
    """What is counted of the answer to one text.

    Attributes:
        labels: the most probable label; if a text may have several, those that it was assigned.
        score: the probability of the most probable label.
        abstains: whether the decision is `abstain`.
        tokens: the number of tokens read.
        unknown: how many of these are unknown to the model.
        usual: whether the labels are independent of a threshold given in the request.
    """

    labels: Sequence[str]
    score: float
    abstains: bool
    tokens: int
    unknown: int
    usual: bool = True


class _Watched(NamedTuple):
    """A model, and where its answers are counted: a fingerprint, then three parts of `bins.size` numbers each."""

    bins: Bins
    row: "memoryview[float]"


class DriftCounts:
    """The answers of one worker, by model, for use in the event loop's thread only."""

    def __init__(self, counts: Counts, texts: int, workers: int) -> None:
        """Count in `counts`; a window has at least `texts` texts over all workers, and 0 turns counting off."""
        self._counts = counts
        self._texts = -(-texts // workers)
        self._watched: dict[str, _Watched] = {}

    def take_up(self, models: Mapping[str, Bins | None]) -> None:
        """Count the answers of these models from now on, starting from zero for a model whose bins have changed."""
        self._watched = {}
        for name, bins in models.items():
            if bins is None or not self._texts:
                continue
            row = self._counts.row((_ROW, name, str(bins.size)), 1 + 3 * bins.size)
            if row is None:
                continue
            if row[0] != bins.fingerprint:
                # No fingerprint meanwhile, so that the row is not taken for that of the old or the new bins.
                row[0] = 0.0
                row[1:] = memoryview(bytes(8 * (len(row) - 1))).cast("d")
                row[0] = float(bins.fingerprint)
            self._watched[name] = _Watched(bins, row)

    def count(self, name: str, bins: Bins | None, outcomes: Iterable[Outcome]) -> None:
        """Count answers of the model `name`, unless it is no longer served."""
        watched = self._watched.get(name)
        if watched is None or watched.bins is not bins:
            return
        row, size = watched.row, bins.size
        for outcome in outcomes:
            if outcome.usual:
                bins.add(row, 1, outcome.labels, outcome.score, outcome.tokens, outcome.unknown)
            if row[1] - row[1 + size] >= self._texts:
                row[1 + 2 * size :] = row[1 + size : 1 + 2 * size]
                row[1 + size : 1 + 2 * size] = row[1 : 1 + size]


def drift_metrics(found: Sequence[Numbers], models: Iterable[tuple[str, Bins | None]]) -> "Iterator[Metric]":
    """Yield the metrics of the answers of models.

    Args:
        found: the numbers of all workers.
        models: the models' names and bins.
    """
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
    for family in metrics.DRIFT_FAMILIES:
        kind = GaugeMetricFamily if family.gauge else CounterMetricFamily
        families[family.name] = kind(family.name, family.about, labels=family.labels)
    for name, bins in models:
        if bins is not None:
            for family, labels, value in _samples(bins, *_counted(found, name, bins)):
                families[family.name].add_metric((name, *labels), value)
    yield from families.values()


def _counted(found: Sequence[Numbers], name: str, bins: Bins) -> tuple[Tally, Tally]:
    """Return the counts of all workers: of all answers, and of the latest."""
    every, latest, size = [0.0] * bins.size, [0.0] * bins.size, bins.size
    for numbers in found:
        row = numbers.get((_ROW, name, str(size)))
        # A worker that has not loaded this model yet counts in other bins.
        if row and row[0] == bins.fingerprint:
            for i in range(size):
                every[i] += row[1 + i]
                # Another process may be starting a new window right now.
                latest[i] += max(0.0, row[1 + i] - row[1 + 2 * size + i])
    return bins.tally(every), bins.tally(latest)


def _samples(bins: Bins, every: Tally, latest: Tally) -> Iterator[tuple[metrics.Family, tuple[str, ...], float]]:
    held_out, names, unknown = bins.held_out, bins.names(), unknown_tokens(bins.held_out, latest)
    yield metrics.WINDOW, (), latest.texts
    for kind, before, now in compared(held_out, every):
        for bin_name, rows, texts in zip(names[kind], before, now, strict=True):
            yield metrics.HELD_OUT_ROWS, (kind, bin_name), rows
            yield metrics.DRIFT_TEXTS, (kind, bin_name), texts
    for kind, before, now in compared(held_out, latest):
        if latest.texts:
            yield metrics.DISTANCE, (kind,), psi(before, now)
            yield metrics.BY_CHANCE, (kind,), chance(before, latest.texts)
    if unknown is not None:
        yield metrics.UNKNOWN, (), every.unknown.unknown
        yield metrics.UNKNOWN_EXPECTED, (), unknown.before
        if latest.texts:
            yield metrics.UNKNOWN_SHARE, (), unknown.now
            yield metrics.UNKNOWN_BY_CHANCE, (), unknown.by_chance
