"""The clusters of texts, for the terminal."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.display.remarks import agreement_line, cluster_summary_line, telling_words
from textcls.display.text import named, one_line, percent
from textcls.explain.clusters.survey import Cluster, ClusterSurvey

WORDS: Final = 6
NARROWEST: Final = 30
# The width of the columns before the words, without the names.
TAKEN: Final = 30


def clusters_report(found: ClusterSurvey, width: int) -> Iterator[Table | Text]:
    """Yield the clusters, in lines of `width`: a summary, then a line each, with words and an example."""
    yield Text(cluster_summary_line(found))
    if found.agreement is not None:
        yield Text(agreement_line(found.agreement))
    yield Text()
    yield _table(found, width)


def _table(found: ClusterSurvey, width: int) -> Table:
    table = Table("cluster", box=None, pad_edge=False)
    for name in ("texts", "share", "score"):
        table.add_column(name, justify="right")
    if found.agreement is not None:
        table.add_column("label")
    table.add_column("words", no_wrap=True)
    table.add_column("example", no_wrap=True, overflow="ellipsis")
    names = max((len(named(cluster.name)) for cluster in found.clusters), default=0)
    room = max(NARROWEST, (width - names - TAKEN) // 2)
    for cluster in found.clusters:
        label = [] if found.agreement is None else [Text(named(cluster.matched or "-"))]
        table.add_row(
            *_numbers(cluster), *label, _cut(", ".join(telling_words(cluster, WORDS)), room), _example(cluster, room)
        )
    return table


def _numbers(cluster: Cluster) -> tuple[Text, ...]:
    return (
        Text(named(cluster.name)),
        Text(f"{cluster.texts:,}"),
        Text(percent(cluster.share)),
        Text(f"{cluster.score:.2f}"),
    )


def _example(cluster: Cluster, room: int) -> Text:
    found = _cut(one_line(cluster.examples[0].text) if cluster.examples else "", room)
    found.stylize("dim")
    return found


def _cut(text: str, room: int) -> Text:
    found = Text(text)
    found.truncate(room, overflow="ellipsis")
    return found
