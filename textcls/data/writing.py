"""Write rows and answers: to a file that appears whole or not at all, or to standard output, which gets whole rows."""

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from textcls._util import interrupts
from textcls._util.atomic_write import atomic_write, check_output_path, no_space_for
from textcls.data import decoding, delimited, excel, formats, jsonl, parquet
from textcls.data.compression import by_name
from textcls.data.rows import Format, Row
from textcls.data.source import STANDARD
from textcls.errors import ConfigError

WRITTEN: Final[tuple[Format, ...]] = ("csv", "tsv", "jsonl", "parquet", "xlsx")
DELIMITED: Final = ("csv", "tsv")


class Writer(Protocol):
    """Takes rows and their answers."""

    def write(self, rows: Sequence[Row], answers: Sequence[Mapping[str, Any]]) -> None:
        """Write `rows`, each with its answer."""

    def close(self) -> None:
        """Write what remains."""

    def abandon(self) -> None:
        """Release the file, which is discarded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a file is written; None leaves it to the file's name, or to the format.

    Attributes:
        format: the format of the file, whatever its name says.
        delimiter: the character between the fields of CSV.
        encoding: Python's name for the encoding of CSV and TSV; `utf-8-sig` has the mark by which Excel detects UTF-8.
        escape_formulas: whether to escape CSV and TSV fields that a spreadsheet would take for formulas.
    """

    format: Format | None = None
    delimiter: str | None = None
    encoding: str | None = None
    escape_formulas: bool = False

    def check(self, kind: Format) -> None:
        """Refuse options that do not go with the format.

        Raises:
            ConfigError: an option does not go with it, or there is no such encoding.
        """
        if self.escape_formulas and kind not in DELIMITED:
            raise ConfigError(f"--escape-formulas applies to CSV and TSV; {kind} has no formulas, so leave it out.")
        if self.delimiter is not None and kind not in DELIMITED:
            raise ConfigError(f"--output-delimiter applies to CSV and TSV; {kind} has no delimiter, so leave it out.")
        if self.encoding is not None:
            if kind not in DELIMITED:
                raise ConfigError(
                    f"--output-encoding applies to CSV and TSV; {kind} has a fixed encoding, so leave it out."
                )
            decoding.text_encoding(self.encoding)


def format_of(path: Path, asked: Format | None, read: Format, advice: str = ", or add --output-format") -> Format:
    """Return the format to write to `path`: the one asked for, that of its name, or on standard output that of `read`.

    `advice` says what else helps if the name indicates no format.

    Raises:
        ConfigError: neither the name nor the caller gives a format that can be written.
        MissingExtraError: it needs a package that is not installed.
    """
    same: Format = read if read in WRITTEN and read != "xlsx" else "csv"
    found = asked or (same if path == STANDARD else formats.by_name(path))
    if found not in WRITTEN:
        raise ConfigError(
            f"The name {path} does not say a format; end it in .csv, .tsv, .jsonl, .parquet or .xlsx, optionally "
            f"followed by .gz, .bz2, .xz or .zst{advice}."
        )
    if found == "parquet":
        parquet.require()
    if found == "xlsx":
        excel.require()
    return found


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that a command writes in addition to its results: its path and format, checked before the work.

    Attributes:
        path: the path of the file, whose name indicates the format.
        kind: the format.
        options: how it is written.
    """

    path: Path
    kind: Format
    options: WriteOptions

    @classmethod
    def at(cls, path: Path, *, escape_formulas: bool) -> "NewTable":
        """Check all that can be checked before there is anything to write.

        Raises:
            ConfigError: the name indicates no format, or formulas are to be escaped in a format that has none.
            MissingExtraError: the format needs a package that is not installed.
            SurroundingsError: nothing can be written there.
        """
        check_output_path(path)
        kind, options = format_of(path, None, "csv", advice=""), WriteOptions(escape_formulas=escape_formulas)
        options.check(kind)
        return cls(path, kind, options)

    def open(self, columns: Sequence[str], added: Sequence[str]) -> AbstractContextManager[Writer]:
        """Open the table for rows with `columns` and answers with the columns `added`, as `open_writer` does."""
        return open_writer(self.path, self.kind, columns, added, options=self.options)


@contextmanager
def open_writer(
    path: Path,
    kind: Format,
    columns: Sequence[str],
    added: Sequence[str],
    schema: Any = None,
    options: WriteOptions | None = None,
) -> Iterator[Writer]:
    """Open `path` for rows with `columns` and answers with the columns `added`; `-` is standard output.

    Args:
        path: the file, which appears once everything is written, and not at all if something goes wrong.
        kind: the format.
        columns: the columns of the rows; JSON lines accept rows with others, too.
        added: the columns of the answers.
        schema: the types of the columns, if they are known.
        options: how to write.

    Raises:
        ConfigError: an option does not go with the format.
        SurroundingsError: the file cannot be written.
    """
    options = options or WriteOptions()
    options.check(kind)
    with _open(path) as file:
        writer = _writer(file, kind, columns, added, schema, options)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise


def _writer(
    file: IO[bytes], kind: Format, columns: Sequence[str], added: Sequence[str], schema: Any, options: WriteOptions
) -> Writer:
    if kind == "parquet":
        return parquet.Writer(file, columns, added, schema)
    if kind == "xlsx":
        return excel.Writer(file, columns, added)
    if kind == "jsonl":
        return jsonl.Writer(file)
    return delimited.Writer(
        file,
        columns,
        added,
        options.delimiter or ("\t" if kind == "tsv" else ","),
        encoding=options.encoding or "utf-8",
        escape_formulas=options.escape_formulas,
    )


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    if path == STANDARD:
        with no_space_for("Standard output"):
            yield cast(IO[bytes], _WholeWrites())
        return
    with atomic_write(path) as file:
        compression = by_name(path)
        if compression is None:
            yield file
            return
        with compression.pack(file) as packed:
            yield packed


class _WholeWrites(io.RawIOBase):
    """Standard output, unbuffered and uninterrupted: Ctrl-C takes effect only after all of a write is out."""

    def __init__(self) -> None:
        self.stream = sys.stdout.buffer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with interrupts.held_back():
            written = self.stream.write(data)
            self.stream.flush()
        return written
