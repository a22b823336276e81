"""Columns beside the text from Python: rows as mappings, with validation rows of the same columns."""

import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

import textcls
from textcls import InputError
from textcls.model.classifier import Text
from textcls.model.prediction import explanation_of
from textcls_training.sklearn import TextClassifier

# Training warns of a column that tells as much as this one.
pytestmark = pytest.mark.filterwarnings("ignore:The column 'price' alone gives away the label:UserWarning")
SMALL: dict[str, Any] = {"epochs": 2, "vectors": "none"}


def rows_of(seed: int, rows: int = 200) -> tuple[list[Text], list[str]]:
    draw = random.Random(seed)
    labels = [draw.choice(["refund", "repair"]) for _ in range(rows)]
    found: list[Text] = []
    for label in labels:
        words = " ".join(f"w{draw.randrange(40)}" for _ in range(6))
        found.append({"subject": words, "body": "please", "price": draw.gauss(20 if label == "refund" else 40, 6)})
    return found, labels


def test_training_reads_the_columns_that_it_is_told_and_joins_the_others(tmp_path: Path) -> None:
    rows, labels = rows_of(1)
    found = textcls.train(rows, labels, tmp_path / "m.onnx", columns=["price"], **SMALL)
    assert found.info.text_columns == ("subject", "body")
    assert [(column.name, column.kind) for column in found.info.columns] == [("price", "number")]
    cheap = found.predict({"subject": "w1 w2", "body": "", "price": 12})
    dear = found.predict({"subject": "w1 w2", "body": "", "price": 50})
    assert (cheap.label, dear.label) == ("refund", "repair")


def test_validation_rows_fit_what_columns_add_where_they_are_given(tmp_path: Path) -> None:
    valid: Any = [iter(part) for part in rows_of(2, 100)]  # as from a file that is read once
    found = textcls.train(*rows_of(1), tmp_path / "m.onnx", valid=valid, columns=["price:number"], **SMALL)
    assert found.info.training["held_out_rows"] == 100
    assert found.info.training["held_out_accuracy"] > 0.9


def test_where_texts_are_templates_the_saved_model_answers_as_training_says(tmp_path: Path) -> None:
    draw = random.Random()
    texts, prices = ("please pay", "invoice attached", "refund"), [draw.uniform(1, 5000) for _ in range(400)]
    rows: list[Text] = [{"text": draw.choice(texts), "price": price} for price in prices]
    labels = ["manager" if price > 1000 else "clerk" for price in prices]
    found = textcls.train(rows, labels, tmp_path / "m.onnx", columns=["price"], vectors="none")
    right = textcls.evaluate(found, zip(rows, labels, strict=True)).report.accuracy
    assert right > found.info.training["held_out_accuracy"] - 0.01
    assert right > 0.98


def test_of_several_labels_each_has_its_own_curve(tmp_path: Path) -> None:
    rows, labels = rows_of(1, 300)
    several = [[label] if i % 3 else [label, "third"] for i, label in enumerate(labels)]
    found = textcls.train(rows, several, tmp_path / "m.onnx", columns=["price"], **SMALL)
    assert found.info.several
    assert [column.name for column in found.info.columns] == ["price"]
    answer = found.predict({"subject": "w1 w2", "body": "", "price": 12}, explain=True)
    assert answer.assigned[0] == "refund"
    assert explanation_of(answer).completeness_error < 1e-3


def test_models_are_judged_by_whole_rows(tmp_path: Path) -> None:
    rows, labels = rows_of(1)
    labelled = [*zip(rows, labels, strict=True)]
    texts = [{"subject": row["subject"], "body": row["body"]} for row in rows if isinstance(row, dict)]
    by_price = textcls.train(rows, labels, tmp_path / "price.onnx", columns=["price"], **SMALL)
    by_text = textcls.train(texts, labels, tmp_path / "text.onnx", **SMALL)
    right = sum(by_price.predict(row).label == label for row, label in labelled) / len(labelled)
    assert textcls.evaluate(by_price, labelled).report.accuracy == pytest.approx(right)
    assert textcls.report(by_price, labelled).accuracy.value == pytest.approx(right)
    with pytest.raises(InputError, match="There are no rows to evaluate on"):
        textcls.evaluate(by_price, iter([]))
    found = textcls.compare(by_text, by_price, labelled)
    assert found.accuracy.after == pytest.approx(right)
    assert all(flip.text.endswith("\nplease") for flip in found.flips)
    assert any("price = " in reason for flip in found.flips for reason in flip.reasons[1])
    assert any(word.word == "price" for word in found.words)
    with pytest.raises(
        InputError, match=r"The row has no 'subject' and 'body': the model reads .*, and this one has 'Body'"
    ):
        by_price.predict({"Body": "a"})
    assert by_price.predict({"subject": "", "body": "", "price": 1}, explain=True).remarks == [
        "The text has no tokens: the answer is the bias and the columns beside the text."
    ]
    with pytest.raises(InputError, match="Row 1 has no 'body': the model reads 'subject' and 'body' of a row"):
        textcls.evaluate(by_price, [labelled[0], ({"subject": "a", "price": 1}, "refund")])


def test_a_report_names_the_column_behind_an_error_of_a_label(tmp_path: Path) -> None:
    draw = random.Random(3)
    shops = [draw.choice(["north", "south"]) for _ in range(300)]
    rows: list[Text] = [{"body": " ".join(f"w{draw.randrange(40)}" for _ in range(6)), "shop": shop} for shop in shops]
    labels = [[shop, *(["loud"] if i % 3 else [])] for i, shop in enumerate(shops)]
    found = textcls.train(rows, labels, tmp_path / "m.onnx", columns=["shop"], **SMALL)
    swapped = [["north" if label == "south" else label for label in some] for some in labels]
    report = textcls.report(found, zip(rows, swapped, strict=True))
    behind = {(group.label, group.word) for group in report.too_many.groups}
    assert ("south", "shop = south") in behind
    assert any("shop = south" in one.words for one in report.too_many.surest)
    assert {one.name for one in report.slices if one.kind == "shop"} == {"north", "south"}


def test_an_estimator_reads_a_table_with_its_columns() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows, labels = rows_of(1)
    table = pandas.DataFrame(rows)
    model = TextClassifier(columns=["price"], **SMALL).fit(table, labels)
    assert [column.name for column in model.classifier_.info.columns] == ["price"]
    assert model.classifier_.info.text_columns == ("subject", "body")
    found = pickle.loads(pickle.dumps(clone(model).fit(rows, labels)))
    assert found.model_bytes_ == model.model_bytes_
    assert (found.predict(table) == model.predict(rows)).all()
    assert model.score(table, labels) > 0.9
    with pytest.raises(ValueError, match="Row 0 of X is a str; columns need a DataFrame, or a list of mappings"):
        model.fit(["a text"], ["refund"])


def test_columns_need_rows_that_have_them(tmp_path: Path) -> None:
    rows, labels = rows_of(1)
    with pytest.raises(InputError, match="The columns 'price' need rows, such as"):
        textcls.train(["a", "b"], ["x", "y"], tmp_path / "m.onnx", columns=["price"])
    with pytest.raises(InputError, match="No row has the column 'colour'; the first has 'subject', 'body' and 'price'"):
        textcls.train(rows, labels, tmp_path / "m.onnx", columns=["colour"])
    with pytest.raises(
        InputError, match="'price:foo', and 'foo' is not a kind of one \\('category', 'number' and 'date'\\)"
    ):
        textcls.train(rows, labels, tmp_path / "m.onnx", columns=["price:foo"])
    odd = [*rows[:-1], {"subject": "a", "body": "b", "price": [1]}]
    with pytest.raises(InputError, match="Row 200: the column 'price' holds a list"):
        textcls.train(odd, labels, tmp_path / "m.onnx", columns=["price:number"])
