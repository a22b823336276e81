"""Determine which format a file is in: what was asked for, else by its name, else by its first bytes."""

from pathlib import Path
from typing import Final, get_args

from textcls.data import arrow, compression, decoding, delimited, excel, fasttext, json_list, jsonl, parquet
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
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".xlsx": "xlsx",
    ".ft": "fasttext",
}
# The formats that have an encoding.
_TEXT: Final = ("csv", "tsv", "jsonl", "fasttext", "lines")
_TAR: Final = b"ustar"
# First bytes of files that people keep tables in but that cannot be read: what they are, and what to do.
_OTHERS: Final = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls); open it and save it as .xlsx or CSV",
    b"%PDF": "a PDF; copy its table into a CSV file",
    b"SQLite format 3": "a SQLite database; write a table of it with sqlite3 -csv -header FILE 'select * from TABLE'",
    b"ORC": "an ORC file; write it as Parquet with pyarrow: pyarrow.orc.read_table, pyarrow.parquet.write_table",
    b"Obj\x01": "an Avro file; write its records as JSON lines or Parquet",
    b"\x80\x04": "a pickle, which could run code when it is read; write Parquet with DataFrame.to_parquet",
    b"\x80\x05": "a pickle, which could run code when it is read; write Parquet with DataFrame.to_parquet",
    b"<!DOCTYPE html": "a web page; save its table as CSV",
    b"<html": "a web page; save its table as CSV",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it",
    _TAR: "a tar archive; unpack it, and name the files you mean",
    b"\x08\x0a\x3a": "a model (ONNX); name a table of texts",
    b"Rar!": "a RAR archive; unpack it",
}


def by_name(path: Path) -> Format | None:
    """Return the format that the name of `path` indicates, compressed or not; None if it indicates none."""
    return _SUFFIXES.get(_suffix(path))


def _suffix(path: Path) -> str:
    return (path if compression.by_name(path) is None else path.with_suffix("")).suffix.lower()


def read(source: Source, options: ReadOptions) -> Content:
    """Read `source` in its format.

    Raises:
        InputError: the format cannot be detected or is not supported, or the file is not in its format.
        ConfigError: an option does not go with the format.
        MissingExtraError: the format needs a package that is not installed.
    """
    found = options.format or _sniffed(source, options)
    _check_options(source, found, options)
    match found:
        case "parquet":
            return parquet.read(source)
        case "arrow":
            return arrow.read(source)
        case "xlsx":
            return excel.read(source, options)
        case "json":
            return json_list.read(source, options)
        case "jsonl":
            return jsonl.read(source, options)
        case "fasttext" | "lines":
            return fasttext.read(source, options, labels=found == "fasttext")
        case "csv" | "tsv":
            return delimited.read(source, options, "\t" if found == "tsv" else ",")


def _check_options(source: Source, kind: Format, options: ReadOptions) -> None:
    """Refuse options that do not go with the format.

    Raises:
        ConfigError: an option does not go with it.
    """
    of_csv, of_sheets = options.delimiter is not None or not options.quotes, not options.header
    if kind not in ("csv", "tsv") and (of_csv or (of_sheets and kind != "xlsx")):
        raise ConfigError(
            f"{source.name} is read as {kind}, to which --delimiter, --no-quotes and --no-header do not apply."
        )
    if kind not in _TEXT and options.encoding is not None:
        raise ConfigError(f"{source.name} is read as {kind}, to which --encoding does not apply.")
    if kind != "xlsx" and options.sheet is not None:
        raise ConfigError(f"{source.name} is read as {kind}, which has no sheets; leave --sheet out.")


def _sniffed(source: Source, options: ReadOptions) -> Format:
    first = source.peek()
    if source.workbook:
        return "xlsx"
    if first.startswith(parquet.MAGIC):
        return "parquet"
    if first.startswith((arrow.MAGIC, arrow.STREAM_MAGIC)):
        return "arrow"
    _refuse_known(source, first)
    encoding, _ = decoding.encoding_of(source, options)
    text = decoding.first_text(source, encoding).lstrip("\ufeff \t\r\n")
    if text.startswith(fasttext.PREFIX):
        return "fasttext"
    suffix = "" if source.path == STANDARD else _suffix(source.path)
    named = _SUFFIXES.get(suffix)
    if named == "json" or (named is None and suffix != ".txt" and text.startswith("[")):
        return _json(source, text)
    if named is not None:
        return named
    if text.startswith("{"):
        return "jsonl"
    return "csv" if suffix != ".txt" else _lines_or_columns(source, encoding)


def _refuse_known(source: Source, first: bytes) -> None:
    """Refuse a file in a known but unsupported format, and say what to do instead.

    Raises:
        InputError: it is such a file.
    """
    for magic, what in _OTHERS.items():
        if first.startswith(magic, 257 if magic == _TAR else 0):
            raise InputError(f"{source.name} is {what}.")


def _json(source: Source, text: str) -> Format:
    """Return the format of a file called .json: a list of objects, or one object per line."""
    if text.startswith("["):
        return "json"
    line, _, more = text.partition("\n")
    if text.startswith("{") and line.rstrip().endswith("}") and (not more.strip() or more.lstrip().startswith("{")):
        return "jsonl"
    raise InputError(
        f"{source.name} is JSON, but neither a list of objects nor one object per line; write one of the two, as "
        "'jq -c '.rows[]' file.json > file.jsonl' does."
    )


def _lines_or_columns(source: Source, encoding: str) -> Format:
    """Return the format of a file called .txt without labels: one text per line, unless it has columns."""
    columns = delimited.apparent_columns(source, encoding)
    if columns and not any(well_known(columns, kind) for kind in get_args(Kind)):
        raise InputError(f"{source.name} may hold columns or one text per line; add --format csv, tsv or lines.")
    return "csv" if columns else "fasttext"
