"""Columns beside the text in JavaScript: cells as in Python, the static page and Node as the server, fields to fill."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.server import listening, service_of
from tests.web.conftest import served, service, written
from tests.web.test_in_browser import ASK, ASK_IN_BATCHES, assert_same
from textcls import Classifier
from textcls.model.cell_values import DATE_FORMATS
from textcls.model.classifier import Text
from textcls.model.columns import Column, cells_of, names_of_cells
from textcls.server.models import registry
from textcls.server.settings import Settings

Open = Callable[..., Any]
Run = Callable[..., Any]
VALUES = (
    "12", " 1,234.50 ", "1.234,50", "1.234.567", "12,5", "1,234", "-3e2", "$ 12", "12 %", "12\u00a0€", "1_000", "nan",
    "inf", "12 apples", ".5", "5.", "+7", "", None, 3, 2.5, True, False,
    "  Phone \n XL ", "Straße", "a\x1eb\x1fc", "日本 語", "Bu\u0308ro", "x" * 300, "half \ud83d",
    "2024-05-31", "2024-05-31T14:30", "2024-05-31 14:30:15", "2024-05-31T14:30:00+02:00", "2024-13-01", "2024-02-30",
    "31.05.2024", "5/31/2024", "31/5/2024 14:30", "2024/05/31", "31 May 2024", "May 31, 2024", "yesterday", "20240531",
    "31 581,94 €", "31\u202f581,94 €", "82'929.80", "82\u2019929.80", "CHF 12.50", "5 EUR", "12 kr", "R$ 12,50",
    "12.50 zł", "12,-", "12.\u2013", "Rs. 500", "\u22125", "-€5", "€-5", "0,125", "1.234", "--5", "SKU 12",
    "9" * 25, "9" * 101, " " * 99_999 + "x",
    "ΠΕΛΑΤΗΣ", "πελάτης", "5 \u00b5m filter", "\ufb01ne", "ẞ",
    "I\u0131\u0130", "\u13a0\uab70\u13f8", 1e21, 1e-7, 1.5e-5, -1e-7, 0.1, 1e16,
    1234567.891, 0.1234567891234, "1234567890123", 1e-5, -2.5e-9, 1e-31, 123456789.5, 99999999.96, 3.0, -0.0,
    "2024-01-31 10:30 +02:00", "20240131T1030", "20240131T10:30", "2024-W05-1", "2024-01-31t10:30", "2024-01-31_10:30",
    "31  Jan 2024", "31.01.2024  10:30", "2024-01-31T10:30+02:00:30", "2024-01-31T10:30+24:00",
    "2024-01-31T10:30-25:00",
    "0000-01-01", "0050-01-01", "01.01.0050", "0001-01-01", "0099-06-15", "2024-0131", "2024-01-31T", "2024-01-31Z",
    "2024-01-31T24:00", "2024-01-31T10:60", "2024-01-31T10:30:15.123456", "\uff12024-01-31", "2024-01-31 10",
    "9999-12-31T23:59",
    "1.394,11 EUR", "True", "1,5e3", "12 34", "12-", "04.01.24", "March 30, 2024", "30 march 2024 7:05", "04/07/69",
)  # fmt: skip
ROWS: list[Text] = [
    {"text": "refund my order", "product": "Lamp XL", "price": "12,5", "opened": "2024-05-13T12:00"},
    {"text": "where is my parcel?", "product": "chair", "price": 42, "opened": None},
    {"text": ""},
    "refund",
]


def test_cells_are_those_of_python(in_node: Run) -> None:
    columns = [Column("value", "category"), Column("value", "number"), Column("value", "date")]
    columns += [Column("value", "date", date_format=form) for form in DATE_FORMATS]
    columns.append(Column("value", "number", decimal_comma=True))
    asked = [[column.to_json(), value] for column in columns for value in VALUES]
    code = """
import { read, namesOfCells } from "./page/columns.mjs";
found = given.map(([column, value]) => {
  const info = { text_columns: ["text"], columns: [column] };
  return [read({ text: "", value }, info).cells, namesOfCells(info)];
});
"""
    found = in_node(code, asked)
    for (column, value), (cells, names) in zip([(c, v) for c in columns for v in VALUES], found, strict=True):
        expected = cells_of({"value": value}, [column])
        assert names == names_of_cells([column])
        assert cells == expected, (column, value)


def test_node_answers_rows_as_python(in_node: Run, site_folder_with_columns: Path, with_columns: Classifier) -> None:
    expected = [with_columns.predict(row, explain=True).as_json() for row in ROWS]
    for code in (ASK, ASK_IN_BATCHES.replace(", threshold: 0.5", "")):
        found = in_node(code, ROWS, site_folder_with_columns.parent)
        assert_same(found, expected)
        for one, other in zip(found, expected, strict=True):
            assert [cell["name"] for cell in one["columns"]] == [cell["name"] for cell in other["columns"]]
            for cell, like in zip(one["columns"], other["columns"], strict=True):
                assert cell["contributions"] == pytest.approx(like["contributions"], abs=1e-4)


def test_rows_that_lack_a_text_are_refused_as_by_the_service(in_node: Run) -> None:
    code = """
import { read } from "./page/columns.mjs";
found = given.map((row) => {
  try {
    return read(row, { text_columns: ["title", "body"] }).text;
  } catch (error) {
    return error.message;
  }
});
"""
    found = in_node(code, [{"title": "a", "body": ""}, "a", {"title": "a"}])
    assert found[0] == "a\n"
    assert found[1] == 'The model reads "title" and "body": pass an object with a text each.'
    assert found[2] == 'A row has no text in "body": the model reads "title" and "body".'


@pytest.mark.parametrize("where", ["server", "browser"])
def test_the_page_has_a_field_a_column_and_lists_what_each_adds(
    visit: Open, address_with_columns: str, static_address_with_columns: str, with_columns: Classifier, where: str
) -> None:
    shown = visit(address_with_columns if where == "server" else static_address_with_columns).ready()
    labels = [label.inner_text() for label in shown.query_selector_all("#fields .field label")]
    assert labels == ["product", "price", "opened"]
    shown.fill("#column-beside-1", "Lamp XL")
    shown.fill("#column-beside-2", "12,5")
    shown.fill("#column-beside-3", "2024-05-13T12:00")
    shown.fill("#text", "refund my order")
    shown.click("#classify")
    shown.locator("#said", has_text="%").wait_for(state="attached")
    answer = with_columns.predict(ROWS[0], explain=True)
    shown.locator("#verdict", has_text=f"{answer.score:.1%}").wait_for()
    rows = [row.inner_text() for row in shown.query_selector_all("#tables tr.sum th")]
    assert rows[:3] == ["price = 12.5", "opened = 2024-05-13 12:00", "product = lamp xl"]
    assert "bias + tokens + columns = logit" in shown.inner_text("#notes")


def test_a_table_is_read_with_its_columns(visit: Open, address_with_columns: str, with_columns: Classifier) -> None:
    shown = visit(address_with_columns).ready()
    content = b'price,text,product\n"12,5",refund my order,Lamp XL\n,where is my parcel?,\n'
    shown.set_input_files("#file", {"name": "rows.csv", "mimeType": "text/csv", "buffer": content})
    shown.locator("#many-said", has_text="2 rows classified").wait_for(state="attached")
    found = [cell.inner_text() for cell in shown.query_selector_all("#rows td.score")]
    rows: list[Text] = [
        {"text": "refund my order", "price": "12,5", "product": "Lamp XL"},
        {"text": "where is my parcel?"},
    ]
    assert found == [f"{with_columns.predict(row).score:.1%}" for row in rows]


def test_a_table_without_a_column_says_so_and_one_of_nearly_its_name_is_refused(
    visit: Open, address_with_columns: str
) -> None:
    shown = visit(address_with_columns).ready()
    for heads, said in (
        ("text,product", "1 row classified. The file has no column price, opened, which the model reads"),
        ("text,Product", "The file has the column Product, and the model reads product: rename it"),
    ):
        content = f"{heads}\nrefund my order,chair\n".encode()
        shown.set_input_files("#file", {"name": "rows.csv", "mimeType": "text/csv", "buffer": content})
        shown.locator("#many-said", has_text=said).wait_for(state="attached")


def test_what_was_typed_stays_in_its_column_whichever_model_is_chosen(
    visit: Open, address_of_both: str, with_columns: Classifier
) -> None:
    shown = visit(address_of_both).ready()
    shown.get_by_label("Model", exact=True).select_option("with_columns")
    shown.fill("#column-beside-1", "Lamp XL")
    shown.fill("#column-beside-2", "12")
    shown.fill("#text", "refund my order")
    # What was typed for the other model may be asked about first.
    with shown.expect_request(lambda one: (one.post_data_json or {}).get("model") == "two_columns") as asked:
        shown.get_by_label("Model", exact=True).select_option("two_columns")
    assert asked.value.post_data_json["inputs"] == [{"subject": "refund my order", "body": ""}]
    shown.fill("#text-2", "a body")
    shown.get_by_label("Model", exact=True).select_option("with_columns")
    assert [shown.input_value(f"#column-beside-{i}") for i in (1, 2, 3)] == ["Lamp XL", "12", ""]
    shown.get_by_label("Model", exact=True).select_option("two_columns")
    assert shown.input_value("#text-2") == "a body"


def test_a_model_without_columns_has_no_fields_for_them(visit: Open, address: str) -> None:
    assert visit(address).ready().query_selector("#fields .columns") is None


@pytest.fixture(scope="module")
def address_with_columns(with_columns: Classifier) -> Iterator[str]:
    with listening(service(with_columns, Settings())) as found:
        yield found


@pytest.fixture(scope="module")
def address_of_both(with_columns: Classifier, two_columns: Classifier) -> Iterator[str]:
    """The address of a server with a model of columns beside the text, and one of two columns of text."""
    models = [registry.serve(with_columns, "with_columns"), registry.serve(two_columns, "two_columns")]
    with listening(service_of(models)) as found:
        yield found


@pytest.fixture(scope="module")
def site_folder_with_columns(
    with_columns_path: Path, node_modules: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return written(with_columns_path, tmp_path_factory.mktemp("columns") / "site", node_modules)


@pytest.fixture(scope="module")
def static_address_with_columns(site_folder_with_columns: Path) -> Iterator[str]:
    with served(site_folder_with_columns) as found:
        yield found


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": "a", "prodct": "x"}, 'The row has "prodct", and the model reads "product"'),
        ({"text": "a", "product": ["x"]}, 'The column "product" holds a list or an object'),
        (["a"], "A row is a text, or an object"),
        (None, "A row is a text, or an object"),
        (7, "A row is a text, or an object"),
        ({"text": "a", "id": 7}, ""),
        ({"text": "a", "product": None, "prodct": "x"}, ""),
    ],
)
def test_a_row_that_is_not_what_the_model_reads_is_refused_as_by_the_service(in_node: Run, row: Any, said: str) -> None:
    code = """
import { read } from "./page/columns.mjs";
const info = { text_columns: ["text"], columns: [{ name: "product", kind: "category" }] };
found = given.map((row) => {
  try {
    read(row, info);
    return "";
  } catch (error) {
    return error.message;
  }
});
"""
    (found,) = in_node(code, [row])
    assert found.startswith(said) if said else not found
