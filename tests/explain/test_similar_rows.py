"""Rows that an answer is like: by what words add, by hand and on the command line."""

import json
from math import hypot
from pathlib import Path

import pytest

from tests.command_line import fail, read_rows, succeed
from textcls import Classifier, InputError
from textcls.explain.similar_rows import similar_rows

TEXT = "my card was charged twice"
ROWS = [
    ("my card was charged twice", "billing"),
    ("zzqx 777", "billing"),
    ("Charged CARD", "returns"),
    ("card card parcel", "billing"),
]


def test_rows_are_as_alike_as_what_their_words_add(classifier: Classifier) -> None:
    explanation = classifier.explain(TEXT)
    attribution = explanation.attribution("billing")
    found = similar_rows(classifier, explanation, attribution, ROWS)
    assert found.rows == 4
    first = found.same[0]
    assert (first.row, first.labels) == (1, ("billing",))
    assert first.alike == pytest.approx(1.0)
    assert dict(first.shared) == pytest.approx(dict(zip(TEXT.split(), attribution.values.tolist(), strict=True)))
    (other,) = found.other
    own = dict(first.shared)
    theirs = classifier.explain(ROWS[2][0]).contributions @ attribution.contrast
    expected = theirs[0] * own["charged"] + theirs[1] * own["card"]
    assert other.alike == pytest.approx(expected / hypot(*theirs) / hypot(*own.values()), rel=1e-4)
    assert {word for word, _ in other.shared} == {"charged", "card"}
    assert 2 not in {row.row for row in (*found.same, *found.other)}


def test_only_the_most_alike_are_returned_whatever_the_number_of_rows(classifier: Classifier) -> None:
    explanation = classifier.explain(TEXT)
    many = [(f"card w{i}", "billing") for i in range(600)] + [(TEXT, "billing")]
    found = similar_rows(classifier, explanation, explanation.attribution("billing"), many, most=2)
    assert found.same[0].row == 601
    assert (len(found.same), found.other, found.rows) == (2, (), 601)
    with pytest.raises(InputError, match="no rows"):
        similar_rows(classifier, explanation, explanation.attribution(), [])


def test_the_command_shows_rows_and_their_texts_only_on_request(
    model_path: Path, sample_path: Path, tmp_path: Path
) -> None:
    given = ("explain", model_path, TEXT, "--label", "billing", "--rows", sample_path)
    output = succeed(*given)
    found = json.loads(succeed(*given, "--json"))["similar_rows"]
    row = found["same_label"][0]
    assert read_rows(sample_path)[row["row"] - 1]["label"] in row["labels"] == ["billing"]
    assert "text" not in row
    text = read_rows(sample_path)[row["row"] - 1]["text"]
    assert text not in output
    assert f"{row['shared'][0]['word']} {row['shared'][0]['added']:+.2f}" in output
    shown = json.loads(succeed(*given, "--json", "--row-texts"))["similar_rows"]["same_label"][0]
    assert shown == row | {"text": text}
    page = tmp_path / "why.html"
    succeed(*given, "--row-texts", "--html", page)
    assert "Rows like it" in page.read_text(encoding="utf-8")
    assert "needs --rows" in fail(2, "explain", model_path, TEXT, "--row-texts")


def test_where_no_row_is_alike_it_says_so_and_shows_no_empty_table(model_path: Path, tmp_path: Path) -> None:
    table, page = tmp_path / "rows.csv", tmp_path / "why.html"
    table.write_text("text,label\nzzz,billing\n", encoding="utf-8")
    given = ("explain", model_path, "card", "--rows", table)
    output = succeed(*given)
    assert "None of 1 row is like it." in output
    assert "shared words" not in output
    succeed(*given, "--html", page)
    assert "shared words" not in page.read_text(encoding="utf-8")


def test_rows_without_the_label_column_are_refused(model_path: Path, tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text("text\nhello\n", encoding="utf-8")
    assert "label" in fail(3, "explain", model_path, TEXT, "--rows", table)
