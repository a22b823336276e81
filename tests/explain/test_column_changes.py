"""Which other category beside a text would change its answer: what is told is what the model says, and all of it."""

from pathlib import Path

import pytest

from tests.command_line import succeed
from textcls import Classifier
from textcls.explain.counterfactual import counterfactual
from textcls.model.columns import cells_of, pack

ROWS: list[dict[str, object]] = [
    {"text": "hello", "product": "sofa"},
    {"text": "hello", "product": "phone", "price": 12},
    {"text": "hello"},
    {"text": "refund my order", "product": "Lamp XL", "price": 12.5, "opened": "2024-05-13T12:00"},
    {"text": "", "product": "a thing nobody has seen"},
]


def row_of(classifier: Classifier, fields: dict[str, object]) -> str:
    return pack(cells_of(fields, classifier.info.columns), str(fields["text"]))


@pytest.mark.parametrize("fields", ROWS, ids=repr)
def test_the_surest_value_of_a_column_that_changes_the_answer_is_told(
    with_columns: Classifier, fields: dict[str, object]
) -> None:
    before = with_columns.predict(row_of(with_columns, fields))
    found = counterfactual(with_columns, row_of(with_columns, fields)).columns
    (product,) = (column for column in with_columns.info.columns if column.kind == "category")
    other = {
        value: with_columns.predict(row_of(with_columns, {**fields, "product": value})) for value in product.values
    }
    changing = {value: answer for value, answer in other.items() if answer.label != before.label}
    assert [(one.column, one.before) for one in found] == ([("product", before.label)] if changing else [])
    for one in found:
        assert one.label == changing[one.by].label
        assert one.score == pytest.approx(changing[one.by].score, abs=1e-5)
        own = with_columns.labels.index(before.label)
        surest = max(changing, key=lambda value: changing[value].score / changing[value].probabilities[own])
        assert one.by == surest


def test_the_label_that_is_wanted_is_reached_or_nothing_is_told(with_columns: Classifier) -> None:
    row = row_of(with_columns, ROWS[0])
    answer = with_columns.predict(row).label
    wanted = [label for label in with_columns.labels if label != answer]
    found = {label: counterfactual(with_columns, row, against=label).columns for label in wanted}
    assert any(found.values())
    assert all(one.label == label for label, changes in found.items() for one in changes)


def test_a_text_without_columns_has_no_such_change(classifier: Classifier) -> None:
    search = counterfactual(classifier, "my card was charged twice")
    assert search.columns == ()
    assert "columns" not in search.as_json()


def test_the_command_and_its_page_tell_it(with_columns_path: Path, tmp_path: Path) -> None:
    given = ("explain", with_columns_path, "hello", "--column", "product=sofa", "--counterfactual")
    line = "With product = phone, not sofa, it would be cancellation"
    assert line in succeed(*given)
    succeed(*given, "--html", tmp_path / "page.html")
    assert line in (tmp_path / "page.html").read_text(encoding="utf-8")
