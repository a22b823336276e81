"""A list of objects in JSON, as `json.dump` or pandas' `to_json(orient="records")` writes it, read object by object;
uses ijson, from the extra `textcls[tables]`.
"""

import codecs
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any, Final

from textcls._util import optional_dependencies
from textcls.data.rows import LONGEST, TOO_LONG, Bad, Content, ReadOptions, Row, with_keys
from textcls.data.source import Source
from textcls.errors import InputError

DEEPEST: Final = 100


def _ijson() -> Any:
    with optional_dependencies.needed_by("A list in JSON"):
        import ijson
    return ijson


def read(source: Source, options: ReadOptions) -> Content:
    """Read a list of objects; the columns are the keys of the first ones.

    Raises:
        InputError: the list is empty, or its first item is not an object; also later, if the JSON is damaged.
        MissingExtraError: ijson is not installed.
    """
    rows = _rows(source, _ijson())
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source.name} holds an empty list; it needs at least one object.")
    if isinstance(first, Bad):
        raise InputError(f"{first.where}: {first.why}.")
    return Content("json", *with_keys(chain([first], rows), waits=options.stream))


class _RefusedError(Exception):
    """An item exceeds a limit; the message is a clause."""


class _Bounded:
    """The bytes of a file without its UTF-8 mark; reading fails once an item has too many."""

    def __init__(self, source: Source) -> None:
        self.file: IO[bytes] = source.stream
        if source.peek().startswith(codecs.BOM_UTF8):
            self.file.read(len(codecs.BOM_UTF8))
        self.since = 0

    def read(self, size: int = -1) -> bytes:
        # A character has at most four bytes, and an escaped one six.
        if self.since > 6 * LONGEST:
            raise _RefusedError(TOO_LONG)
        found = self.file.read(size)
        self.since += len(found)
        return found


def _rows(source: Source, ijson: Any) -> Iterator[Row | Bad]:
    file, number = _Bounded(source), 0
    try:
        for number, item in enumerate(_items(file, ijson), 1):
            file.since = 0
            if isinstance(item, dict):
                yield Row(number, item, source.name, "item")
            else:
                yield Bad(f"{source.name}, item {number}", f"expected an object, not a {type(item).__name__}")
    except _RefusedError as error:
        raise InputError(f"{source.name}, item {number + 1}: {error}; write JSON lines.") from error
    except (ijson.JSONError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        why, better = f"the JSON is damaged or cut off ({reason})", "JSON lines, where NaN and any number may stand"
        if "UTF" in reason:
            why, better = "bytes that are not UTF-8", "it again"
        raise InputError(
            f"{source.name}, item {number + 1}: {why}; check the file there, or write {better}."
        ) from error


def _items(file: _Bounded, ijson: Any) -> Iterator[object]:
    """Yield the items of the outermost list.

    `ijson.items` would do, but keeps the path of each bracket: a file of brackets alone would fill the memory.
    """
    depth, builder = 0, None
    for event, value in ijson.basic_parse(file, use_float=True):
        builder = builder or (ijson.ObjectBuilder() if depth == 1 else None)
        depth += (event in ("start_map", "start_array")) - (event in ("end_map", "end_array"))
        if depth > DEEPEST:
            raise _RefusedError(f"more than {DEEPEST} brackets within each other")
        if builder is not None and depth > 0:
            builder.event(event, value)
            if depth == 1:
                yield builder.value
                builder = None
