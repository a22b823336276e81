"""Tables in memory: pandas, polars, pyarrow, Hugging Face's `datasets`, or whatever else Arrow can read."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from textcls.data import arrow
from textcls.data.rows import Content
from textcls.data.storage import RemoteFile
from textcls.errors import InputError

# https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
_STREAM: Final = "__arrow_c_stream__"
_NO_TABLE: Final = "not a table; pass one of pandas, polars, pyarrow or datasets"
# Rows of a Hugging Face dataset read at a time.
_ROWS: Final = 1000


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """A table that is not a file.

    Attributes:
        table: the table object.
    """

    table: Any

    def __str__(self) -> str:
        return f"the {type(self.table).__name__}"

    def content(self) -> Content:
        """Return the columns and rows of the table.

        Raises:
            InputError: Arrow cannot read its columns.
            MissingExtraError: pyarrow is not installed.
        """
        schema, batches = self._batches()
        return arrow.content("arrow", str(self), schema, batches)

    def _batches(self) -> tuple[Any, Iterable[Any]]:
        pyarrow = arrow.pyarrow("A table in memory")
        if hasattr(self.table, _STREAM):
            reader = self._reader(pyarrow)
            return reader.schema, reader
        features: Any = getattr(self.table, "features", None)
        if hasattr(self.table, "with_format") and hasattr(features, "arrow_schema"):
            chunks = self.table.with_format("arrow").iter(batch_size=_ROWS)
            return features.arrow_schema, (batch for chunk in chunks for batch in chunk.to_batches())
        collected = " as .collect() returns it" if hasattr(self.table, "collect") else ""
        raise InputError(f"A {type(self.table).__name__} is {_NO_TABLE}{collected}.")

    def _reader(self, pyarrow: Any) -> Any:
        from_stream = pyarrow.RecordBatchReader.from_stream
        refusals = (pyarrow.ArrowException, TypeError, ValueError, OverflowError)
        try:
            return from_stream(self.table)
        except refusals:
            if not hasattr(self.table, "columns"):
                raise InputError(f"A {type(self.table).__name__} is {_NO_TABLE}.") from None
        try:
            return from_stream(_with_strings(self.table, pyarrow, refusals))
        except refusals as error:
            why = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(f"Columns of {self} have no Arrow type ({why}); leave them out.") from error


def _with_strings(table: Any, pyarrow: Any, refusals: tuple[type[Exception], ...]) -> Any:
    """Return a pandas table with strings in the columns that Arrow refuses, which contain values of several types.

    The strings are as in a CSV file; a missing value stays missing. Columns of lists and the like are left as they are.
    """
    if not hasattr(table, "assign") or not table.columns.is_unique:
        return table
    plain = table.copy(deep=False)
    for name in table.columns:
        try:
            pyarrow.array(table[name], from_pandas=True)
        except refusals:
            if not any(isinstance(value, Collection) and not isinstance(value, str) for value in table[name]):
                plain[name] = table[name].map(str, na_action="ignore")
    return plain


Readable = Path | RemoteFile | MemoryTable
