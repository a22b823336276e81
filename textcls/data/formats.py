"""Which format a file is in: what was asked for, else its name, else its first bytes."""

from pathlib import Path
from typing import Final, get_args

from textcls.data import decoding, delimited, fasttext, jsonl, parquet
from textcls.data.columns import Kind, well_known
from textcls.data.rows import Content, Format, ReadOptions
from textcls.data.source import STANDARD, Source
from textcls.errors import ConfigError, InputError

FORMATS: Final = get_args(Format)
_SUFFIXES: Final[dict[str, Format]] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ft": "fasttext",
}
_ZIP: Final = b"PK\x03\x04"


def by_name(path: Path) -> Format | None:
    """Return the format that the name of `path` says, whether gzipped or not; None if it says none."""
    return _SUFFIXES.get(_suffix(path))


def zipped(path: Path) -> bool:
    """Return whether the name of `path` says that it is gzipped."""
    return path.suffix.lower() == ".gz"


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if zipped(path) else path).suffix.lower()


def read(source: Source, options: ReadOptions) -> Content:
    """Read `source` in its format.

    Raises:
        InputError: the format cannot be told or is not read, or the file is not what it should be.
        ConfigError: an option does not go with the format.
        MissingExtraError: the format needs a package that is not installed.
    """
    found = options.format or _sniffed(source, options)
    csv_options = options.delimiter is not None or not options.quotes or not options.header
    if found not in ("csv", "tsv") and csv_options:
        raise ConfigError(
            f"{source.name} is read as {found}, for which there is neither --delimiter, --no-quotes nor --no-header."
        )
    if found == "parquet":
        if options.encoding is not None:
            raise ConfigError(f"{source.name} is read as parquet, for which there is no --encoding.")
        return parquet.read(source)
    if found == "jsonl":
        return jsonl.read(source, options)
    if found in ("fasttext", "lines"):
        return fasttext.read(source, options, labels=found == "fasttext")
    return delimited.read(source, options, "\t" if found == "tsv" else ",")


def _sniffed(source: Source, options: ReadOptions) -> Format:
    first = source.peek()
    if first.startswith(parquet.MAGIC):
        return "parquet"
    if first.startswith(_ZIP):
        raise InputError(f"{source.name} is a zip or Excel file; save its table as CSV.")
    encoding, _ = decoding.encoding_of(source, options)
    text = decoding.first_text(source, encoding).lstrip()
    if text.startswith(fasttext.PREFIX):
        return "fasttext"
    suffix = "" if source.path == STANDARD else _suffix(source.path)
    if suffix == ".json":
        raise InputError(
            f"{source.name} is JSON; write one object a line into a file called .jsonl, "
            "or add --format jsonl if it is so already."
        )
    named = _SUFFIXES.get(suffix)
    if named is not None:
        return named
    if text.startswith("{"):
        return "jsonl"
    return "csv" if suffix != ".txt" else _lines_or_columns(source, encoding)


def _lines_or_columns(source: Source, encoding: str) -> Format:
    """What is called .txt and has no labels holds one text a line, unless it has columns."""
    columns = delimited.apparent_columns(source, encoding)
    if columns and not any(well_known(columns, kind) for kind in get_args(Kind)):
        raise InputError(f"{source.name} may hold columns, or one text a line; add --format csv or tsv, or lines.")
    return "csv" if columns else "fasttext"
