"""Where rows and answers go: a file that appears whole or not at all, or standard output, which gets whole rows."""

import gzip
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from textcls._util import interrupts
from textcls._util.atomic_write import atomic_write, no_space_for
from textcls.data import delimited, formats, jsonl, parquet
from textcls.data.rows import Format, Row
from textcls.data.source import STANDARD
from textcls.errors import ConfigError

WRITTEN: Final[tuple[Format, ...]] = ("csv", "tsv", "jsonl", "parquet")


class Writer(Protocol):
    """Takes rows and their answers."""

    def write(self, rows: Sequence[Row], answers: Sequence[Mapping[str, Any]]) -> None:
        """Write `rows`, each with its answer."""

    def close(self) -> None:
        """Write what is left."""

    def abandon(self) -> None:
        """Let go of the file, which is thrown away."""


def format_of(path: Path, asked: Format | None, read: Format) -> Format:
    """Return the format in which to write to `path`: asked for, that of its name, or on standard output that of `read`.

    Raises:
        ConfigError: neither the name nor the caller says one that can be written.
        MissingExtraError: it needs a package that is not installed.
    """
    same: Format = read if read in WRITTEN else "csv"
    found = asked or (same if path == STANDARD else formats.by_name(path))
    if found not in WRITTEN:
        raise ConfigError(
            f"The name {path} says no format that can be written; end it in .csv, .tsv, .jsonl or .parquet, "
            "with .gz behind it if you like, or give --output-format."
        )
    if found == "parquet":
        parquet.require()
    return found


@contextmanager
def open_writer(
    path: Path,
    kind: Format,
    columns: Sequence[str],
    added: Sequence[str],
    schema: Any = None,
    *,
    escape_formulas: bool = False,
) -> Iterator[Writer]:
    """Open `path` for rows with `columns` and answers with the columns `added`, `-` being standard output.

    Args:
        path: a file appears once all is written, and not at all when something goes wrong.
        kind: the format.
        columns: the columns of the rows; JSON lines take rows with others, too.
        added: the columns of the answers.
        schema: the types of the columns, if they are known.
        escape_formulas: whether a spreadsheet is to take no field of CSV or TSV for a formula.

    Raises:
        ConfigError: the format has no formulas to escape.
        SurroundingsError: the file cannot be written.
    """
    if escape_formulas and kind not in ("csv", "tsv"):
        raise ConfigError(f"Formulas are escaped in CSV and TSV; {kind} has none, so leave --escape-formulas out.")
    with _open(path) as file:
        writer: Writer
        if kind == "jsonl":
            writer = jsonl.Writer(file)
        elif kind == "parquet":
            writer = parquet.Writer(file, columns, added, schema)
        else:
            delimiter = "\t" if kind == "tsv" else ","
            writer = delimited.Writer(file, columns, added, delimiter, escape_formulas=escape_formulas)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    if path == STANDARD:
        with no_space_for("Standard output"):
            yield cast(IO[bytes], _WholeWrites())
        return
    with atomic_write(path) as file:
        if not formats.zipped(path):
            yield file
            return
        # Neither time nor name: the same rows give the same bytes.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            yield cast(IO[bytes], packed)


class _WholeWrites(io.RawIOBase):
    """Standard output, at once and without interruption: what is written is there as a whole before Ctrl-C counts."""

    def __init__(self) -> None:
        self.stream = sys.stdout.buffer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with interrupts.held_back():
            written = self.stream.write(data)
            self.stream.flush()
        return written
