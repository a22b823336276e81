"""JSON lines: one object per line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import IO, Any

from textcls.data import decoding, plain
from textcls.data.rows import TOO_LONG, Bad, Content, ReadOptions, Row, with_keys
from textcls.data.source import Source
from textcls.errors import InputError


def read(source: Source, options: ReadOptions) -> Content:
    """Read JSON lines; the columns are the keys of the first objects.

    Raises:
        InputError: no line is an object.
    """
    encoding, notes = decoding.encoding_of(source, options)
    rows = _rows(source, encoding)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source.name} is empty; it needs at least one line with a JSON object.")
    columns, rows = with_keys(chain([first], rows), waits=options.stream)
    if not columns and isinstance(first, Bad):
        raise InputError(f"{first.where}: {first.why}.")
    return Content("jsonl", columns, rows, notes)


def _rows(source: Source, encoding: str) -> Iterator[Row | Bad]:
    for number, line in enumerate(decoding.Lines(decoding.open_text(source, encoding, "\n")), 1):
        if line is None:
            yield Bad(f"{source.name}, line {number}", f"{TOO_LONG}; shorten it or leave it out")
            continue
        if not line.strip():
            continue
        found = decoding.undecodable(line, encoding) or _parse(line)
        if isinstance(found, str):
            yield Bad(f"{source.name}, line {number}", found)
        else:
            yield Row(number, found, source.name)


def _parse(line: str) -> dict[str, Any] | str:
    """Return the object, or what is wrong with it."""
    try:
        found = json.loads(line.rstrip("\n"))
    except json.JSONDecodeError as error:
        return f"not valid JSON, {error.msg} at column {error.colno}; write one object per line"
    except (ValueError, RecursionError) as error:
        return f"JSON that cannot be read, {error}; write smaller numbers and fewer brackets"
    if isinstance(found, dict):
        return found
    return f'write one JSON object per line, such as {{"text": "..."}}, not a {type(found).__name__}'


class Writer:
    """Writes rows and answers as JSON lines; values that were read from JSON keep their types."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def write(self, rows: Sequence[Row], answers: Sequence[Mapping[str, Any]]) -> None:
        """Write `rows`, each with its answer.

        Raises:
            InputError: a row has a field with the same name as one of its answer, or bytes that are not UTF-8.
        """
        for row, answer in zip(rows, answers, strict=True):
            clash = next((name for name in answer if name in row.fields), None)
            if clash is not None:
                raise InputError(
                    f"{row.where}: there is already a field {clash!r}, where the answer goes; give it another name, as "
                    "with --prefix answer_."
                )
        self.file.write(b"".join(_line(row, answer) for row, answer in zip(rows, answers, strict=True)))

    def close(self) -> None:
        """Do nothing: nothing is left to write."""

    def abandon(self) -> None:
        """Do nothing: nothing is buffered."""


def _line(row: Row, answer: Mapping[str, Any]) -> bytes:
    fields: Any = {**row.fields, **answer}
    try:
        try:
            line = json.dumps(fields, ensure_ascii=False, default=plain.text_of, allow_nan=False)
        except ValueError:
            # NaN, with which tables mark a missing number, is not JSON.
            fields = _finite(fields)
            line = json.dumps(fields, ensure_ascii=False, default=plain.text_of)
        return line.encode() + b"\n"
    except UnicodeEncodeError:  # an unpaired surrogate, which JSON can only escape
        return json.dumps(fields, default=plain.text_of).encode() + b"\n"
    except UnicodeDecodeError as error:
        raise plain.no_text(row) from error


def _finite(value: object) -> object:
    """Return a value with null in place of numbers that JSON does not have."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value
