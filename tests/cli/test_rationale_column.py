"""`textcls train --rationale-column`: human rationales reach the training from every format, or are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import fail, run, write_rows
from textcls import Classifier

HEAD = ("text", "label", "why")
ROWS = [
    ("my card was charged twice", "billing", '["charged twice"]'),
    ("where is my parcel", "shipping", ""),
    ("parcel is late", "shipping", "[[0, 6]]"),
]
SPANS = [((12, 25),), (), ((0, 6),)]


def test_rationales_are_read_from_a_column_of_csv(tmp_path: Path, train_call: dict[str, Any]) -> None:
    data = write_rows(tmp_path / "rows.csv", [HEAD, *ROWS])
    result = run("train", data, "--rationale-column", "why", "--rationale-weight", "3")
    assert train_call["source"].rationales == SPANS
    assert train_call["config"].rationale_weight == 3
    assert "Note: 2 of 3 rows have rationales in the column 'why'." in result.stderr.splitlines()


def test_rationales_of_json_lines_and_parquet_may_be_lists(tmp_path: Path, train_call: dict[str, Any]) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    marks: list[Any] = [["charged twice"], None, [[0, 6]]]
    rows = [{"text": text, "label": label, "why": why} for (text, label, _), why in zip(ROWS, marks, strict=True)]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fail_after_reading(data, "--quiet")
    assert train_call["source"].rationales == SPANS
    spans = [[list(span) for span in found] for found in SPANS]
    table = pyarrow.table({"text": [row[0] for row in ROWS], "label": [row[1] for row in ROWS], "why": spans})
    parquet.write_table(table, tmp_path / "rows.parquet")
    fail_after_reading(tmp_path / "rows.parquet", "--quiet")
    assert train_call["source"].rationales == SPANS


def fail_after_reading(data: Path, *more: str) -> None:
    assert fail(3, "train", data, "--rationale-column", "why", *more) == "Error: stopped.\n"


def test_a_rationale_that_the_text_does_not_hold_is_refused_with_its_place(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.csv", [HEAD, *ROWS, ("late again", "shipping", "[[4, 99]]")])
    message = fail(3, "train", data, "--rationale-column", "why")
    assert message == f"Error: {data}, line 5, column 'why': the text of 10 characters has no span [4, 99].\n"


def test_of_joined_columns_spans_count_in_the_joined_text(tmp_path: Path, train_call: dict[str, Any]) -> None:
    head = ("title", "body", "label", "why")
    rows = [("Late", "my parcel", "x", "[[8, 14]]"), ("Card", "charged", "y", "")]
    columns = ("--text-column", "title", "--text-column", "body", "--rationale-column", "why")
    fail(3, "train", write_rows(tmp_path / "rows.csv", [head, *rows]), *columns, "--quiet")
    ((span,), _) = train_call["source"].rationales
    assert train_call["source"].texts[0][slice(*span)] == "parcel"
    data = write_rows(tmp_path / "bad.csv", [head, *rows, ("a", "b", "y", "[[0, 9]]")])
    message = fail(3, "train", data, *columns, "--quiet")
    assert message.endswith("has no span [0, 9]; spans are of 'title' and 'body' joined, one a line.\n")


def test_a_row_whose_rationale_makes_no_sense_is_skipped_on_request(tmp_path: Path, train_call: dict[str, Any]) -> None:
    data = write_rows(tmp_path / "rows.csv", [HEAD, ROWS[0], ("late again", "shipping", "late"), *ROWS[1:]])
    result = run("train", data, "--rationale-column", "why", "--on-error", "skip", "--quiet")
    assert train_call["source"].texts == [row[0] for row in ROWS]
    assert train_call["source"].rationales == SPANS
    assert "Skipped 1 row that cannot be used" in result.stderr
    assert f"{data}, line 3, column 'why': a rationale is a JSON list" in result.stderr


def test_a_rationale_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.csv", [HEAD, *ROWS])
    assert "has no column 'wy'; it has 'text', 'label', 'why'" in fail(3, "train", data, "--rationale-column", "wy")


def test_a_weight_needs_what_it_is_of(tmp_path: Path, train_call: dict[str, Any]) -> None:
    data = write_rows(tmp_path / "rows.csv", [HEAD, *ROWS])
    assert "--rationale-weight needs --rationale-column" in fail(2, "train", data, "--rationale-weight", "3")
    for option in ("--unlabelled-weight", "--unlabelled-rows"):
        assert f"{option} needs --unlabelled, the file" in fail(2, "train", data, option, "3")
    assert "--rehearsal-rows needs --state, the folder" in fail(2, "train", data, "--rehearsal-rows", "3")
    assert "--mixing-rate needs --mixing, the layer" in fail(2, "train", data, "--mixing-rate", "3")
    result = run("train", data, "--quiet", TEXTCLS_TRAIN_RATIONALE_WEIGHT="3")
    assert result.stderr == "Error: stopped.\n"


def test_validation_rows_need_no_rationales(tmp_path: Path, train_call: dict[str, Any]) -> None:
    data = write_rows(tmp_path / "rows.csv", [HEAD, *ROWS])
    valid = write_rows(tmp_path / "valid.csv", [HEAD[:2], ROWS[0][:2]])
    fail_after_reading(data, "--valid", str(valid), "--quiet")
    assert train_call["valid"].rationales is None


def test_the_saved_model_says_how_many_rows_had_rationales(tmp_path: Path) -> None:
    rows = [(f"{text} {i}", label, why) for i in range(10) for text, label, why in ROWS]
    data = write_rows(tmp_path / "rows.csv", [HEAD, *rows])
    result = run("train", data, "--rationale-column", "why", "--epochs", "1", "--dim", "2", "--quiet")
    assert result.exit_code == 0, result.output
    assert Classifier.load(tmp_path / "rows.onnx").info.training["rationales"] == 20
