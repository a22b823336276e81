"""The versions of a registry, for the terminal."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.display.text import one_line, percent, plural, short
from textcls.versions.folder import Listed
from textcls.versions.record import State, Version

# The number of characters of a note that are shown.
_NOTE: Final = 60


def versions_table(folder: Path, state: State, listed: Sequence[Listed]) -> Iterator[Table | Text]:
    """Yield which versions there are, the newest first, and which of them is promoted."""
    if not listed:
        yield Text(f"{state.name}: there is no version in {folder} yet.")
        return
    promoted = "none is promoted" if state.promoted is None else f"version {state.promoted} is promoted"
    yield Text(f"{state.name}: {plural(len(listed), 'version')} in {folder}; {promoted}.\n")
    table = Table(box=None, pad_edge=False)
    for head, justify in (("version", "right"), ("", "left"), ("published", "left"), ("held out", "right")):
        table.add_column(head, justify=justify)  # type: ignore[arg-type]
    for head, justify in (("labels", "right"), ("MB", "right"), ("by", "left"), ("note", "left")):
        table.add_column(head, justify=justify)  # type: ignore[arg-type]
    for one in reversed(listed):
        table.add_row(str(one.number), Text(_role(state, one), style="bold"), *_cells(one.version))
    yield table
    if state.promoted is not None and state.promoted not in {one.number for one in listed}:
        yield Text(f"\nVersion {state.promoted} is promoted, and its folder is not there.")
    for one in listed:
        if one.problem is not None:
            yield Text(f"\nVersion {one.number} cannot be used: {one.problem}")


def _role(state: State, one: Listed) -> str:
    if one.problem is not None:
        return "damaged"
    return "promoted" if one.number == state.promoted else ""


def _cells(version: Version | None) -> list[Text]:
    if version is None:
        return []
    published = version.created[:16].replace("T", " ")
    cells = (published, _held_out(version), f"{version.labels:,}", f"{version.bytes / 1e6:.2f}")
    return [Text(cell) for cell in (*cells, one_line(version.by or ""), short(version.note or "", _NOTE))]


def _held_out(version: Version) -> str:
    """Return the figure of held-out rows: accuracy, or micro-F1 with several labels per text."""
    for name, prefix in (("held_out_accuracy", ""), ("held_out_micro_f1", "F1 ")):
        if name in version.held_out:
            return f"{prefix}{percent(version.held_out[name])}"
    return ""
