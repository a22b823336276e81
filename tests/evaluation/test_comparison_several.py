"""Two classifiers that may give several labels on the same rows: figures, whole sets, labels that changed, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

import textcls
from tests.cli.several import Rows, several_rows
from tests.command_line import fail, read_rows, succeed, write_rows
from tests.service.server import listening, service
from textcls import Classifier, ConfigError, InputError
from textcls.evaluation.comparison.paired import Agreement
from textcls.evaluation.comparison.words import changed_words
from textcls.model.model_file.thresholds import store_thresholds

SEPARATED = ("--label-separator", ";")


@pytest.fixture(scope="module")
def rows(sample_path: Path) -> Rows:
    """Rows with one label, two or none."""
    return several_rows(read_rows(sample_path))


@pytest.fixture
def data(rows: Rows, tmp_path: Path) -> Path:
    """The rows as CSV with a separator."""
    return write_rows(tmp_path / "data.csv", [("text", "label"), *((text, ";".join(labels)) for text, labels in rows)])


@pytest.fixture
def bold(several_labels_path: Path, tmp_path: Path) -> Path:
    """The small model, assigning each label from a tenth up."""
    path = tmp_path / "bold.onnx"
    path.write_bytes(several_labels_path.read_bytes())
    store_thresholds(path, [0.1] * 7)
    return path


def answers(path: Path, sets: list[list[str]], separator: str = ";") -> Path:
    """A table of answers."""
    return write_rows(path, [("predicted_labels",), *((separator.join(labels),) for labels in sets)])


def changed(rows: Rows, *numbers: int) -> list[list[str]]:
    """The labels of rows, but for some that get one more or, if they have it, one less."""
    return [sorted({*labels} ^ {"sales"}) if i in numbers else labels for i, (_, labels) in enumerate(rows)]


def test_figures_are_those_of_scikit_learn_and_of_evaluate(several_labels: Classifier, bold: Path, rows: Rows) -> None:
    found = textcls.compare(several_labels, bold, rows)
    assert found.micro_f1 is not None
    names = list(several_labels.labels)
    gold = np.array([[name in labels for name in names] for _, labels in rows])
    texts = [text for text, _ in rows]
    for side, model in (("before", several_labels), ("after", Classifier.load(bold))):
        assigned = np.array([[name in answer.assigned for name in names] for answer in model.predict(texts)])
        report = textcls.evaluate(model, rows).report
        assert getattr(found.micro_f1, side) == pytest.approx(f1_score(gold, assigned, average="micro"))
        assert getattr(found.macro_f1, side) == pytest.approx(f1_score(gold, assigned, average="macro"))
        assert getattr(found.accuracy, side) == pytest.approx(report.exact)
        for label in report.labels:
            assert getattr(found.labels[label.label][0], side) == pytest.approx(label.f1)
            assert found.labels[label.label][1] == label.rows
    report = textcls.evaluate(several_labels, rows).report
    assert found.sides[0].ece == pytest.approx(report.ece)
    assert found.sides[0].cross_entropy == pytest.approx(report.cross_entropy)


def test_whole_label_sets_are_counted_and_every_change_is_told(tmp_path: Path, rows: Rows) -> None:
    before = answers(tmp_path / "before.csv", changed(rows, *range(12)))
    after = answers(tmp_path / "after.csv", changed(rows, 30))
    found = textcls.compare(before, after, rows)
    assert found.agreement == Agreement(both=87, first=1, second=12, neither=0, same=87)
    assert found.better is not None
    assert found.better.name == str(after)
    assert found.micro_f1 is not None
    assert found.micro_f1.is_sure
    assert [flip.kind for flip in found.flips] == ["mended"] * 12 + ["broken"]
    assert found.flips[-1].gained == ("sales",) or found.flips[-1].lost == ("sales",)
    printed = json.loads(json.dumps(found.as_json()))
    assert printed["micro_f1"]["after"] == pytest.approx(found.micro_f1.after)
    assert printed["flips"][0]["right"] == list(found.flips[0].right)


def test_a_model_is_equal_to_itself_to_its_answers_in_a_table_and_to_its_service(
    several_labels_path: Path, several_labels: Classifier, tmp_path: Path, data: Path, rows: Rows
) -> None:
    succeed("predict", several_labels_path, data, "--output", tmp_path / "answers.csv")
    succeed("predict", several_labels_path, data, "--output", tmp_path / "answers.jsonl")
    for other in (several_labels_path, tmp_path / "answers.csv", tmp_path / "answers.jsonl"):
        assert "They answer every row alike." in succeed("compare", several_labels_path, other, data, *SEPARATED)
    with listening(service(several_labels)) as address:
        assert textcls.compare(several_labels, address, rows).flips == ()
        assert textcls.compare(address, tmp_path / "answers.csv", rows).flips == ()


def test_two_tables_with_another_separator_need_no_model(tmp_path: Path, rows: Rows) -> None:
    data = write_rows(tmp_path / "bars.csv", [("text", "label"), *((text, "|".join(of)) for text, of in rows)])
    before = answers(tmp_path / "before.csv", changed(rows, 3), "|")
    after = answers(tmp_path / "after.csv", [labels for _, labels in rows], "|")
    output = succeed("compare", before, after, data, "--label-separator", "|")
    assert f"Both have all labels right on 99 rows and neither on 0; {before} alone on 0, {after} alone on 1." in output
    assert "Neither has all labels right more often by more than chance" in output
    assert "1 answer changed: 1 mended, 0 broken" in output


def test_reasons_are_words_and_their_sums_are_those_of_both_models(
    several_labels: Classifier, bold: Path, rows: Rows
) -> None:
    other = Classifier.load(bold)
    found = textcls.compare(several_labels, other, rows)
    assert found.flips
    flip = found.flips[0]
    assert flip.gained
    assert not flip.lost
    assert all(word in flip.text.lower() for reasons in flip.reasons for word in reasons)
    total = {name: i for i, name in enumerate(other.labels)}
    values = other.explain(flip.text).contributions[:, [total[label] for label in flip.gained]]
    words = changed_words([flip], [text for text, _ in rows], several_labels, other)
    assert sum(word.after for word in words) == pytest.approx(float(values.sum()), abs=1e-4)


def test_what_it_prints_names_micro_f1_and_the_label_sets_that_changed(
    several_labels_path: Path, bold: Path, data: Path
) -> None:
    output = succeed("compare", several_labels_path, bold, data, *SEPARATED)
    for said in ("micro-F1", "macro-F1", "all labels right", "have all labels right on", "F1 by label", "broken", "->"):
        assert said in output
    assert "accuracy" not in output


def test_sides_and_rows_of_the_other_kind_are_refused(
    several_labels_path: Path, several_labels: Classifier, model_path: Path, data: Path, rows: Rows, tmp_path: Path
) -> None:
    said = "gives a text one label, and it is compared where texts may have several"
    assert said in fail(2, "compare", model_path, several_labels_path, data, *SEPARATED)
    assert said in fail(2, "compare", model_path, model_path, data, *SEPARATED)
    with pytest.raises(ConfigError, match=said):
        textcls.compare(model_path, model_path, rows)
    with pytest.raises(InputError, match="Row 0 has the string 'billing' for a label"):
        textcls.compare(several_labels, several_labels, [("a", "billing")])
    assert "has one label" in fail(3, "compare", several_labels_path, several_labels_path, data)
    broken = write_rows(tmp_path / "broken.csv", [("predicted_labels",), ("[",), *[("[]",)] * 99])
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps({"text": text, "label": labels}) + "\n" for text, labels in rows))
    said = fail(3, "compare", several_labels_path, broken, lists, "--label-separator", "json")
    assert "broken.csv, line 2 has labels in column 'predicted_labels' that are not JSON" in said


def test_answers_of_a_table_that_also_has_the_right_labels_are_not_these_labels(tmp_path: Path, rows: Rows) -> None:
    right = [";".join(labels) for _, labels in rows]
    table = write_rows(tmp_path / "both.csv", [("labels", "prediction"), *((of, "billing") for of in right)])
    found = textcls.compare(table, answers(tmp_path / "right.csv", [labels for _, labels in rows]), rows)
    assert found.accuracy.before < 0.5
    assert found.accuracy.after == 1


def test_answers_of_several_labels_are_refused_where_rows_have_one(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "a.csv", [("label", "predicted_labels"), ("a", "b;a"), ("b", "b")])
    with pytest.raises(InputError, match="has answers of several labels a row, in the column 'predicted_labels'"):
        textcls.compare(table, table, [("one", "a"), ("two", "b")])


@pytest.mark.parametrize("separator", ["|", "json"])
def test_what_predict_writes_is_read_whatever_separates_the_labels_of_the_rows(
    several_labels_path: Path, tmp_path: Path, rows: Rows, separator: str
) -> None:
    cells = [json.dumps(labels) if separator == "json" else separator.join(labels) for _, labels in rows]
    texts = [text for text, _ in rows]
    data = write_rows(tmp_path / "data.csv", [("text", "label"), *zip(texts, cells, strict=True)])
    for name, options in (("usual.csv", ()), ("alike.csv", ("--label-separator", separator))):
        succeed("predict", several_labels_path, data, "--output", tmp_path / name, *options)
        said = succeed("compare", several_labels_path, tmp_path / name, data, "--label-separator", separator)
        assert "They answer every row alike." in said


@pytest.mark.parametrize("written", ["|", "json", ";"])
@pytest.mark.parametrize("rows_have", [",", "lists"])
def test_how_a_table_is_separated_is_told_by_the_labels_that_are_known(
    several_labels_path: Path, tmp_path: Path, rows: Rows, written: str, rows_have: str
) -> None:
    data = tmp_path / ("data.jsonl" if rows_have == "lists" else "data.csv")
    if rows_have == "lists":
        data.write_text("".join(json.dumps({"text": text, "label": labels}) + "\n" for text, labels in rows))
    else:
        write_rows(data, [("text", "label"), *((text, rows_have.join(labels)) for text, labels in rows)])
    succeed("predict", several_labels_path, data, "-o", tmp_path / "a.csv", "--label-separator", written)
    options = () if rows_have == "lists" else ("--label-separator", rows_have)
    said = succeed("compare", several_labels_path, tmp_path / "a.csv", data, *options)
    assert "They answer every row alike." in said


def test_tables_are_read_as_the_training_of_the_model_that_they_are_compared_with(tmp_path: Path) -> None:
    rows = [(f"{' '.join(labels)} {i}", "|".join(labels)) for i in range(40) for labels in (["ab"], ["ab", "cd"])]
    data = write_rows(tmp_path / "data.csv", [("text", "label"), *rows])
    model = tmp_path / "bars.onnx"
    succeed("train", data, "--label-separator", "|", "--output", model, "--vectors", "none")
    table = write_rows(tmp_path / "answers.csv", [("prediction",), *((label,) for _, label in rows)])
    found = json.loads(succeed("compare", model, table, data, "--json"))
    assert found["accuracy"]["after"] == 1


def test_labels_that_a_side_does_not_know_are_named_and_where_it_knows_none_it_is_refused(
    several_labels_path: Path, several_labels: Classifier, rows: Rows, tmp_path: Path
) -> None:
    upper = [(text, [label.upper() for label in labels]) for text, labels in rows]
    other = [(text, [f"no {label}" for label in labels]) for text, labels in rows]
    with pytest.raises(InputError, match=r"None of the 100 rows has a label that \S+ knows, but 'no acc"):
        textcls.compare(several_labels, several_labels, other)
    with pytest.warns(UserWarning, match="Labels are read as the model has them: 'SALES' as 'sales'"):
        assert not textcls.compare(several_labels, several_labels, upper).sides[0].unknown_labels
    table = answers(tmp_path / "upper.csv", [labels for _, labels in upper])
    with pytest.warns(UserWarning, match="Labels are read as the model has them: 'SALES' as 'sales'"):
        assert textcls.compare(several_labels, table, rows).accuracy.after == 1
    table = answers(tmp_path / "other.csv", [labels for _, labels in other])
    with pytest.raises(InputError, match=r"None of the 100 rows has a label that \S+other.csv answers with, but 'acc"):
        textcls.compare(several_labels, table, rows)
    some = [(text, [*labels, "gossip"]) for text, labels in rows]
    assert textcls.compare(several_labels, several_labels, some).sides[0].unknown_labels == ("gossip",)
    odd = write_rows(tmp_path / "odd.csv", [("text", "label"), *((text, ";".join(labels)) for text, labels in some)])
    said = succeed("compare", several_labels_path, several_labels_path, odd, *SEPARATED)
    assert f"{several_labels_path} does not know 'gossip', and so never assigns such labels." in said


def test_rows_and_answers_without_any_label_are_refused(tmp_path: Path) -> None:
    table = answers(tmp_path / "none.csv", [[], []])
    with pytest.raises(InputError, match="no row and no answer has a label"):
        textcls.compare(table, table, [("one", []), ("two", [])])
