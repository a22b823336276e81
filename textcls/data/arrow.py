"""Arrow: tables in memory, Feather and Arrow streams, and what Parquet shares with them; uses pyarrow, from the extra
`textcls[parquet]`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from textcls._util import optional_dependencies
from textcls.data.rows import LONGEST, TOO_LONG, Bad, Content, Row
from textcls.data.source import Source, seekable
from textcls.errors import InputError

# An Arrow file, such as Feather; and an Arrow stream, which Hugging Face's `datasets` stores.
MAGIC: Final = b"ARROW1"
STREAM_MAGIC: Final = b"\xff\xff\xff\xff"
# Rows at a time: keeps few large values in memory at once, even if many rows of a file refer to the same one.
BATCH: Final = 64
# The metadata key under which a schema of Hugging Face's `datasets` describes its columns.
_DATASETS: Final = b"huggingface"


def pyarrow(what: str, part: str = "ipc") -> Any:
    """Return pyarrow, with its submodule `part` imported.

    Raises:
        MissingExtraError: it is not installed; `what` names what needs it.
    """
    with optional_dependencies.needed_by(what):
        import_module(f"pyarrow.{part}")
        import pyarrow
    return pyarrow


def read(source: Source) -> Content:
    """Read an Arrow file or stream.

    Raises:
        InputError: it is neither, or it is damaged.
        MissingExtraError: pyarrow is not installed.
    """
    arrow = pyarrow("Arrow")
    try:
        if source.peek().startswith(STREAM_MAGIC):
            reader = arrow.ipc.open_stream(source.stream)
            batches: Iterable[Any] = reader
        else:
            reader = arrow.ipc.open_file(source.stack.enter_context(seekable(source)))
            batches = map(reader.get_batch, range(reader.num_record_batches))
    except (arrow.ArrowException, OSError, OverflowError) as error:
        raise _damaged(source.name) from error
    return content("arrow", source.name, reader.schema, _careful(source.name, batches, arrow))


def _careful(name: str, batches: Iterable[Any], arrow: Any) -> Iterator[Any]:
    try:
        for batch in batches:
            # Arrow follows offsets wherever they lead, even out of the file.
            batch.validate(full=True)
            yield batch
    except (arrow.ArrowException, OSError, OverflowError) as error:
        raise _damaged(name) from error


def _damaged(name: str) -> InputError:
    return InputError(f"{name} is not an Arrow file, or it is damaged or cut off; copy or write it again.")


def content(kind: Any, name: str, schema: Any, batches: Iterable[Any]) -> Content:
    """Return the rows of `batches`, which have the `schema`; numbers that stand for class names become those names.

    Args:
        kind: the format.
        name: the name of the file.
        schema: the pyarrow schema.
        batches: pyarrow record batches.
    """
    classes = class_names(schema)
    notes = tuple(
        f"{name}: the numbers in column {column!r} are read as the names of their classes." for column in classes
    )
    return Content(kind, tuple(schema.names), _rows(name, batches, classes), notes, _named(schema, classes))


def class_names(schema: Any) -> dict[str, list[str]]:
    """Return, by column, the class names that the numbers in it stand for.

    Hugging Face's `datasets` writes them into the schema (https://huggingface.co/docs/datasets, `ClassLabel`).
    """
    try:
        features = json.loads((schema.metadata or {})[_DATASETS])["info"]["features"]
        found = {
            name: feature["names"]
            for name, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and name in schema.names
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
    return {name: names for name, names in found.items() if all(isinstance(one, str) for one in names)}


def _named(schema: Any, classes: Mapping[str, Sequence[str]]) -> Any:
    """Return the schema of the rows: without metadata, and with strings in place of class numbers."""
    schema = schema.remove_metadata()
    for name in classes:
        i = schema.get_field_index(name)
        schema = schema.set(i, schema.field(i).with_type(pyarrow("Arrow").string()))
    return schema


def _rows(name: str, batches: Iterable[Any], classes: Mapping[str, Sequence[str]]) -> Iterator[Row | Bad]:
    number = 0
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH):
            for fields in _short(batch.slice(start, BATCH)):
                number += 1
                row = Row(number, fields or {}, name, "row")
                if fields is None:
                    yield Bad(row.where, f"{TOO_LONG}; shorten it or leave it out")
                    continue
                for column, names in classes.items():
                    fields[column] = _class(fields[column], names)
                yield row


def _class(number: object, names: Sequence[str]) -> object:
    """Return the name of a class; None for -1, which `datasets` stores for a missing one."""
    if number == -1:
        return None
    return names[number] if isinstance(number, int) and 0 <= number < len(names) else number


def _short(batch: Any) -> Iterator[dict[str, Any] | None]:
    """Yield the fields of each row, or None for a row that is too long to convert to Python values."""
    if batch.nbytes > LONGEST:
        whole = [batch.slice(i, 1) for i in range(batch.num_rows)]
        for row in whole:
            yield None if row.nbytes > LONGEST else next(_fields(row))
    else:
        yield from _fields(batch)


def _fields(batch: Any) -> Iterator[dict[str, Any]]:
    names = batch.schema.names
    for values in zip(*(_values(column) for column in batch.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def _values(column: Any) -> list[Any]:
    """Return the values: times and decimals as pyarrow scalars, which lose nothing; all others as plain Python."""
    types = pyarrow("Arrow").types
    if types.is_temporal(column.type) or types.is_decimal(column.type):
        return [value if value.is_valid else None for value in column]
    found: list[Any] = column.to_pylist()
    return found
