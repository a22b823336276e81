"""Cells: what stands in a column beside the text, as a model reads it, however it is written."""

import json
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from textcls.data.excel import Cell
from textcls.errors import InputError
from textcls.model.cell_values import category, has_decimal_comma, moment, number
from textcls.model.columns import (
    BETWEEN_CELLS,
    END_OF_CELLS,
    Column,
    cells_of,
    count,
    names_of_cells,
    pack,
    require_columns,
    silent,
    some_cells,
    told,
    unpack,
)

COLUMNS = (Column("product", "category", ("phone",)), Column("price", "number"), Column("opened", "date"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12", 12),
        (" 1,234.50 ", 1234.5),
        ("1.234,50", 1234.5),
        ("1.234.567", 1_234_567),
        ("12,5", 12.5),
        ("1,234", 1234),
        ("-3e2", -300),
        ("$ 12", 12),
        ("12 %", 12),
        ("12\u00a0€", 12),
        (3, 3),
        (True, 1),
        (Decimal("2.5"), 2.5),
        (np.float32(1.5), 1.5),
        (np.int64(3), 3),
        (10**400, None),
        (Decimal("NaN"), None),
        (np.datetime64("2024-05-31"), None),
        ("", None),
        ("n/a", None),
        ("1_000", None),
        ("nan", None),
        ("inf", None),
        (float("nan"), None),
        (None, None),
        ("12 apples", None),
        ("31 581,94 €", 31_581.94),
        ("82\u2019929.80", 82_929.8),
        ("CHF 12.-", 12),
        ("R$ 12,50", 12.5),
        ("-€5", -5),
        ("\u22125 kr", -5),
        ("0,862", 0.862),
        ("TRUE", 1),
        ("ABC123", None),
        ("12 34", None),
        ("12-", None),
        (np.float32(2.375), 2.375),
        (" " * 1_000_000 + "x", None),
        ("9" * 200, None),
    ],
)
def test_a_number_is_read_however_it_is_written(value: Any, expected: float | None) -> None:
    assert number(value) == expected


def test_a_comma_before_three_digits_is_what_other_values_of_its_column_say() -> None:
    assert (number("1,234"), number("1,234", decimal_comma=True)) == (1234, 1.234)
    assert (number("1.234"), number("1.234", decimal_comma=True)) == (1.234, 1234)
    assert has_decimal_comma(["0,862", "29,76", "11,200"])
    assert not has_decimal_comma(["1,234", "1.5", "12,345.5"])
    weights = Column("kg", "number", decimal_comma=True)
    assert weights.cells("11,200") == ("11.2",)
    assert number(Decimal("2.500"), decimal_comma=True) == 2.5
    assert number(Cell.of(SimpleNamespace(value=2.375, number_format="0.00")), decimal_comma=True) == 2.375
    assert Column("kg", "number").cells(1e-320) == ("0",)
    assert Column.from_json(json.loads(json.dumps(weights.to_json()))) == weights
    assert "decimal_comma" not in Column("kg", "number").to_json()


@pytest.mark.parametrize(
    ("value", "date_format", "expected"),
    [
        ("2024-05-31", None, datetime(2024, 5, 31)),
        ("2024-05-31T14:30:00+02:00", None, datetime(2024, 5, 31, 14, 30)),
        ("31.05.2024", "%d.%m.%Y", datetime(2024, 5, 31)),
        ("05/31/2024 14:30", "%m/%d/%Y", datetime(2024, 5, 31, 14, 30)),
        (date(2024, 5, 31), None, datetime(2024, 5, 31)),
        (datetime(2024, 5, 31, 14), None, datetime(2024, 5, 31, 14)),
        (np.datetime64("2024-05-31T14:30:00.123456789"), None, datetime(2024, 5, 31, 14, 30)),
        (np.datetime64("NaT"), None, None),
        ("31.05.24", None, datetime(2024, 5, 31)),
        ("2024/05/31", "%d.%m.%Y", datetime(2024, 5, 31)),
        ("May 31, 2024", "%d/%m/%Y", datetime(2024, 5, 31)),
        ("31 May 2024 7:05", None, datetime(2024, 5, 31, 7, 5)),
        ("04-07-2024", "%d/%m/%Y", datetime(2024, 7, 4)),
        ("04-07-2024", "%m/%d/%Y", datetime(2024, 4, 7)),
        ("04-07-2024", "%d.%m.%Y", None),
        ("20240531", None, None),
        ("2024-01-31 10:30 +02:00", None, datetime(2024, 1, 31, 10, 30)),
        ("31.01.2024  10:30", None, datetime(2024, 1, 31, 10, 30)),
        ("0099-06-15", None, datetime(99, 6, 15)),
        ("2024-W05-1", None, None),
        ("2024-01-31T10:30+24:00", None, None),
        ("yesterday", "%d.%m.%Y", None),
        ("", None, None),
        (None, None, None),
        (7, None, None),
    ],
)
def test_a_date_is_read_as_iso_8601_says_or_in_the_format_of_the_column(
    value: Any, date_format: str | None, expected: datetime | None
) -> None:
    assert moment(value, date_format) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("  Phone \n XL ", "phone xl"),
        ("Bu\u0308ro", "b\u00fcro"),
        (3.0, "3"),
        (3.5, "3.5"),
        (False, "false"),
        (None, ""),
        (float("nan"), ""),
        (f"a{END_OF_CELLS}b{BETWEEN_CELLS}c", "a b c"),
        ("half \ud83d", ""),
    ],
)
def test_a_category_has_one_form_whatever_its_case_spaces_and_type(value: Any, expected: str) -> None:
    assert category(value) == expected


def test_a_row_has_its_numbers_first_and_then_its_categories() -> None:
    cells = cells_of({"product": "Phone", "price": "12,5", "opened": "1970-01-02T12:00", "more": 1}, COLUMNS)
    assert cells == ["12.5", "1.5", "phone", "1", "Friday", "12"]
    assert names_of_cells(COLUMNS) == [
        "price", "opened", "product", "opened (month)", "opened (weekday)", "opened (hour)",
    ]  # fmt: skip
    assert count(COLUMNS) == len(cells)
    assert some_cells(cells, COLUMNS, COLUMNS[1:2]) == ["12.5"]
    assert some_cells(cells, COLUMNS, (COLUMNS[0], COLUMNS[2])) == ["1.5", "phone", "1", "Friday", "12"]


def test_what_is_missing_or_makes_no_sense_is_an_empty_cell() -> None:
    assert cells_of({"price": "much", "opened": "soon"}, COLUMNS) == [""] * 6


def test_days_are_told_as_dates() -> None:
    cells = ["12.5", "19856.5", "phone", "5", "Monday", "12"]
    assert told(COLUMNS, cells) == ["12.5", "2024-05-13 12:00", "phone", "5", "Monday", "12"]
    assert told(COLUMNS[2:], ["19856", "", "", ""]) == ["2024-05-13", "", "", ""]
    assert told(COLUMNS[2:], ["", "", "", ""]) == [""] * 4
    assert told(COLUMNS[2:], ["1e300", "", "", ""])[0] == "1e300"


def test_a_list_is_refused_with_the_name_of_its_column() -> None:
    with pytest.raises(ValueError, match="the column 'product' holds a list; write a string, a number or a date"):
        cells_of({"product": ["phone"]}, COLUMNS)


def test_a_packed_row_is_its_cells_and_its_text_again() -> None:
    cells = cells_of({"product": "phone"}, COLUMNS)
    text = f"it may hold {END_OF_CELLS} as well"
    assert unpack(pack(cells, text), COLUMNS) == (cells, text)
    assert unpack("a text alone", COLUMNS) == ([""] * 6, "a text alone")
    with pytest.raises(InputError, match="A row has 2 cells before its text, and the model reads 6"):
        unpack(pack(["1", "2"], text), COLUMNS)


def test_a_column_is_read_in_one_way_alone() -> None:
    require_columns(COLUMNS, ["text"])
    with pytest.raises(InputError, match="The column 'price' is that of text, label or weight, or named twice"):
        require_columns(COLUMNS, ["price"])
    with pytest.raises(InputError, match="There are 201 columns beside the text; a model reads 200 at most"):
        require_columns([Column(str(i), "number") for i in range(201)], [])


def test_a_column_is_the_same_as_plain_data_again() -> None:
    column = Column("opened", "date", date_format="%d.%m.%Y")
    assert Column.from_json({**column.to_json(), "values": [], "knots": []}) == column
    for wrong in (
        {"kind": "colour"},
        {"name": ""},
        {"values": [1]},
        {"values": "phone"},
        {"date_format": 1},
        {"knots": ["1"]},
    ):
        with pytest.raises(ValueError, match="columns holds"):
            Column.from_json({**column.to_json(), "values": [], "knots": [], **wrong})


def test_dates_and_missing_values_of_pandas_and_arrow_are_read() -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    when = datetime(2024, 5, 31, 14, 30)
    for written in (pandas.Timestamp(when), arrow.scalar(when), arrow.scalar(when, arrow.timestamp("ns", "UTC"))):
        assert moment(written) == when
    assert moment(arrow.scalar(when.date())) == datetime(2024, 5, 31)
    assert number(arrow.scalar(Decimal("12.50"))) == 12.5
    for nothing in (pandas.NaT, pandas.NA):
        assert (category(nothing), number(nothing), moment(nothing)) == ("", None, None)


def test_why_a_value_says_nothing_is_told() -> None:
    fields = {"product": "Sofa", "price": "much", "opened": "n/a"}
    assert [*silent(fields, COLUMNS)] == [("product", "unseen"), ("price", "not understood"), ("opened", "missing")]
    assert [*silent({"product": " PHONE ", "price": "1", "opened": "2024-05-31"}, COLUMNS)] == []


def test_a_whole_number_is_one_category_whatever_its_type() -> None:
    written = (3, 3.0, "3", "3.0", " 3.00 ", np.float32(3), np.int64(3), Fraction(3))
    assert {category(value) for value in written} == {"3"}
    assert (category(True), category("3.05"), category("v3.0"), category("1.3.0")) == ("true", "3.05", "v3.0", "1.3.0")
