"""Tables in memory: of pandas, polars, pyarrow, Hugging Face's `datasets`, or whatever else Arrow can read."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from textcls.data import arrow
from textcls.data.rows import Content
from textcls.data.storage import RemoteFile
from textcls.errors import InputError

# https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
_STREAM: Final = "__arrow_c_stream__"
# Rows of a dataset of Hugging Face at a time.
_ROWS: Final = 1000


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """A table that is no file.

    Attributes:
        table: it.
    """

    table: Any

    def __str__(self) -> str:
        return f"the {type(self.table).__name__}"

    def content(self) -> Content:
        """Return its columns and rows.

        Raises:
            InputError: it does not give its columns to Arrow.
            MissingExtraError: pyarrow is not installed.
        """
        schema, batches = self._batches()
        return arrow.content("arrow", str(self), schema, batches)

    def _batches(self) -> tuple[Any, Iterable[Any]]:
        pyarrow = arrow.pyarrow("A table in memory")
        if hasattr(self.table, _STREAM):
            try:
                reader = pyarrow.RecordBatchReader.from_stream(self.table)
            except (pyarrow.ArrowException, TypeError, ValueError) as error:
                why = str(error).strip().splitlines()[0].rstrip(".")
                raise InputError(f"Columns of {self} have no Arrow type ({why}); leave them out.") from error
            return reader.schema, reader
        features: Any = getattr(self.table, "features", None)
        if hasattr(self.table, "with_format") and hasattr(features, "arrow_schema"):
            chunks = self.table.with_format("arrow").iter(batch_size=_ROWS)
            return features.arrow_schema, (batch for chunk in chunks for batch in chunk.to_batches())
        raise InputError(
            f"A {type(self.table).__name__} is not a table; pass one of pandas, polars, pyarrow or datasets."
        )


Readable = Path | RemoteFile | MemoryTable
