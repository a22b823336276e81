"""All counts in Prometheus's text format."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from textcls import __version__
from textcls.evaluation.drift.tally import Bins
from textcls.server.monitoring import metrics
from textcls.server.monitoring.drift import drift_metrics
from textcls.server.monitoring.metrics import Numbers, generation_of

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class ShownModel(NamedTuple):
    """A model as the metrics show it: name, version, SHA-256, and the bins in which its answers are counted, if any."""

    name: str
    version: str
    sha256: str
    bins: Bins | None = None


def exposition(found: Sequence[Numbers], living: int, served: Sequence[ShownModel]) -> bytes:
    """Return the numbers of workers, the first `living` of which are alive, in Prometheus's text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    class Collector:
        def collect(self) -> "Iterator[Metric]":
            yield from _metrics(found, living, served)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return generate_latest(registry)


def _metrics(found: Sequence[Numbers], living: int, served: Sequence[ShownModel]) -> "Iterator[Metric]":
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    for family in metrics.FAMILIES:
        # A gauge of a dead worker no longer means anything.
        total = _total(found[:living] if family.gauge else found, family.name)
        metric: Any
        if family.bounds:
            metric = HistogramMetricFamily(family.name, family.about, labels=family.labels)
            for labels, numbers in total.items():
                names = [*map(str, family.bounds), "+Inf"]
                metric.add_metric(labels, list(zip(names, accumulate(numbers[:-1]), strict=True)), numbers[-1])
        else:
            kind = GaugeMetricFamily if family.gauge else CounterMetricFamily
            metric = kind(family.name, family.about, labels=family.labels)
            for labels, numbers in total.items():
                metric.add_metric(labels, numbers[0])
        yield metric
    yield GaugeMetricFamily("textcls_workers", "Workers alive.", value=living)
    least = min(map(generation_of, found[:living]), default=0)
    yield GaugeMetricFamily(metrics.GENERATION.name, metrics.GENERATION.about, value=least)
    info = GaugeMetricFamily(
        "textcls_model_info", "The models served: always 1.", labels=("model", "version", "sha256")
    )
    for model in served:
        info.add_metric((model.name, model.version, model.sha256), 1)
    yield info
    build = GaugeMetricFamily(
        "textcls_build_info", "The version of textcls that serves: always 1.", labels=("version",)
    )
    build.add_metric((__version__,), 1)
    yield build
    yield from drift_metrics(found, [(model.name, model.bins) for model in served])


def _total(found: Sequence[Numbers], name: str) -> Numbers:
    total: Numbers = defaultdict(list)
    for numbers in found:
        for (family, *labels), values in numbers.items():
            if family == name:
                before = total[tuple(labels)]
                total[tuple(labels)] = [a + b for a, b in zip(before, values, strict=True)] if before else values
    return total
