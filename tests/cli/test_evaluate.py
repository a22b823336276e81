"""`textcls evaluate`: the numbers of the API, as tables and as JSON."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import fail, read_rows, run, succeed, write_rows
from textcls import Classifier
from textcls.display.terminal.evaluation import confusion_table
from textcls.evaluation import metrics


@pytest.fixture
def heldout(tmp_path: Path, sample_path: Path) -> Path:
    """Twenty labelled rows, two of a label that the small model does not know."""
    rows = [list(row.values()) for row in read_rows(sample_path)[-18:]]
    return write_rows(tmp_path / "heldout.csv", [("text", "label"), *rows, ("a", "gossip"), ("b", "gossip")])


def test_evaluate_prints_one_json_object_with_the_numbers_of_the_api(
    model_path: Path, classifier: Classifier, heldout: Path
) -> None:
    output = succeed("evaluate", model_path, heldout, "--json")
    assert output.count("\n") == 1
    report = json.loads(output)
    assert set(report) == {
        "rows", "accuracy", "macro_f1", "ece", "cross_entropy", "perplexity", "labels", "confusion", "learned",
        "top_k_accuracy", "reliability",
    }  # fmt: skip
    assert (report["cross_entropy"], report["perplexity"]) == (None, None)  # of an unknown label it is infinite
    rows = read_rows(heldout)
    right = [a.label == r["label"] for a, r in zip(classifier.predict([r["text"] for r in rows]), rows, strict=True)]
    assert report["rows"] == 20
    assert report["accuracy"] == pytest.approx(sum(right) / 20)
    assert 0 <= report["ece"] <= 1
    assert 0 < report["macro_f1"] < 1
    assert [label["label"] for label in report["labels"]] == [*classifier.labels, "gossip"]
    assert np.sum(report["confusion"]) == 20


def test_evaluate_prints_scores_a_table_of_labels_and_the_confusions(model_path: Path, heldout: Path) -> None:
    report = json.loads(succeed("evaluate", model_path, heldout, "--json"))
    output = succeed("evaluate", model_path, heldout)
    assert f"20 rows   accuracy {report['accuracy']:.2%} (18.1% to 56.7%)   macro-F1 {report['macro_f1']:.2%}" in output
    assert f"ECE {report['ece']:.3f}" in output
    for label in report["labels"]:
        shown = [label["label"], *(f"{label[name]:.1%}" for name in ("precision", "recall", "f1")), str(label["rows"])]
        assert shown in [line.split() for line in output.splitlines()]
    assert "right \\ answered" in output
    assert "The model does not know 'gossip': rows with such labels count as errors." in output


def test_a_matrix_too_wide_to_read_gives_way_to_the_most_frequent_confusions() -> None:
    labels = [f"a label with a long name, number {number}" for number in range(30)]
    found = metrics.report(np.eye(30)[[1, 1] * 20], np.array([0, 1] * 20), labels)
    for width in (80, 10_000):
        table = confusion_table(found, width)
        assert table is not None
        assert table.title == "most frequent confusions"


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_rows_none_of_whose_labels_the_model_knows_are_refused_with_what_may_be_meant(
    model_path: Path, tmp_path: Path, command: str
) -> None:
    rows = [("my card was charged", "Bill-ing "), ("hello", "ham"), ("hi", "spam")]
    said = fail(3, command, model_path, write_rows(tmp_path / "rows.csv", [("text", "label"), *rows]))
    assert "None of the 3 rows has a label that the model knows, but 'Bill-ing' (did you mean 'billing'?)" in said
    assert "'ham', 'spam', and the model knows 'account', 'billing'," in said
    assert "is that the column of the labels, and the right model?" in said
    rows += [("my parcel", f"label {i}") for i in range(8)]
    said = fail(3, command, model_path, write_rows(tmp_path / "rows.csv", [("text", "label"), *rows]))
    assert "'label 5' and 3 more labels, and" in said
    rows = [("where is my parcel", "shipping"), ("hello", "Ship-ping")]
    said = succeed(command, model_path, write_rows(tmp_path / "rows.csv", [("text", "label"), *rows]))
    assert "does not know 'Ship-ping' (did you mean 'shipping'?): rows with such labels count as errors." in said


def test_evaluate_reads_several_files_guesses_columns_and_skips_bad_rows(
    model_path: Path, heldout: Path, tmp_path: Path
) -> None:
    (tmp_path / "more.jsonl").write_text('{"text": "refund", "label": "returns"}\n{"text": "parcel"}\n[]\n')
    assert "line 2: the label in column 'label' is empty" in fail(3, "evaluate", model_path, tmp_path / "more.jsonl")
    result = run("evaluate", model_path, heldout, tmp_path / "more.jsonl", "--json", "--on-error", "skip")
    assert json.loads(result.stdout)["rows"] == 21
    assert result.stderr.startswith("Note: Skipped 2 rows that cannot be used: ")
    data = write_rows(tmp_path / "other.csv", [("message", "intent"), ("refund", "returns")])
    result = run("evaluate", model_path, data, "--json")
    assert json.loads(result.stdout)["rows"] == 1
    assert result.stderr.splitlines() == [
        f"Note: {data} has no column 'text'; 'message' is read as the text.",
        f"Note: {data} has no column 'label'; 'intent' is read as the label.",
    ]


def test_evaluate_reads_the_columns_it_is_reported(model_path: Path, classifier: Classifier, tmp_path: Path) -> None:
    joined = classifier.predict("refund\nparcel").label
    data = write_rows(tmp_path / "data.csv", [("a", "b", "queue"), ("refund", "parcel", joined)])
    columns = ("--text-column", "a", "--text-column", "b", "--label-column", "queue")
    assert json.loads(succeed("evaluate", model_path, data, "--json", *columns))["accuracy"] == 1


def test_labels_that_the_model_spells_otherwise_are_read_as_its_own(model_path: Path, tmp_path: Path) -> None:
    rows = [("text", "label"), ("my card was charged twice", " BILLING"), ("where is it", "gossip")]
    result = run("evaluate", model_path, write_rows(tmp_path / "h.csv", rows), "--json")
    assert "Note: Labels are read as the model has them: 'BILLING' as 'billing'." in result.stderr
    assert "BILLING" not in result.stdout
    assert "gossip" in result.stdout


def test_whole_numbers_as_labels_are_known_with_and_without_a_point(tmp_path: Path) -> None:
    texts = [(f"{word} {i}", number) for i in range(30) for word, number in (("good", "1"), ("bad", "-1"))]
    data = write_rows(tmp_path / "t.csv", [("text", "label"), *texts])
    succeed("train", data, "--epochs", "1", "-o", tmp_path / "m.onnx")
    floats = [("text", "label"), *((text, f"{number}.0") for text, number in texts)]
    result = run("evaluate", tmp_path / "m.onnx", write_rows(tmp_path / "h.csv", floats), "--json")
    assert json.loads(result.stdout)["rows"] == 60
    assert "'1.0' as '1', '-1.0' as '-1'" in result.stderr
    assert json.loads(result.stdout)["macro_f1"] > 0.5
