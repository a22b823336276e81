"""What is written is read back, and nothing is lost or overwritten on the way."""

import errno
import gc
import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.tables import Write, copied, refusal, rows_of
from textcls import ConfigError, InputError
from textcls.data import Row, excel, rows, writing

TEXTS = st.text(st.characters(codec="utf-8"))
ROWS = st.lists(st.tuples(TEXTS, TEXTS), max_size=8).map(lambda rows: [{"text": a, "note": b} for a, b in rows])


@settings(max_examples=60)
@given(rows=ROWS)
@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.csv.gz", "a.tsv.gz", "a.jsonl.gz", "a.parquet.gz"]
)
def test_rows_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, name: str, rows: list[dict[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    kind = writing.format_of(path, None, "csv")
    with writing.open_writer(path, kind, ["text", "note"], []) as writer:
        writer.write([Row(i, row) for i, row in enumerate(rows)], [{} for _ in rows])
    if not rows and kind == "jsonl":
        assert "is empty" in refusal(path)
    else:
        # In a table of text a row of nothing is a blank line.
        blank = kind in ("csv", "tsv")
        assert rows_of(path) == [row for row in rows if not blank or any(row.values())]


@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.parquet"])
def test_a_field_that_the_first_lines_of_json_have_not_is_never_lost(
    write: Write, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("a.jsonl", '{"text": "a"}\n{"text": "b", "late": 1}\n')
    found = copied(path, tmp_path / name)
    assert [row["late"] in (1, "1") for row in found] == [False, True]
    monkeypatch.setattr(rows, "OBJECTS", 1)
    with pytest.raises(InputError, match=r"line 2: the first rows lack the field 'late'; write JSONL"):
        copied(path, tmp_path / name)
    assert copied(path, tmp_path / "b.jsonl") == [{"text": "a"}, {"text": "b", "late": 1}]


def test_a_field_called_as_the_answer_is_never_overwritten(write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", '{"text": "a"}\n{"text": "b", "answer": "mine"}\n')
    with pytest.raises(InputError, match=r"line 2: there is already a field 'answer', where the answer goes"):
        copied(path, tmp_path / "b.jsonl")


@pytest.mark.parametrize("name", ["answers", "answers.txt", "answers.json", "answers.gz"])
def test_a_name_that_says_no_format_to_write_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"does not say a format; end it in \.csv"):
        writing.format_of(Path(name), None, "csv")


def test_a_spreadsheet_for_which_there_is_no_room_leaves_no_archive_open() -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            if self.tell() + len(data) > 200:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)

    writer = excel.Writer(Full(), ["text"], ["label"])
    with pytest.raises(OSError, match="No space left"):
        writer.close()
    writer.abandon()
    del writer
    gc.collect()
