"""Tables that tests write, read back, and copy from format to format."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from textcls import InputError
from textcls.data import ReadOptions, open_table, writing

Write = Callable[[str, bytes | str], Path]
TWO = [{"text": "a", "label": "x"}, {"text": "b, c", "label": "y"}]
CSV, TSV = 'text,label\na,x\n"b, c",y\n', "text\tlabel\na\tx\nb, c\ty\n"
JSONL = '{"text": "a", "label": "x"}\n\n{"text": "b, c", "label": "y"}\n'
LINES = "__label__x a\n__label__y b, c\n"


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def rows_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    with open_table(path, ReadOptions(**options)) as table:
        return [row.fields for row in table.rows]


def notes_of(path: Path) -> list[str]:
    with open_table(path) as table:
        return table.notes


def refusal(path: Path, kind: type[Exception] = InputError, **options: Any) -> str:
    """The one sentence with which reading `path` is refused."""
    with pytest.raises(kind, match=r"\A[^\n]+\Z") as caught:
        rows_of(path, **options)
    return str(caught.value)


def copied(source: Path, target: Path, chunk: int = 1000) -> list[dict[str, Any]]:
    """Write the rows of `source` to `target`, each with an answer, and read them back without it."""
    with open_table(source) as table:
        kind = writing.format_of(target, None, table.format)
        with writing.open_writer(target, kind, table.columns, ["answer"], table.schema) as writer:
            rows = list(table.rows)
            for i in range(0, len(rows), chunk):
                part = rows[i : i + chunk]
                writer.write(part, [{"answer": "yes"}] * len(part))
    back = rows_of(target)
    assert all(row.pop("answer") == "yes" for row in back)
    return back


class Piped(io.BytesIO):
    """Standard input of a test, which is not a file of the system."""

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Piped(content)))
