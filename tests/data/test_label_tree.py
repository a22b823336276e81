"""A tree of labels in a file: paths from child and parent, and what is not a tree."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command_line import fail, read_rows, run, succeed, write_rows
from textcls import Classifier, ConfigError, InputError
from textcls.data import Labelled, LabelledSets
from textcls.data.label_tree import LabelTree, read_tree
from textcls.data.renaming import Renaming

TREE = [("child", "parent"), ("billing", "money"), ("returns", "money"), ("sales", "money"), ("shipping", "goods")]
ROOTED = [*TREE, ("technical", "goods"), ("other", ""), ("account", "money"), ("goods", ""), ("spare", "goods")]


@pytest.fixture(scope="module")
def model_path(sample_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the sample, whose labels stand in a tree."""
    folder = tmp_path_factory.mktemp("tree")
    labels = {row["label"] for row in read_rows(sample_path)}
    write_rows(folder / "tree.csv", [*ROOTED, *((label, "") for label in labels - {name for name, _ in ROOTED})])
    how = ("--label-tree", folder / "tree.csv", "--epochs", "3")
    said = run("train", sample_path, *how, "--output", folder / "m.onnx").stderr
    assert f"Labels are read as their paths in {folder / 'tree.csv'}, such as" in said
    assert "leaves have no row, and are never answered." in said
    return folder / "m.onnx"


def tree_of(folder: Path, *rows: tuple[str, str]) -> LabelTree:
    return read_tree(write_rows(folder / "tree.csv", [("child", "parent"), *rows]))


def test_weights_of_labels_name_nodes_as_rows_do_or_whole_paths(
    sample_path: Path, model_path: Path, tmp_path: Path
) -> None:
    tree = model_path.with_name("tree.csv")
    (tmp_path / "weights.json").write_text('{"billing": 3, "goods > shipping": 2}')
    how = ("--class-weight", tmp_path / "weights.json", "--epochs", "1", "--vectors", "none", "-o", tmp_path / "m.onnx")
    succeed("train", sample_path, "--label-tree", tree, *how)
    (tmp_path / "weights.json").write_text('{"billing": 3, "money > billing": 2}')
    assert "weighs a node twice" in fail(2, "train", sample_path, "--label-tree", tree, "--quiet", *how)
    (tmp_path / "weights.json").write_text('{"nothing": 3}')
    assert "a weight for 'nothing', which no" in fail(2, "train", sample_path, "--label-tree", tree, "--quiet", *how)


def test_the_path_of_a_node_goes_down_from_its_root(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, ("rye", "bread"), ("bread", "food"), ("tea", "drinks"), ("drinks", ""))
    assert dict(tree.paths) == {
        "rye": "food > bread > rye",
        "bread": "food > bread",
        "food": "food",
        "tea": "drinks > tea",
        "drinks": "drinks",
    }
    assert tree.leaves == {"rye", "tea"}


@given(st.lists(st.integers(0, 100), min_size=1, max_size=40))
def test_any_tree_comes_back_from_its_rows_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, ups: list[int]
) -> None:
    parents = {i: up % i for i, up in enumerate(ups) if i}
    rows = [(f"n{child}", f"n{parent}") for child, parent in sorted(parents.items(), key=lambda pair: hash(pair))]
    tree = tree_of(tmp_path_factory.mktemp("t"), *rows, ("n0", ""))
    for child, parent in parents.items():
        assert tree.paths[f"n{child}"] == f"{tree.paths[f'n{parent}']} > n{child}"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("child", "above"), ("a", "b")], "has no column 'parent': a tree of labels has 'child' and 'parent'."),
        ([("child", "parent")], "has no node; fill it in, or leave it out."),
        ([("child", "parent"), ("", "b")], "line 2: the label in column 'child' is empty."),
        ([("child", "parent"), ("a", "b"), ("a", "c")], "line 3: 'a' is below 'b' above, and below 'c' here; a node"),
        ([("child", "parent"), ("a", ""), ("a", "c")], "line 3: 'a' is below nothing above, and below 'c' here;"),
        ([("child", "parent"), ("a", "a")], "is not a tree: 'a' below 'a'; give one of them another parent, or none."),
        ([("child", "parent"), ("a", "b"), ("b", "c"), ("c", "b")], "is not a tree: 'b' below 'c' below 'b'; give one"),
        ([("child", "parent"), ("a > b", "c")], "line 2: the child 'a > b' holds '>', which separates levels; rename"),
        ([("child", "parent"), ("x", "a >")], "line 2: the parent 'a >' holds '>', which separates levels; rename it."),
        (
            [("child", "parent"), *((f"n{i}", f"n{i + 1}") for i in range(50))],
            "'n0' has more than 50 levels, the maximum.",
        ),
        (
            [("child", "parent"), *((f"{i}" * 90, f"{i + 1}" * 90) for i in range(8, 20))],
            "characters; the maximum is 1,000; use shorter names.",
        ),
    ],
)
def test_what_is_no_tree_is_refused_in_one_sentence(rows: list[tuple[str, str]], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_tree(write_rows(tmp_path / "tree.csv", rows))
    assert said in str(error.value)


def test_labels_that_the_tree_lacks_and_several_labels_are_refused(tmp_path: Path) -> None:
    renaming = Renaming({"old": "rye"}, merge=False, tree=tree_of(tmp_path, ("rye", "bread")))
    given = Labelled(["x", "y", "z"], ["old", "bread > rye", "bread"])
    assert renaming.learn(given)[0] == "The label 'old' is read as 'rye'."
    assert renaming.of(given).labels == ["bread > rye", "bread > rye", "bread"]
    with pytest.raises(InputError, match="has no node 'cake', 'tea', which rows have as a label; add a row for each"):
        renaming.learn(Labelled(["x", "y", "z"], ["tea", "cake", "rye"]))
    with pytest.raises(ConfigError, match="--label-tree is for rows with one label each"):
        renaming.learn(LabelledSets(["x"], [{"rye": 1.0}]))


def test_rows_whose_label_the_tree_lacks_can_be_skipped(sample_path: Path, tmp_path: Path) -> None:
    labels = sorted({row["label"] for row in read_rows(sample_path)})
    tree = write_rows(tmp_path / "tree.csv", [("child", "parent"), *((label, "all") for label in labels[1:])])
    how = ("--label-tree", tree, "--epochs", "1", "--vectors", "none", "-o", tmp_path / "m.onnx")
    assert f"has no node {labels[0]!r}" in fail(3, "train", sample_path, *how)
    said = run("train", sample_path, *how, "--on-error", "skip").stderr
    assert f"the label {labels[0]!r} is not a node of {tree}" in said
    assert Classifier.load(tmp_path / "m.onnx").labels == tuple(f"all > {label}" for label in labels[1:])


def test_a_model_of_a_tree_is_judged_by_rows_that_name_the_nodes_alone(model_path: Path, sample_path: Path) -> None:
    assert "money > billing" in Classifier.load(model_path).labels
    told = json.loads(succeed("evaluate", model_path, sample_path, "--json"))
    assert told["accuracy"] > 0.5
    assert [level["level"] for level in told["paths"]["levels"]] == [1, 2]
    assert "Hierarchical F1" in succeed("evaluate", model_path, sample_path)
    succeed("report", model_path, sample_path, "--output", model_path.with_name("report.md"))


def test_a_node_above_labels_is_explained_as_a_label_is(model_path: Path, sample_path: Path) -> None:
    text = "my card was charged twice"
    classifier = Classifier.load(model_path)
    below = [label for label in classifier.labels if label.startswith("money > ")]
    told = json.loads(succeed("explain", model_path, text, "--label", "money", "--json"))["evidence"]
    assert told["label"] == "money"
    assert told["bias"] + sum(told["tokens"]) == pytest.approx(told["total"], abs=1e-4)
    assert f"-> {model_path.with_name('a.html')}" in succeed(
        "explain", model_path, text, "--label", "money", "--html", model_path.with_name("a.html")
    )
    shown = succeed("explain", model_path, text, "--label", "money", "--contrast", "goods")
    assert "why money and not goods:" in shown
    # Held against its own node, the answer gives way to the best label elsewhere.
    assert classifier.predict(text).label in below
    assert "and not money:" in succeed("explain", model_path, text, "--contrast", "money")
    rows = succeed("explain", model_path, text, "--label", "money", "--rows", sample_path)
    assert "money > billing" in rows.split("another")[0]
    score = sum(scored.score for scored in classifier.predict(text).top() if scored.label in below)
    assert f"money, {score:.1%}, against all others:" in succeed("explain", model_path, text, "--label", "money")
    assert "one stands above the other" in fail(
        2, "explain", model_path, text, "--label", "money", "--contrast", below[0]
    )


def test_rows_of_a_node_above_labels_are_told_from_those_of_unknown_labels(model_path: Path, tmp_path: Path) -> None:
    rows = [("text", "label"), ("my card was charged twice", "money"), ("it broke", "goods > technical"), ("hm", "odd")]
    said = succeed("evaluate", model_path, write_rows(tmp_path / "rows.csv", rows))
    assert "'money' stands above labels of the model" in said
    assert "The model does not know 'odd': rows with such labels count as errors." in said
    refused = fail(2, "explain", model_path, "my card", "--label", "goods", "--counterfactual")
    assert "'goods' is not the answer, with" in refused


def test_each_level_has_a_threshold_for_the_precision_that_is_asked_for(model_path: Path, sample_path: Path) -> None:
    told = json.loads(succeed("evaluate", model_path, sample_path, "--target-precision", "0.9", "--json"))
    first, second = (level["point"] for level in told["paths"]["levels"])
    assert first["precision"] >= 0.9 <= second["precision"]
    assert first["threshold"] <= second["threshold"]
    table = succeed("evaluate", model_path, sample_path, "--target-precision", "0.9")
    assert "For nodes that are right in 90.00%, level by level:" in table
    # What stands in the column of the level is then right as often.
    output = model_path.with_name("answers.csv")
    succeed("predict", model_path, sample_path, "--threshold", str(first["threshold"]), "--output", output)
    above = {child: parent or child for child, parent in ROOTED}
    pairs = [(row["level_1"], above.get(row["label"], row["label"])) for row in read_rows(output) if row["level_1"]]
    assert len(pairs) == first["accepted"]
    assert sum(one == other for one, other in pairs) == first["right"]


def test_a_training_that_goes_on_reads_nodes_as_the_one_before(sample_path: Path, tmp_path: Path) -> None:
    labels = {row["label"] for row in read_rows(sample_path)}
    tree = write_rows(tmp_path / "tree.csv", [("child", "parent"), *((label, "all") for label in labels)])
    how = ("--epochs", "1", "--vectors", "none", "--quiet")
    succeed("train", sample_path, "--label-tree", tree, "--state", tmp_path / "st", "-o", tmp_path / "m.onnx", *how)
    succeed("train", sample_path, "--from", tmp_path / "st", "-o", tmp_path / "n.onnx", *how)
    assert Classifier.load(tmp_path / "n.onnx").labels == Classifier.load(tmp_path / "m.onnx").labels


def test_a_tree_that_is_none_ends_a_training_before_it(sample_path: Path, tmp_path: Path) -> None:
    tree = write_rows(tmp_path / "tree.csv", TREE)
    said = fail(3, "train", sample_path, "--label-tree", tree, "--output", tmp_path / "m.onnx")
    assert "has no node '" in said
    assert not (tmp_path / "m.onnx").exists()
