"""Labels whose parts stand in the columns of the levels of a tree."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command_line import fail, read_rows, succeed, write_rows
from tests.service.server import local
from textcls import Classifier
from textcls.data import open_labelled
from textcls.data.labelled import LabelledRow
from textcls.errors import InputError
from textcls.model.label_paths import LabelPaths, label_cell
from textcls.server import create_app

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


@pytest.fixture(scope="module")
def model_path(rows_path: Path) -> Path:
    """A model trained on the levels."""
    path = rows_path.with_name("m.onnx")
    succeed("train", rows_path, "--label-column", COLUMN, "--output", path, "--epochs", "3", "--quiet")
    return path


def read_labelled_rows(path: Path) -> list[LabelledRow[str]]:
    """The rows of a file whose labels are paths."""
    with open_labelled([path], label_column=COLUMN) as table:
        return list(table.rows)


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


def test_a_level_without_a_value_ends_the_path_and_one_that_is_a_list_is_told() -> None:
    for nothing in (None, float("nan"), " "):
        assert label_cell({"a": "x", "b": nothing}, "a > b") == "x"
    assert label_cell({"a": 1, "b": True}, "a > b") == "1 > True"
    with pytest.raises(InputError, match="the level 'b' of the label is of type list, and should be a string"):
        label_cell({"a": "x", "b": ["y"]}, "a > b")


def test_a_column_of_that_name_is_read_as_it_is() -> None:
    assert label_cell({"a > b": "x", "a": "y", "b": "z"}, "a > b") == "x"


def test_a_model_of_levels_tells_of_them_without_being_asked(model_path: Path, rows_path: Path, tmp_path: Path) -> None:
    told = json.loads(succeed("evaluate", model_path, rows_path, "--json"))
    areas = {row["area"] for row in read_rows(rows_path)}
    assert told["paths"]["levels"][0]["nodes"] == len(areas)
    succeed("predict", model_path, rows_path, "--output", tmp_path / "answers.csv")
    for row in read_rows(tmp_path / "answers.csv"):
        path = [row[name] for name in ("level_1", "level_2") if row[name]]
        assert row["predicted_node"] == " > ".join(path)
    assert COLUMN in succeed("inspect", model_path)


def test_a_report_tells_of_the_levels(model_path: Path, rows_path: Path, tmp_path: Path) -> None:
    for name in ("report.json", "report.html", "report.md"):
        succeed("report", model_path, rows_path, "--output", tmp_path / name)
    told = json.loads((tmp_path / "report.json").read_text())
    evaluated = json.loads(succeed("evaluate", model_path, rows_path, "--json"))
    assert told["paths"] == evaluated["paths"]
    f1 = f"Hierarchical F1 {100 * told['paths']['f1']:.2f}%"
    assert all(f1 in (tmp_path / name).read_text() for name in ("report.html", "report.md"))
    assert f1 in succeed("report", model_path, rows_path)


@pytest.mark.parametrize(
    ("labels", "column", "depth"),
    [
        (["a > x", "a > y", "b"], "label", 2),
        (["a > x", "a", "b"], "label", None),
        (["a > x", "a", "b"], "group > job", 2),
        (["a", "b"], "group > job", None),
        (["a > x", "a > y", " > b"], "label", None),
        ([" > ".join("x" * 51), "a > y"], "label", None),
    ],
)
def test_labels_are_a_tree_where_they_came_from_levels_or_most_are_paths(
    labels: list[str], column: str, depth: int | None
) -> None:
    tree = LabelPaths.of(labels, column)
    assert (None if tree is None else tree.depth) == depth


def test_every_answer_names_the_deepest_sure_node(model_path: Path, rows_path: Path) -> None:
    classifier = Classifier.load(model_path)
    text = next(row["text"] for row in read_rows(rows_path) if row["queue"] == "billing")
    answer = classifier.predict(text, threshold=0.99999)
    assert answer.node is None
    assert "No node of the tree is sure." in answer.remarks
    told = json.loads(succeed("explain", model_path, text, "--json"))
    assert told["node"] == classifier.predict(text).as_json()["node"]
    answer = classifier.predict(text, threshold=classifier.predict(text).score + 1e-4)
    assert answer.node is not None
    assert answer.node.path == (answer.label.split(" > ")[0],)
    assert any(remark.startswith(f"Only {answer.node.path[0]!r} is sure, at ") for remark in answer.remarks)
    texts = [text, "?"]
    with local(create_app(model_path)) as client:
        results = client.post("/v1/classify", json={"inputs": texts, "top_k": 1}).json()["results"]
    for one, result in zip(texts, results, strict=True):
        node = classifier.predict(one).node
        assert result["node"] == (node and {"path": list(node.path), "score": pytest.approx(node.score)})


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


def test_a_row_of_json_may_end_above_the_deepest_level_wherever_it_stands(model_path: Path, tmp_path: Path) -> None:
    rows = [{"text": "a", "area": "goods"}, {"text": "my parcel", "area": "goods", "queue": "shipping"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    assert json.loads(succeed("evaluate", model_path, path, "--json"))["rows"] == 2
    assert [row.label for row in read_labelled_rows(path)] == ["goods", "goods > shipping"]


def test_without_a_column_of_a_level_nobody_knows_the_label(model_path: Path, rows_path: Path, tmp_path: Path) -> None:
    rows = [(row["text"], row["area"]) for row in read_rows(rows_path)]
    path = write_rows(tmp_path / "rows.csv", [("text", "area"), *rows])
    assert "real accuracy" in succeed("drift", model_path, rows_path)
    assert "real accuracy" not in succeed("drift", model_path, path)
    assert "has no column 'queue'; it has 'text', 'area'." in fail(3, "evaluate", model_path, path)


def test_one_level_is_not_taken_for_the_path(model_path: Path, tmp_path: Path) -> None:
    # Of a name that is well known for the label.
    succeed("train", _levels(tmp_path, "area", "category"), "--label-column", "area > category", "--epochs", "1")
    said = fail(3, "evaluate", tmp_path / "rows.onnx", _levels(tmp_path, "region", "category"))
    assert "has no column 'area'; it has 'text', 'region', 'category'." in said


def _levels(folder: Path, *names: str) -> Path:
    rows = [(f"{word} {i}", word, f"{word} {i % 2}") for i in range(12) for word in ("soup", "bread")]
    return write_rows(folder / "rows.csv", [("text", *names), *rows])


@pytest.mark.parametrize(
    ("row", "column", "said"),
    [
        (
            ("a", "", "x"),
            COLUMN,
            "line 3: the level 'area' of the label is empty, and 'queue' below it is not; fill it",
        ),
        (
            ("a", "x > y", "z"),
            COLUMN,
            "line 3: the level 'area' of the label, 'x > y', holds '>', which separates levels",
        ),
        (
            ("a", "60 >", "z"),
            COLUMN,
            "line 3: the level 'area' of the label, '60 >', holds '>', which separates levels",
        ),
        (("a", "x", "y"), " > ".join("x" * 51), "The label column names 51 levels, and 50 are the most that are read."),
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


@pytest.mark.parametrize("several", [("--label-separator", ";"), ("--task", "several"), ("--merge-rows",)])
def test_rows_of_a_tree_in_columns_have_one_label(several: tuple[str, ...], rows_path: Path, tmp_path: Path) -> None:
    said = fail(2, "train", rows_path, "--label-column", COLUMN, "--output", tmp_path / "m.onnx", *several)
    assert "The columns 'area > queue' are the levels of a tree, of which a row has one label" in said
