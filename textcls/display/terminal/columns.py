"""What columns beside the text add, for the terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.display.terminal.console import coloured, table_of
from textcls.display.text import MISSING, named, plural
from textcls.explain.columns import ColumnEffect

SHOWN_LABELS: Final = 6
SHOWN_VALUES: Final = 12


def column_report(effects: Sequence[ColumnEffect], labels: Sequence[str]) -> Iterator[Table | Text]:
    """Yield one table per column: its values, and what each adds to the labels that depend on it most."""
    for effect in effects:
        if not effect.largest:
            continue
        shown = effect.strongest_labels(SHOWN_LABELS)
        table = table_of([named(effect.name)], [named(labels[label]) for label in shown])
        values = effect.strongest_values(SHOWN_VALUES)
        for value in values:
            name = named(effect.values[value]) if effect.values[value] else MISSING
            table.add_row(Text(name), *(coloured(float(effect.added[value, label])) for label in shown))
        yield Text()
        yield table
        if hidden := int(effect.added.any(1).sum()) - len(values) if effect.kind == "table" else 0:
            yield Text(f"({plural(hidden, 'more value')}; --json has all)", style="dim")
