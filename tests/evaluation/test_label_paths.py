"""Labels that are paths of a tree: sums by level, the deepest sure node, hierarchical figures by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command_line import fail, read_rows, succeed, write_rows
from textcls import Classifier, ConfigError, InputError, evaluate
from textcls.data import open_table
from textcls.evaluation.label_paths import evaluate_paths
from textcls.model.label_paths import LabelPaths, full_name, labels_below

TREE = LabelPaths(["a > x", "a > y", "b > x", "b", "c > z > deep"], " > ")
PARTS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


def test_the_probability_of_a_node_is_the_sum_of_the_labels_at_and_below_it() -> None:
    probabilities = np.array([[0.1, 0.2, 0.3, 0.15, 0.25]])
    assert TREE.depth == 3
    assert TREE.nodes(1) == [("a",), ("b",), ("c",)]
    assert TREE.probabilities(probabilities, 1)[0] == pytest.approx([0.3, 0.45, 0.25])
    # A label that ends above a level stands there for itself.
    assert TREE.nodes(2) == [("a", "x"), ("a", "y"), ("b", "x"), ("b",), ("c", "z")]
    assert TREE.probabilities(probabilities, 2)[0] == pytest.approx([0.1, 0.2, 0.3, 0.15, 0.25])


def test_the_last_part_of_a_name_means_the_node_with_all_below_it_as_well() -> None:
    labels = ["food", "food > fruit", "food > fruit > apple", "toys"]
    tree = LabelPaths(labels, " > ")
    assert full_name(labels, tree, "fruit") == "food > fruit"
    for name in ("fruit >", "food > fruit >", " fruit>"):
        assert full_name(labels, tree, name) == "food > fruit >"
        assert labels_below(labels, tree, name) == [1, 2]


@pytest.mark.parametrize(
    ("probabilities", "threshold", "path"),
    [
        ([0.5, 0.4, 0.05, 0.03, 0.02], 0.8, ("a",)),
        ([0.5, 0.4, 0.05, 0.03, 0.02], 0.5, ("a", "x")),
        ([0.3, 0.3, 0.2, 0.1, 0.1], 0.7, None),
        # Down from the best node of a level, not to the best of the next one.
        ([0.3, 0.3, 0.35, 0.0, 0.05], 0.3, ("a", "x")),
        ([0.0, 0.0, 0.1, 0.9, 0.0], 0.6, ("b",)),
        # A child that is sure enough, beside a label that ends above it.
        ([0.0, 0.0, 0.4, 0.6, 0.0], 0.3, ("b", "x")),
        ([0.0, 0.0, 0.0, 0.1, 0.9], 0.9, ("c", "z", "deep")),
    ],
)
def test_the_deepest_sure_node_is_found_from_the_root_down(
    probabilities: list[float], threshold: float, path: tuple[str, ...] | None
) -> None:
    (node,) = TREE.deepest(np.array([probabilities]), threshold)
    assert (None if node is None else node.path) == path


@given(st.lists(PARTS, min_size=2, max_size=12, unique=True), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_levels_add_up_to_one_and_a_sure_node_has_the_probability_that_is_told(
    labels: list[str], seed: int, threshold: float
) -> None:
    labels = [*labels, "d/e"]
    tree = LabelPaths(labels, "/")
    probabilities = np.random.default_rng(seed).dirichlet(np.ones(len(labels)), 3)
    for level in range(1, tree.depth + 1):
        assert tree.probabilities(probabilities, level).sum(1) == pytest.approx(np.ones(3))
    for row, node in zip(probabilities, tree.deepest(probabilities, threshold), strict=True):
        if node is not None:
            below = [tree.path(label)[: len(node.path)] == node.path for label in labels]
            assert node.score >= threshold - 1e-6
            assert node.score == pytest.approx(row[below].sum())


def test_labels_of_an_upper_level_alone_count_by_their_nodes(tree_path: Path, tmp_path: Path) -> None:
    rows = [(row["text"], row["label"].split(" / ")[0]) for row in read_rows(tree_path.with_name("rows.csv"))]
    above = write_rows(tmp_path / "above.csv", [("text", "label"), *rows])
    told = json.loads(succeed("evaluate", tree_path, above, "--label-path", " / ", "--json"))
    assert told["paths"]["levels"][0]["accuracy"] > 0.5
    assert told["accuracy"] == 0
    assert "rows has a label that the model knows" in fail(3, "evaluate", tree_path, above)


def test_a_row_whose_path_has_ended_has_no_node_further_down() -> None:
    tree = LabelPaths(["A > a > x", "A > b > y", "Z"], " > ")
    probabilities = np.array([[0.3, 0.1, 0.6]] * 30 + [[0.9, 0.05, 0.05]] * 30)
    assert [best.max() for _, _, best in tree.descent(probabilities[:1])] == [0.6, -1, -1]
    found = evaluate_paths(tree, probabilities, ["Z"] * 30 + ["A > a > x"] * 30, None, 0.9)
    points = [level.point for level in found.levels]
    assert [(point.threshold, point.accepted, point.right) for point in points if point is not None] == [
        (0.0, 60, 60),
        (0.0, 30, 30),
        (0.0, 30, 30),
    ]


def test_figures_are_those_worked_by_hand() -> None:
    probabilities = np.array([[0.6, 0.2, 0.1, 0.05, 0.05], [0.1, 0.1, 0.3, 0.3, 0.2], [0.2, 0.2, 0.35, 0.0, 0.25]])
    found = evaluate_paths(TREE, probabilities, ["a > y", "b", "a > new"], 0.55)
    first, second, third = found.levels
    # By sums "a" is first in the first and the last row; the last label answered is "b > x".
    assert (first.accuracy, first.accuracy_of_labels) == (1.0, 2 / 3)
    assert (second.accuracy, second.accuracy_of_labels) == (0.0, 0.0)
    # Sure: "a > x", which is wrong; "b", which is right; of the last row nothing.
    assert [(level.stopped, level.stopped_right) for level in found.levels] == [(1, 1), (1, 0), (0, 0)]
    assert found.unsure == 1
    # Answered: a > x, b > x, b > x, six nodes; right: five; in common: a, b.
    assert (found.precision, found.recall) == (2 / 6, 2 / 5)
    assert found.f1 == pytest.approx(2 * (2 / 6) * (2 / 5) / (2 / 6 + 2 / 5))
    assert third.nodes == 5


@pytest.mark.parametrize(
    ("labels", "separator", "error", "said"),
    [
        (["a", "b"], ">", ConfigError, "No label holds the separator '>'"),
        (["a > b"], "", ConfigError, "No label holds the separator ''"),
        (["a > b", "a > "], ">", InputError, "'a > ' has an empty part"),
        (["/".join("a" * 51)], "/", ConfigError, "a label has 51 levels; at most 50 are read"),
    ],
)
def test_what_is_no_tree_is_refused_in_one_sentence(
    labels: list[str], separator: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        LabelPaths(labels, separator)


@pytest.fixture(scope="module")
def tree_path(sample_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose labels are paths of two levels, beside the rows it was trained on."""
    folder = tmp_path_factory.mktemp("tree")
    above = {"billing": "money", "returns": "money", "sales": "money", "shipping": "goods", "technical": "goods"}
    rows = [(row["text"], f"{above.get(row['label'], 'person')} / {row['label']}") for row in read_rows(sample_path)]
    write_rows(folder / "rows.csv", [("text", "label"), *rows])
    succeed("train", folder / "rows.csv", "--output", folder / "tree.onnx", "--epochs", "3", "--quiet")
    return folder / "tree.onnx"


def test_evaluate_tells_each_level_and_predict_the_deepest_sure_node(tree_path: Path, tmp_path: Path) -> None:
    rows = tree_path.with_name("rows.csv")
    told = json.loads(succeed("evaluate", tree_path, rows, "--label-path", " / ", "--json"))
    first, second = told["paths"]["levels"]
    assert (first["nodes"], second["nodes"]) == (3, 7)
    assert first["accuracy"] >= second["accuracy"] == pytest.approx(told["accuracy"])
    classifier = Classifier.load(tree_path)
    pairs = [(row["text"], row["label"]) for row in read_rows(rows)]
    assert json.loads(json.dumps(evaluate(classifier, pairs, label_path=" / ").as_json())) == told
    assert "Hierarchical F1" in succeed("evaluate", tree_path, rows, "--label-path", " / ")
    # A threshold that is looked for makes no other nodes sure.
    with pytest.warns(UserWarning, match=r"has learned from 100% of these rows, so a threshold .* promises too much"):
        aimed = evaluate(classifier, pairs, label_path=" / ", target_precision=1.0)
    assert aimed.paths is not None
    assert (aimed.paths.threshold, aimed.paths.unsure) == (0.5, told["paths"]["unsure"])
    output = tmp_path / "answers.csv"
    succeed("predict", tree_path, rows, "--output", output, "--label-path", " / ", "--threshold", "0.9")
    tree = LabelPaths(classifier.labels, " / ")
    answers = read_rows(output)
    for row, answer in zip(answers[:50], classifier.predict([row["text"] for row in answers[:50]]), strict=True):
        (node,) = tree.deepest(answer.probabilities[None], 0.9)
        assert row["predicted_node"] == ("" if node is None else tree.name(node.path))
        assert " / ".join(filter(None, (row["level_1"], row["level_2"]))) == row["predicted_node"]
        assert row["node_score"] == ("" if node is None else str(round(node.score, 6)))
    assert len({row["predicted_node"].count("/") for row in answers}) == 2


def test_the_deepest_sure_node_goes_to_parquet_whatever_its_columns_are_called(tree_path: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    asked = ("--label-path", " / ", "--prefix", "our ", "--top-k", "2", "--explain", "--threshold", "0.9")
    for name in ("answers.parquet", "answers.jsonl"):
        succeed("predict", tree_path, tree_path.with_name("rows.csv"), "--output", tmp_path / name, *asked)
    told = []
    for name in ("answers.parquet", "answers.jsonl"):
        with open_table(tmp_path / name) as table:
            told.append([row.fields for row in table.rows])
    for one, other in zip(*told, strict=True):
        for key in ("our score", "our node_score", "our predicted_node", "our level_1"):
            assert one[key] == other[key]
        assert [list(best.values()) for best in one["our top_labels"]] == other["our top_labels"]
        assert [list(pair.values()) for pair in one["our explanation"]] == other["our explanation"]
    unsure = [row for row in told[0] if row["our node_score"] is None]
    assert unsure
    assert all(row["our predicted_node"] is row["our level_1"] is row["our level_2"] is None for row in unsure)


def test_a_file_without_a_sure_node_has_columns_of_strings_all_the_same(tree_path: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    asked = ("--label-path", " / ", "--threshold", "1")
    succeed("predict", tree_path, tree_path.with_name("rows.csv"), "--output", tmp_path / "answers.parquet", *asked)
    found = parquet.read_table(tmp_path / "answers.parquet")
    assert found["level_1"].null_count == found.num_rows
    assert str(found.schema.field("level_1").type) == "string"


def test_labels_that_are_no_paths_and_models_of_several_labels_are_refused(
    model_path: Path, several_labels_path: Path, sample_path: Path, tmp_path: Path
) -> None:
    for command, *more in (("evaluate",), ("predict", "--output", str(tmp_path / "answers.csv"))):
        asked = (*more, "--label-path", "/")
        assert "No label holds the separator '/'" in fail(2, command, model_path, sample_path, *asked)
        assert "--label-path is for models of one label" in fail(2, command, several_labels_path, sample_path, *asked)
    assert not (tmp_path / "answers.csv").exists()
