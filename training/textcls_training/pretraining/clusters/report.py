"""The report on clusters that were learned."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from textcls.display.terminal.console import table_of
from textcls.display.text import in_a_shell, named, percent, plural
from textcls_training.models.vectors_report import VectorsReport


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutInformation:
    """The quality of clusters on held-out texts, two views of each.

    Attributes:
        texts: the number of held-out texts.
        information: the lower bound of the mutual information of the two views' clusters, in nats;
            at most the logarithm of their number.
        agreement: the share of the texts whose views predict the same cluster.
    """

    texts: int
    information: float
    agreement: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClustersReport:
    """The result of learning clusters.

    Attributes:
        texts: the number of texts learned from.
        sizes: how many of them each cluster has.
        epochs: the number of passes over them.
        held_out: the quality on held-out texts.
        vectors: the origin of the vectors of words, if there are any.
        file_bytes: size of the model.
        interrupted: whether the training was stopped early.
        seconds: how long each step took.
    """

    texts: int
    sizes: Mapping[str, int]
    epochs: int
    held_out: HeldOutInformation
    vectors: VectorsReport | None
    file_bytes: int
    interrupted: bool
    seconds: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {"objective": "mutual-information", **asdict(self)}

    def show(self, console: Console, output: Path) -> None:
        """Print the clusters, their quality, and what to do next."""
        found = self.held_out
        clusters = plural(len(self.sizes), "cluster")
        console.print(Text(f"{plural(self.texts, 'text')} in {clusters}, {plural(self.epochs, 'epoch')}."))
        table = table_of(["cluster"], ["texts", "share"])
        for name, size in sorted(self.sizes.items(), key=lambda item: -item[1]):
            table.add_row(Text(named(name)), f"{size:,}", percent(size / max(1, self.texts), 1))
        console.print(table)
        console.print(
            Text(
                f"Two halves of a held-out text ({found.texts:,}) share {found.information:.2f} nats, out of "
                f"{math.log(len(self.sizes)):.2f} at most, and name the same cluster in "
                f"{percent(found.agreement, 1)}."
            )
        )
        if self.vectors is not None:
            console.print(Text(self.vectors.sentence()))
        megabytes = f"{self.file_bytes / 1e6:.2f} MB"
        console.print(
            Text(f"{output}, {megabytes}. Next: textcls clusters {in_a_shell(output)} TEXTS --output clusters.html")
        )
