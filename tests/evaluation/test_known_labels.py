"""Rows may call the labels of a model by other names: all that judges a model reads them alike, files and Python."""

from pathlib import Path

import pytest

import textcls
from tests.command_line import fail, run, succeed, write_rows
from textcls import Classifier, InputError
from textcls.evaluation.drift.drift import measure_drift
from textcls.evaluation.unknown_labels import unknown_labels_sentence
from textcls.explain.similar_rows import similar_rows

LEAVES = {"Bread > rye": "dark loaf crust", "Bread > wheat": "white roll flour", "Cheese > gouda": "yellow dutch wheel"}
BRIE = {"Cheese > brie": "soft french mould"}
# The last part of a path, a whole one, and another spelling of one.
ROWS = [
    ("dark loaf", "rye"),
    ("white flour", "Bread > wheat"),
    ("soft mould", "cheese > BRIE"),
    ("dutch wheel", "gouda"),
]
NOTE = "Labels are read as the model has them: 'cheese > BRIE' as 'Cheese > brie'."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of three leaves, one that has a fourth, and rows of all."""
    found = tmp_path_factory.mktemp("tree")
    write_rows(found / "rows.csv", [("text", "label"), *ROWS])
    for name, labels in (("three", LEAVES), ("four", LEAVES | BRIE)):
        rows = [(f"{words} {number}", label) for label, words in labels.items() for number in range(12)]
        texts, given = zip(*rows, strict=True)
        textcls.train(texts, given, found / f"{name}.onnx", epochs=12, vectors="none", ngrams="none", dim=8)
    return found


def test_evaluate_and_report_read_the_labels_of_rows_in_python_as_in_files(folder: Path) -> None:
    four = Classifier.load(folder / "four.onnx")
    assert "100.00%" in succeed("evaluate", folder / "four.onnx", folder / "rows.csv")
    with pytest.warns(UserWarning, match=NOTE):
        assert textcls.evaluate(four, ROWS).as_json()["accuracy"] == 1
    with pytest.warns(UserWarning, match=NOTE):
        assert textcls.report(four, ROWS).scores.accuracy == 1


def test_whatever_reads_labels_if_there_are_any_reads_them_as_the_model_has_them(
    watched: Classifier, tickets: list[tuple[str, str]]
) -> None:
    rows = tickets[:40]
    other = [(text, f" {label.upper()}") for text, label in rows]
    right = sum(watched.predict(text).label == label for text, label in rows)
    assert right > 20
    explanation = watched.explain(rows[0][0])
    same = similar_rows(watched, explanation, explanation.attribution(), rows).same
    assert same
    with pytest.warns(UserWarning, match="Labels are read as the model has them"):
        assert textcls.explain_globally(watched, other).right == right
    with pytest.warns(UserWarning, match="Labels are read as the model has them"):
        found = measure_drift(watched, other)
    assert found.accuracy is not None
    assert found.accuracy.value == right / 40
    with pytest.warns(UserWarning, match="Labels are read as the model has them"):
        assert similar_rows(watched, explanation, explanation.attribution(), other).same == same


def test_of_probabilities_of_labels_those_from_a_half_on_count_as_labels(several_labels: Classifier) -> None:
    names = several_labels.labels
    texts = ["where is my parcel", "my card was charged twice", "charged twice, and where is my parcel"]
    answers = [set(answer.assigned) for answer in several_labels.predict(texts)]
    shares = [{name: 0.8 if name in has else 0.3 for name in names} for has in answers]
    rows = list(zip(texts, shares, strict=True))
    assert textcls.explain_globally(several_labels, rows).right == 3
    with pytest.raises(InputError, match="Row 0 has the string 'x' for a label, and this model may give several"):
        textcls.explain_globally(several_labels, [("a", "x")])


@pytest.mark.parametrize("order", [("three", "four"), ("four", "three")])
def test_a_comparison_knows_what_either_model_knows_in_either_order(folder: Path, order: tuple[str, str]) -> None:
    said = run("compare", *(folder / f"{name}.onnx" for name in order), folder / "rows.csv").output
    assert f"Note: {NOTE}" in said
    assert "three.onnx does not know 'Cheese > brie'" in said
    first, second = (folder / f"{name}.onnx" for name in order)
    with pytest.warns(UserWarning, match=NOTE):
        found = textcls.compare(first, second, ROWS)
    right = {"three": 0.75, "four": 1.0}
    assert (found.accuracy.before, found.accuracy.after) == tuple(right[name] for name in order)


def test_a_comparison_reads_what_a_file_of_answers_says_as_it_reads_rows(folder: Path, tmp_path: Path) -> None:
    answers = write_rows(tmp_path / "answers.csv", [("predicted_label",), *((label,) for _, label in ROWS)])
    with pytest.warns(UserWarning, match=NOTE):
        found = textcls.compare(answers, folder / "four.onnx", ROWS)
    assert (found.accuracy.before, found.accuracy.after) == (1.0, 1.0)


def test_a_comparison_takes_rows_that_name_nodes_above_labels(folder: Path, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.csv", [("text", "label"), ("dark loaf", "Bread"), ("dutch wheel", "Cheese")])
    said = succeed("compare", folder / "three.onnx", folder / "four.onnx", rows)
    assert "'Bread', 'Cheese' stand above labels of the model" in said


def test_a_last_part_of_several_labels_is_not_called_unknown() -> None:
    known = ["T0 > Other", "T1 > Other", "T1 > Bread"]
    said = unknown_labels_sentence(["Nope", "Other"], known)
    assert "'Other' is the last part of several labels: rows that do not give the whole path count as errors." in said
    assert "does not know 'Nope':" in said


def test_an_unknown_label_is_answered_with_labels_alone(folder: Path) -> None:
    said = fail(2, "explain", folder / "three.onnx", "loaf", "--label", "Nosuch")
    assert said.endswith("its labels are Bread > rye, Bread > wheat, Cheese > gouda.\n")
    assert "(did you mean 'Cheese'?)" in fail(2, "explain", folder / "three.onnx", "loaf", "--label", "cheese!")
