"""The report on labels that were learned from their names."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from textcls.display.terminal.console import table_of
from textcls.display.text import in_a_shell, named, percent, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNamesReport:
    """The result of learning labels from their names.

    Attributes:
        texts: how many texts there were.
        learned: how many of them the model has learned from.
        by: the source of the vectors that decide which name is near.
        sizes: for how many of the texts the model predicts each label.
        agreement: share of the held-out texts for which the model predicts the label whose name is nearest.
        epochs: passes over those it has learned from.
        file_bytes: size of the model.
        interrupted: whether the training was stopped early.
        seconds: how long each step took.
    """

    texts: int
    learned: int
    by: str
    sizes: Mapping[str, int]
    agreement: float
    epochs: int
    file_bytes: int
    interrupted: bool
    seconds: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {"objective": "label-names", **asdict(self)}

    def show(self, console: Console, output: Path) -> None:
        """Print the labels, how far to trust them, and what to do next."""
        console.print(
            Text(
                f"{plural(len(self.sizes), 'label')} by their names, as {self.by} knows them: learned from the "
                f"{self.learned:,} surest of {plural(self.texts, 'text')}, {plural(self.epochs, 'epoch')}."
            )
        )
        table = table_of(["label"], ["texts", "share"])
        for name, size in sorted(self.sizes.items(), key=lambda item: -item[1]):
            table.add_row(Text(named(name)), f"{size:,}", percent(size / max(1, self.texts), 1))
        console.print(table)
        console.print(
            Text(
                f"{percent(self.agreement, 1)} of the held-out texts get the label whose name is nearest. The "
                "model saw no labels, so only labelled rows can show how many are right."
            )
        )
        megabytes = f"{self.file_bytes / 1e6:.2f} MB"
        console.print(
            Text(f"{output}, {megabytes}. Next: textcls clusters {in_a_shell(output)} TEXTS --assign labelled.csv")
        )
