"""Which format a file is in: by its name, by its first bytes, or as it was asked for."""

import csv
import gzip
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow
import pyarrow.ipc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.tables import CSV, JSONL, LINES, TSV, TWO, Write, copied, feed, parquet, refusal, rows_of
from textcls import ConfigError
from textcls.data import open_table, writing
from textcls.data.rows import Row


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("a.CSV", CSV),
        ("a.tsv", TSV),
        ("a.tab", TSV),
        ("a.jsonl", JSONL),
        ("a.ndjson", JSONL),
        ("a.ft", LINES),
        ("a.txt", LINES),
        ("a.data", CSV),
        ("a.data", TSV),
        ("a.data", JSONL),
        ("a.data", LINES),
        ("a", "\n\n" + LINES),
        ("a.txt", TSV),
    ],
)
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_a_file_is_read_by_its_name_or_by_its_first_bytes(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, content: str, zipped: bool
) -> None:
    data = gzip.compress(content.encode()) if zipped else content.encode()
    path = write(name + ".gz" * zipped, data)
    assert rows_of(path) == TWO
    feed(monkeypatch, data)
    assert rows_of(Path("-")) == TWO


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_parquet_is_read_by_its_name_by_its_first_bytes_and_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool
) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["a", "b, c"], "label": ["x", "y"]})
    data = gzip.compress(path.read_bytes()) if zipped else path.read_bytes()
    for name in ("a.pq", "a.data"):
        (tmp_path / name).write_bytes(data)
        assert rows_of(tmp_path / name) == TWO
    feed(monkeypatch, data)
    assert rows_of(Path("-")) == TWO


def test_the_format_that_was_asked_for_counts_more_than_the_name(write: Write) -> None:
    assert rows_of(write("a.csv", JSONL), format="jsonl") == TWO


def test_a_json_file_may_hold_a_list_of_objects_or_an_object_a_line(write: Write) -> None:
    assert rows_of(write("a.json", json.dumps(TWO, indent=1))) == TWO
    assert rows_of(write("a.json", JSONL)) == TWO
    assert "neither a list of objects nor one object per line" in refusal(
        write("b.json", json.dumps({"rows": TWO}, indent=1))
    )


@pytest.mark.parametrize("options", [{"delimiter": ";"}, {"quotes": False}])
def test_options_of_csv_do_not_go_with_other_formats(write: Write, options: dict[str, Any]) -> None:
    assert "--delimiter, --no-quotes and --no-header do not apply" in refusal(
        write("a.jsonl", JSONL), ConfigError, **options
    )


def test_plain_lines_are_texts_and_nothing_else(write: Write) -> None:
    path = write("texts.csv", "hello, world\n\n__label__x is text here\n")
    assert rows_of(path, format="lines") == [{"text": "hello, world"}, {"text": "__label__x is text here"}]


# gzip


@pytest.mark.parametrize("keep", [30, 200])
def test_a_gzip_file_that_is_cut_off_is_told(write: Write, keep: int) -> None:
    packed = gzip.compress("".join(f"{i * 7919}\n" for i in range(20_000)).encode())
    assert "is cut off: its compressed data ends too early" in refusal(
        write("a.csv.gz", packed[: len(packed) * keep // 300])
    )


def test_a_gzip_file_that_is_damaged_is_told(write: Write) -> None:
    packed = bytearray(gzip.compress(CSV.encode() * 100))
    packed[20:40] = bytes(20)
    assert "is damaged: its compressed data cannot be unpacked" in refusal(write("a.csv.gz", bytes(packed)))


def test_the_same_rows_give_the_same_bytes_in_gzip(write: Write, tmp_path: Path) -> None:
    path = write("a.csv", CSV)
    for name in ("b.csv.gz", "c.csv.gz"):
        copied(path, tmp_path / name)
    assert (tmp_path / "b.csv.gz").read_bytes() == (tmp_path / "c.csv.gz").read_bytes()
    with gzip.open(tmp_path / "b.csv.gz", "rt", encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file))) == 3


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wrong", [2**31 - 1, -5, 5_000])
def test_an_arrow_file_whose_offsets_lead_elsewhere_is_damaged(tmp_path: Path, wrong: int, stream: bool) -> None:
    texts = pyarrow.array(["first text", "second text", "third"])
    offsets = np.frombuffer(texts.buffers()[1], np.int32).copy()
    offsets[2] = wrong
    buffers = [None, pyarrow.py_buffer(offsets), texts.buffers()[2]]
    batch = pyarrow.record_batch([pyarrow.Array.from_buffers(pyarrow.string(), 3, buffers)], ["text"])
    path = tmp_path / "a.arrow"
    new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with pyarrow.OSFile(str(path), "wb") as file, new(file, batch.schema) as writer:
        writer.write_batch(batch)
    assert "is not an Arrow file, or it is damaged or cut off" in refusal(path)


def test_a_workbook_whose_parts_are_said_to_be_encrypted_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["text", "label"])
    book.save(path)
    content = bytearray(path.read_bytes())
    at = -1
    while (at := content.find(b"PK\x01\x02", at + 1)) >= 0:
        content[at + 8] |= 1
    path.write_bytes(content)
    assert "is not an Excel file (.xlsx), or it is damaged" in refusal(path)


def test_a_workbook_of_endless_empty_strings_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["text", "label"])
    book.save(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", b"<si/>" * 30_000_000)
    assert path.stat().st_size < 1_000_000
    assert "which is too much; save its table as CSV" in refusal(path)


def test_a_sheet_holds_large_numbers_as_text_and_no_character_that_breaks_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.xlsx"
    with writing.open_writer(path, "xlsx", ["text", "id"], []) as writer:
        writer.write([Row(1, {"text": "a\ufffeb\x0bc\r\n", "id": 1234567890123456789})], [{}])
    rows = [[cell.value for cell in row] for row in openpyxl.load_workbook(path).active]
    # As Excel writes signs that XML has not.
    assert rows == [["text", "id"], ["a_xFFFE_b_x000B_c_x000D_\n", "1234567890123456789"]]


@given(st.text(st.sampled_from("ab_x0F1D5\x0b\x07\r\n\ufffe"), max_size=30))
def test_texts_come_back_from_a_sheet_as_they_were(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.xlsx"
        with writing.open_writer(path, "xlsx", ["text"], []) as writer:
            writer.write([Row(1, {"text": f"a{text}b"})], [{}])
        with open_table(path) as table:
            assert [row.fields["text"] for row in table.rows] == [f"a{text}b"]


@pytest.mark.parametrize(
    ("member", "said"), [("content.xml", "an OpenDocument file"), ("xl/workbook.bin", "a binary Excel file")]
)
def test_documents_that_are_no_tables_of_ours_are_named(tmp_path: Path, member: str, said: str) -> None:
    path = tmp_path / "rows.ods"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("mimetype", member):
            archive.writestr(name, "<x/>")
    assert f"rows.ods is {said}; save it as .xlsx or .csv." in refusal(path)
