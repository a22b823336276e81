"""Where the rows of files are, for messages."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from textcls.data.rows import Row


@dataclass(slots=True)
class Places:
    """Where rows are, in little memory: one number per row."""

    lines: "array[int]" = field(default_factory=lambda: array("q"))
    # (number of the first row, file, unit)
    files: list[tuple[int, str, str]] = field(default_factory=list)

    def append(self, row: Row) -> None:
        """Add the place of `row`."""
        if not self.files or self.files[-1][1] != row.file:
            self.files.append((len(self.lines), row.file, row.unit))
        self.lines.append(row.line)

    def __getitem__(self, i: int) -> str:
        file, unit = self._file(i)
        return f"{file}, {unit} {self.lines[i]}"

    def _file(self, i: int) -> tuple[str, str]:
        _, file, unit = self.files[bisect_right(self.files, i, key=itemgetter(0)) - 1]
        return file, unit

    def only(self, rows: Sequence[int]) -> "Places":
        """Return the places of the rows with these numbers, which are in ascending order."""
        found = Places()
        for i in rows:
            file, unit = self._file(i)
            found.append(Row(self.lines[i], {}, file, unit))
        return found
