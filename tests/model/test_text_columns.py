"""Models of several text columns: a row is read as it was in training, and half a row is not taken for a whole one."""

import math
from pathlib import Path
from typing import Any

import pytest

import textcls
from tests.command_line import fail, write_rows
from textcls import Classifier, InputError
from textcls.model.columns import Column
from textcls.model.text_columns import text_of_row

ROW = {"subject": "Charged twice", "body": "My card, why?", "queue": "billing"}
JOINED = "Charged twice\nMy card, why?"


def test_a_row_is_read_as_its_text_columns_joined_by_line_breaks(two_columns: Classifier) -> None:
    expected = two_columns.predict(JOINED, explain=True).as_json()
    assert two_columns.predict(ROW, explain=True).as_json() == expected
    first, second = two_columns.predict([ROW, JOINED], explain=True)
    assert first.as_json() == second.as_json()
    assert two_columns.explain(ROW).text == JOINED
    assert [found.text for found in two_columns.explain([ROW])] == [JOINED]


def test_a_row_of_one_column_is_its_text(classifier: Classifier) -> None:
    assert classifier.predict({"text": JOINED, "id": 7}).as_json() == classifier.predict(JOINED).as_json()


def test_a_column_without_a_value_is_an_empty_one(two_columns: Classifier) -> None:
    expected = two_columns.predict({"subject": "", "body": "My card, why?"}).as_json()
    for nothing in (None, math.nan):
        assert two_columns.predict({"subject": nothing, "body": "My card, why?"}).as_json() == expected


def test_a_row_of_a_pandas_table_is_one_row_and_not_some_texts(two_columns: Classifier, classifier: Classifier) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([ROW, ROW])
    assert two_columns.predict(table.iloc[0]).as_json() == two_columns.predict(ROW).as_json()
    several: Any = [row for _, row in table.iterrows()]
    found = [one.as_json() for one in two_columns.predict(several)]
    assert found == [one.as_json() for one in two_columns.predict([ROW, ROW])]
    assert len(classifier.predict(table["body"])) == 2


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"body": "x"},
            "Text 0 has no 'subject': the model reads 'subject' and 'body' of a row, and this one has 'body'",
        ),
        ({"a": 1}, "Text 0 has no 'subject' and 'body'"),
        ({}, "this one has nothing"),
        ({"subject": 1, "body": "x"}, "the text in column 'subject' is of type int; write a string"),
        ({"subject": {"de": "x"}, "body": "x"}, "'subject' is an object; write what it holds in columns of their own"),
        (7, "Text 0 is not a string but int"),
    ],
)
def test_a_row_that_lacks_a_column_is_refused_in_a_sentence(two_columns: Classifier, row: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        two_columns.predict([row])


def test_a_file_with_one_of_the_columns_is_refused_unless_that_is_asked_for(
    two_columns_path: Path, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "rows.csv", [("body", "n"), ("My card, why?", "1")])
    said = fail(3, "predict", two_columns_path, data, "--output", tmp_path / "answers.csv")
    assert "has no column 'subject'" in said
    assert not (tmp_path / "answers.csv").exists()


def test_training_on_rows_keeps_the_columns_of_the_first(tmp_path: Path) -> None:
    rows = [{"subject": f"{word} {i}", "body": "please"} for i in range(12) for word in ("refund", "parcel")]
    labels = ["billing", "shipping"] * 12
    small: dict[str, Any] = {"epochs": 1, "dim": 2, "ngrams": (), "example": "refund 1\nplease"}
    found = textcls.train(rows, labels, tmp_path / "rows.onnx", **small)
    assert found.info.text_columns == ("subject", "body")
    assert found.info.example == "refund 1\nplease"
    joined = [f"{row['subject']}\n{row['body']}" for row in rows]
    assert (
        found.info.training["data_sha256"]
        == (textcls.train(joined, labels, tmp_path / "joined.onnx", **small).info.training["data_sha256"])
    )
    with pytest.raises(InputError, match="Texts: number 24 has no 'subject'"):
        textcls.train([*rows, {"body": "x"}], [*labels, "billing"], tmp_path / "m.onnx", **small)
    with pytest.raises(InputError, match="Texts: number 24 is a str, and others are rows of 'subject' and 'body'"):
        textcls.train([*rows, "x"], [*labels, "billing"], tmp_path / "m.onnx", **small)


@pytest.mark.parametrize("example", ["", "x" * 10_001, "\ud83d"])
def test_an_example_that_no_file_can_hold_is_refused(tmp_path: Path, example: str) -> None:
    with pytest.raises(textcls.ConfigError, match=r"example (is empty|has 10,001 characters|holds half a character)"):
        textcls.train(["a", "b"], ["x", "y"], tmp_path / "m.onnx", example=example)


def test_a_column_beside_the_text_that_seems_misspelt_is_refused() -> None:
    beside = [Column("rating", "number"), Column("Product name", "category")]

    def read(**more: object) -> str:
        return text_of_row({"text": "x", **more}, ["text"], "inputs[3]", beside)

    assert read() == read(rate=1, total=2, product=3) == read(rating=None, ratng=1, **{"Product name": None})
    with pytest.raises(InputError, match=r"inputs\[3\] has 'ratng', and the model reads 'rating': rename it, or leave"):
        read(ratng=1)
    with pytest.raises(InputError, match="has 'Ratings', and the model reads 'rating'"):
        read(Ratings=1)
    with pytest.raises(InputError, match="has 'product_name', and the model reads 'Product name'"):
        read(rating=1, product_name="lamp")
