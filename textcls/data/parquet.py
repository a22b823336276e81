"""Parquet, read and written some rows at a time; uses pyarrow, from the extra `textcls[parquet]`."""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final

from textcls.data import arrow
from textcls.data.plain import NO_FORM
from textcls.data.rows import LONGEST, TOO_LONG, Content, Row, Unreadable, require_known, unpacks_to_too_much
from textcls.data.source import Source, seekable
from textcls.errors import InputError

MAGIC: Final = b"PAR1"
# A row group is held in memory while it is written: this many rows, or characters of text.
GROUP_ROWS, GROUP_CHARACTERS = 1 << 14, 1 << 24


def require() -> None:
    """Check before the work that Parquet can be written.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    arrow.pyarrow("Parquet", "parquet")


def read(source: Source) -> Content:
    """Read Parquet.

    Raises:
        InputError: it is not a Parquet file, or it is damaged.
        MissingExtraError: pyarrow is not installed.
    """
    pyarrow = arrow.pyarrow("Parquet", "parquet")
    if not source.peek().startswith(MAGIC):
        raise _damaged(source.name)
    try:
        # With pre-buffering, the default, the whole file would be in memory before its first row.
        stream = source.stack.enter_context(seekable(source))
        file = pyarrow.parquet.ParquetFile(stream, pre_buffer=False)
        packed = stream.seek(0, io.SEEK_END)
    except (pyarrow.ArrowException, OSError, OverflowError) as error:
        raise _damaged(source.name) from error
    return arrow.content("parquet", source.name, file.schema_arrow, _batches(source.name, file, packed, pyarrow))


def _damaged(name: str) -> InputError:
    return InputError(f"{name} is not a Parquet file, or it is damaged or cut off; copy or write it again.")


def _batches(name: str, file: Any, packed: int, pyarrow: Any) -> Iterator[Any]:
    first = 1
    try:
        for group in range(file.num_row_groups):
            _check_size(name, file.metadata.row_group(group), packed, first)
            yield from file.iter_batches(arrow.BATCH, row_groups=[group], use_threads=False)
            first += file.metadata.row_group(group).num_rows
    except (pyarrow.ArrowException, OSError, OverflowError) as error:
        raise _damaged(name) from error


def _check_size(name: str, group: Any, packed: int, first: int) -> None:
    """Refuse a row group, starting at row number `first`, that must contain a row longer than the limit.

    The metadata of its columns are not read: they may be damaged, and then pyarrow ends the process.

    Raises:
        InputError: its metadata say so, before anything is unpacked; `packed` is the size of the file in bytes.
    """
    unpacked = group.total_byte_size
    if unpacks_to_too_much(unpacked, packed):
        raise InputError(
            f"{name}, row {first} or after: a few bytes claim to be {unpacked:,}; write the file again, or as CSV."
        )
    if unpacked > LONGEST * max(1, group.num_rows):
        raise InputError(f"{name}, row {first} or after: {TOO_LONG}; write the file again with shorter rows.")


class Writer:
    """Writes rows and answers as Parquet, in row groups; columns read from Parquet keep their types."""

    def __init__(self, file: IO[bytes], columns: Sequence[str], added: Sequence[str], schema: Any = None) -> None:
        self.pyarrow = arrow.pyarrow("Parquet", "parquet")
        self.file, self.columns, self.added, self.given = file, columns, added, schema
        self.writer: Any = None
        self.rows: list[Row] = []
        self.answers: list[Mapping[str, Any]] = []
        self.characters = 0

    def write(self, rows: Sequence[Row], answers: Sequence[Mapping[str, Any]]) -> None:
        """Take `rows`, each with its answer, and write a row group once there are enough.

        Raises:
            InputError: a value does not fit the type of its column.
        """
        for row in rows:
            require_known(row, self.columns)
        self.rows += rows
        self.answers += answers
        self.characters += sum(len(value) for row in rows for value in row.fields.values() if isinstance(value, str))
        if len(self.rows) >= GROUP_ROWS or self.characters >= GROUP_CHARACTERS:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        if self.rows or self.writer is None:
            self._flush()
        self.writer.close()

    def abandon(self) -> None:
        """Write nothing more: what was written so far is discarded."""
        if self.writer is not None:
            # Otherwise its finalizer would write a footer to the file, which is closed by then.
            self.writer.is_open = False

    def _flush(self) -> None:
        columns = {name: self._column(name) for name in self.columns}
        answers = {name: self._answer(name) for name in self.added}
        table = self.pyarrow.table({**columns, **answers})
        if self.writer is None:
            self.writer = self.pyarrow.parquet.ParquetWriter(self.file, table.schema)
            self.given = table.schema
        self.writer.write_table(table, row_group_size=max(1, len(table)))
        self.rows, self.answers, self.characters = [], [], 0

    def _column(self, name: str) -> Any:
        fields = (row.fields.get(name) for row in self.rows)
        values = [None if isinstance(value, Unreadable) else value for value in fields]
        kind = self.given.field(name).type if self.given is not None and name in self.given.names else None
        if kind is None and all(value is None or isinstance(value, str) for value in values):
            kind = self.pyarrow.string()
        return self._array(name, values, kind)

    def _array(self, name: str, values: list[Any], kind: Any) -> Any:
        try:
            return self.pyarrow.array(values, kind)
        except UnicodeEncodeError as error:
            raise InputError(f"{self.rows[0].where} or after: {NO_FORM} (column {name!r}).") from error
        except (self.pyarrow.ArrowException, OverflowError, TypeError, ValueError) as error:
            where = self.rows[0].where
            raise InputError(
                f"{where} or after: the values of column {name!r} do not fit a single Parquet type; write JSONL."
            ) from error

    def _answer(self, name: str) -> Any:
        """Return an answer column as an array of its type, whatever prefix its name has."""
        make = self.pyarrow
        string, number = make.string(), make.float64()
        values = [answer[name] for answer in self.answers]
        if self.writer is not None:
            kind = self.given.field(name).type
            return self._array(name, [_as_records(value, kind, make) for value in values], kind)
        first = next((value for value in values if value is not None), None)
        item = next((value[0] for value in values if isinstance(value, list) and value), None)
        plain = {str: string, int: number, float: number}
        if type(first) in plain:
            return self._array(name, values, plain[type(first)])
        if type(item) in plain:
            return self._array(name, values, make.list_(plain[type(item)]))
        contributions = make.list_(make.struct([("token", string), ("contribution", number)]))
        kinds = {
            "score": number,
            "scores": make.list_(number),
            "predicted_labels": make.list_(string),
            "top_labels": make.list_(make.struct([("label", string), ("score", number)])),
            "explanation": contributions,
            "explanations": make.list_(make.struct([("label", string), ("contributions", contributions)])),
        }
        usual = string if first is None else make.list_(string)
        kind = next((kind for end, kind in kinds.items() if name.endswith(end)), usual)
        return self._array(name, [_as_records(value, kind, make) for value in values], kind)


def _as_records(value: Any, kind: Any, pyarrow: Any) -> Any:
    """Return `value` with each pair in it as a record, if `kind` is a list of records."""
    if value is None or not pyarrow.types.is_list(kind):
        return value
    inner = kind.value_type
    if not pyarrow.types.is_struct(inner):
        return value
    fields = [(field.name, field.type) for field in inner]
    return [
        {name: _as_records(part, of, pyarrow) for (name, of), part in zip(fields, pair, strict=True)} for pair in value
    ]
