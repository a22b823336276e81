"""Labels whose parts stand in the columns of the levels of a tree."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command_line import fail, read_rows, succeed, write_rows
from textcls.errors import InputError
from textcls.model.label_paths import label_cell

COLUMN = "area > queue"
CELLS = st.text(st.characters(codec="utf-8", exclude_characters=">"), max_size=5)


@pytest.fixture(scope="module")
def rows_path(tmp_path_factory: pytest.TempPathFactory, sample_path: Path) -> Path:
    """The sample with a column a level; `other` ends at the first one."""
    above = {"billing": "money", "returns": "money", "sales": "money", "shipping": "goods", "technical": "goods"}
    rows = [(row["text"], above.get(row["label"]), row["label"]) for row in read_rows(sample_path)]
    path = tmp_path_factory.mktemp("levels") / "rows.csv"
    write_rows(path, [("text", "area", "queue"), *((t, a or q, q if a else "") for t, a, q in rows)])
    return path


@given(st.lists(CELLS, min_size=2, max_size=5))
def test_the_levels_down_to_the_last_one_filled_in_make_the_path(cells: list[str]) -> None:
    fields = {f"level {i}": cell for i, cell in enumerate(cells)}
    parts = [cell.strip() for cell in cells]
    filled = [i for i, part in enumerate(parts) if part]
    if filled != list(range(len(filled))):
        with pytest.raises(InputError, match="is empty, and"):
            label_cell(fields, " > ".join(fields))
    else:
        assert label_cell(fields, " > ".join(fields)) == " > ".join(parts[: len(filled)])


def test_a_column_of_that_name_is_read_as_it_is() -> None:
    assert label_cell({"a > b": "x", "a": "y", "b": "z"}, "a > b") == "x"


def test_a_model_of_levels_tells_of_them_without_being_asked(rows_path: Path, tmp_path: Path) -> None:
    model, answers = tmp_path / "m.onnx", tmp_path / "answers.csv"
    succeed("train", rows_path, "--label-column", COLUMN, "--output", model, "--epochs", "3", "--quiet")
    told = json.loads(succeed("evaluate", model, rows_path, "--json"))
    areas = {row["area"] for row in read_rows(rows_path)}
    assert told["paths"]["levels"][0]["nodes"] == len(areas)
    succeed("predict", model, rows_path, "--output", answers)
    for row in read_rows(answers):
        path = [row[name] for name in ("level_1", "level_2") if row[name]]
        assert row["predicted_node"] == " > ".join(path)
    assert COLUMN in succeed("inspect", model)


def test_check_mends_the_names_of_levels_in_their_columns(tmp_path: Path) -> None:
    path, mended = tmp_path / "rows.csv", tmp_path / "mended.csv"
    rows = [
        ("a b", "Goods", "shipping"),
        ("c d", "Goods", "shipping"),
        ("e f", "goods ", "Shipping"),
        ("g", "Goods", ""),
    ]
    write_rows(path, [("text", "area", "queue"), *rows])
    succeed("check", path, "--label-column", COLUMN, "--write", mended)
    assert [(row["area"], row["queue"]) for row in read_rows(mended)] == [("Goods", "shipping")] * 3 + [("Goods", "")]


@pytest.mark.parametrize(
    ("row", "column", "said"),
    [
        (
            ("a", "", "x"),
            COLUMN,
            "line 3: the level 'area' of the label is empty, and 'queue' below it is not; fill it",
        ),
        (("a", "x > y", "z"), COLUMN, "line 3: the level 'area' of the label holds ' > ', which separates levels"),
        (("a", "", ""), COLUMN, f"line 3: the label in column {COLUMN!r} is empty"),
        (("a", "x", "y"), "area > que", "has no column 'que'; it has 'text', 'area', 'queue'."),
        (("a", "x", "y"), "area > text", "'area > text' cannot be both text and label"),
    ],
)
def test_what_makes_no_path_is_told_in_a_sentence(
    row: tuple[str, str, str], column: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, [("text", "area", "queue"), ("b c", "x", "y"), row])
    assert said in fail(3, "train", path, "--label-column", column, "--output", tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
