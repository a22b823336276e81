"""Parquet: types and values are kept, rows are read as they come, and damaged files are told."""

import gc
import io
import random
import sys
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.data.tables import Write, copied, parquet, refusal
from textcls import InputError, MissingExtraError
from textcls.data import Row, open_table, read_labelled, writing
from textcls.data import parquet as parquet_module


def test_without_pyarrow_the_command_to_type_is_told(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refusal(write("a.parquet", b"PAR1"), MissingExtraError) == (
        "Parquet needs the package 'pyarrow', which is not installed (about 170 MB); "
        'run: pip install "textcls[parquet]"'
    )
    with pytest.raises(MissingExtraError, match="Parquet needs the package 'pyarrow'"):
        writing.format_of(Path("b.parquet"), None, "csv")


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1 and nothing of the kind PAR1", b""])
def test_a_file_that_is_no_parquet_is_told(write: Write, content: bytes) -> None:
    assert "is not a Parquet file, or it is damaged or cut off" in refusal(write("a.parquet", content))


def test_a_parquet_file_that_is_cut_off_is_told(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": [f"text {i}" for i in range(5000)]})
    path.write_bytes(path.read_bytes()[:-100])
    assert "is damaged or cut off" in refusal(path)


@pytest.mark.parametrize("late", [["a", "b"], "a", 0.5, None])
def test_answers_keep_the_type_of_the_first_ones(tmp_path: Path, late: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_module, "GROUP_ROWS", 1)
    added = ["answer_my-score", "score", "our predicted_labels"]
    with writing.open_writer(tmp_path / "a.parquet", "parquet", ["text"], added) as writer:
        for answer in (late, None, late):
            writer.write([Row(1, {"text": "x"})], [dict(zip(added, (answer, None, []), strict=True))])
    found = pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert [row["answer_my-score"] for row in found] == [late, None, late]
    schema = pyarrow.parquet.read_schema(tmp_path / "a.parquet")
    assert (str(schema.field("score").type), str(schema.field("our predicted_labels").type)) == (
        "double",
        "list<element: string>",
    )


def test_rows_of_parquet_are_told_by_number(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["a", "b"], "label": [1, None]})
    with pytest.raises(InputError, match=r"a\.parquet, row 2: the label in column 'label' is empty"):
        read_labelled(path)


def test_columns_of_parquet_keep_their_types_and_values(tmp_path: Path) -> None:
    columns = {
        "text": pyarrow.array(["a", "b"]),
        "when": pyarrow.array([1, 10**18 + 1], pyarrow.timestamp("ns", "UTC")),
        "day": pyarrow.array([1, None], pyarrow.date32()),
        "price": pyarrow.array(["1.10", "2.00"]).cast(pyarrow.decimal128(5, 2)),
        "kind": pyarrow.array(["p", "q"]).dictionary_encode(),
        "small": pyarrow.array([1, None], pyarrow.int8()),
        "tags": pyarrow.array([["p"], None], pyarrow.list_(pyarrow.string())),
        "raw": pyarrow.array([b"\0\xff", None]),
    }
    path = parquet(tmp_path / "a.parquet", columns)
    copied(path, tmp_path / "b.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "b.parquet").drop(["answer"]).equals(pyarrow.table(columns))
    shown = copied(parquet(tmp_path / "a.parquet", columns | {"raw": [b"\xc3\xa9", None]}), tmp_path / "b.csv")[1]
    assert (shown["price"], shown["small"], shown["tags"]) == ("2.00", "", "")
    assert shown["when"].startswith("2001-09-09 01:46:40.000000001")


@pytest.mark.parametrize(
    ("value", "nested", "as_csv", "as_json"),
    [
        (date(2026, 11, 3), "list", '["2026-11-03"]', ["2026-11-03"]),
        (Decimal("1.10"), "struct", '{"a": "1.10"}', {"a": "1.10"}),
        ("\u00e9".encode(), "list", '["\u00e9"]', ["\u00e9"]),
        ("\u00e9".encode(), None, "\u00e9", "\u00e9"),
    ],
)
def test_what_only_parquet_has_a_type_for_is_text_elsewhere(
    tmp_path: Path, value: Any, nested: str | None, as_csv: str, as_json: Any
) -> None:
    held = {"list": [value], "struct": {"a": value}, None: value}[nested]
    path = parquet(tmp_path / "a.parquet", {"more": [held]})
    assert copied(path, tmp_path / "b.csv") == [{"more": as_csv}]
    assert copied(path, tmp_path / "b.jsonl") == [{"more": as_json}]


@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.jsonl"])
@pytest.mark.parametrize("held", [b"\xff", [b"\xff"]])
def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path: Path, name: str, held: Any) -> None:
    fine = [b"a"] if isinstance(held, list) else b"a"
    path = parquet(tmp_path / "a.parquet", {"text": ["a", "b"], "raw": [fine, held]})
    with pytest.raises(InputError, match=r"a\.parquet, row 2: column 'raw' holds bytes .*; write Parquet, or leave"):
        copied(path, tmp_path / name)
    assert list(tmp_path.iterdir()) == [path]


def test_a_label_of_bytes_is_no_label(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["a"], "label": [b"x"]})
    with pytest.raises(InputError, match=r"row 1: the label in column 'label' is bytes; write it as a string\."):
        read_labelled(path)


def test_when_writing_parquet_fails_nothing_is_said_but_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    monkeypatch.setattr("textcls.data.parquet.GROUP_ROWS", 1)

    def fail_half_way() -> None:
        with writing.open_writer(tmp_path / "b.parquet", "parquet", ["text"], []) as writer:
            writer.write([Row(1, {"text": "a"})], [{}])
            raise InputError("The second row is wrong.")

    with pytest.raises(InputError, match=r"The second row is wrong\."):
        fail_half_way()
    gc.collect()
    assert unraisable == []
    assert list(tmp_path.iterdir()) == []


class Counted(io.BytesIO):
    """A file that counts what is read of it."""

    read_bytes = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.read_bytes += len(found)
        return found


def test_the_first_row_of_parquet_is_there_before_the_last_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [random.Random(i).randbytes(100).hex() for i in range(10_000)]
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), path, row_group_size=1000)
    counted = Counted(path.read_bytes())
    monkeypatch.setattr("textcls.data.parquet.seekable", lambda _: nullcontext(counted))
    with open_table(path) as table:
        assert next(table.rows).fields == {"text": texts[0]}
        assert counted.read_bytes < path.stat().st_size / 3


def test_a_long_parquet_file_is_written_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textcls.data.parquet.GROUP_ROWS", 100)
    path = parquet(tmp_path / "a.parquet", {"text": [f"text {i}" for i in range(1050)]})
    assert copied(path, tmp_path / "b.parquet", 50) == [{"text": f"text {i}"} for i in range(1050)]
    assert pyarrow.parquet.ParquetFile(tmp_path / "b.parquet").num_row_groups == 11


def test_half_a_character_is_told_and_not_blamed_on_a_type(write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", '{"text": "\\ud83d half"}\n')
    with pytest.raises(InputError, match=r"an unpaired surrogate cannot be written as UTF-8; .*text"):
        copied(path, tmp_path / "b.parquet")


def test_values_that_fit_no_one_type_of_parquet_are_told(write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", '{"text": "a", "n": 1}\n{"text": "b", "n": "two"}\n')
    with pytest.raises(InputError, match=r"the values of column 'n' do not fit a single Parquet type; write JSONL"):
        copied(path, tmp_path / "b.parquet")
    assert copied(path, tmp_path / "b.csv") == [{"text": "a", "n": "1"}, {"text": "b", "n": "two"}]


def test_a_row_group_of_a_few_bytes_that_claims_to_be_hundreds_of_megabytes_is_not_unpacked(tmp_path: Path) -> None:
    # Zeros, as Zstandard packs them: ten rows, each of a length that a row may have.
    path = parquet(tmp_path / "a.parquet", {"text": ["0" * 15_000_000] * 10}, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 100_000
    assert "a few bytes claim to be 150,0" in refusal(path)
