"""`textcls predict` where a text may have several labels: lists, or cells that are read again as they were."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from tests.command_line import fail, read_rows, succeed, write_rows
from textcls import Classifier
from textcls.data import TargetOptions, read_label_sets
from textcls.jobs.batch.answer_columns import AnswerColumns
from textcls_training.api import train

WORDS = {"a bill": ("card", "charged", "invoice"), "refund": ("money", "back", "return"), "post": ("parcel", "late")}
SETS: list[list[str]] = [[], ["a bill"], ["refund"], ["post"], ["a bill", "refund"], ["refund", "post"]]
TEXTS = ["card charged and money back", "parcel late", "hello", "invoice"]


def rows(names: dict[str, str] | None = None) -> tuple[list[str], list[list[str]]]:
    """Texts with a word of each of their labels, which are called as `names` says."""
    texts, labels = [], []
    for i in range(30):
        for chosen in SETS:
            texts.append(" ".join([*(WORDS[name][i % len(WORDS[name])] for name in chosen), f"hello {i}"]))
            labels.append([(names or {}).get(name, name) for name in chosen])
    return texts, labels


def trained(path: Path, names: dict[str, str] | None = None) -> Path:
    train(*rows(names), path, epochs=5, dim=8, device="cpu")
    return path


@pytest.fixture(scope="module")
def several_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("several") / "several.onnx")


@pytest.fixture(scope="module")
def several(several_path: Path) -> Classifier:
    return Classifier.load(several_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "new.csv", [("label", "text"), *(("x;y", text) for text in TEXTS)])


def assigned(classifier: Classifier) -> list[list[str]]:
    found = [list(answer.assigned) for answer in classifier.predict(TEXTS)]
    # Otherwise the tests would show little.
    assert {len(labels) for labels in found} >= {0, 1, 2}
    return found


def scores(classifier: Classifier) -> list[list[float]]:
    answers = classifier.predict(TEXTS)
    return [
        [float(answer.probabilities[answer.label_names.index(label)]) for label in answer.assigned]
        for answer in answers
    ]


def test_labels_that_reach_their_thresholds_are_joined_in_csv_and_read_again_as_they_were(
    several_path: Path, several: Classifier, data: Path, tmp_path: Path
) -> None:
    for options, separator in (([], ";"), (["--label-separator", " | "], " | "), (["--label-separator", "tab"], "\t")):
        output = tmp_path / "out.csv"
        succeed("predict", several_path, data, "-o", output, *options)
        found = read_rows(output)
        assert list(found[0]) == ["label", "text", "predicted_labels", "scores", "decision"]
        assert [row["label"] for row in found] == ["x;y"] * len(TEXTS)
        assert [row["predicted_labels"] for row in found] == [separator.join(names) for names in assigned(several)]
        back = read_label_sets(output, [], "predicted_labels", targets=TargetOptions(label_separator=separator))
        assert [list(names) for names in back.labels] == assigned(several)
        read = [[float(score) for score in row["scores"].split(separator) if score] for row in found]
        assert read == [pytest.approx(wanted, abs=1e-6) for wanted in scores(several)]
        assert [row["decision"] for row in found] == [answer.decision for answer in several.predict(TEXTS)]


def test_a_sheet_holds_them_as_csv_does(several_path: Path, several: Classifier, data: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.xlsx"
    succeed("predict", several_path, data, "-o", output, "--label-separator", " | ")
    back = read_label_sets(output, [], "predicted_labels", targets=TargetOptions(label_separator=" | "))
    assert [list(names) for names in back.labels] == assigned(several)


def test_they_are_lists_of_json_in_csv_on_request(
    several_path: Path, several: Classifier, data: Path, tmp_path: Path
) -> None:
    succeed("predict", several_path, data, "-o", tmp_path / "out.csv", "--label-separator", "json")
    found = read_rows(tmp_path / "out.csv")
    assert [json.loads(row["predicted_labels"]) for row in found] == assigned(several)
    back = read_label_sets(tmp_path / "out.csv", [], "predicted_labels", targets=TargetOptions(label_separator="json"))
    assert [list(names) for names in back.labels] == assigned(several)


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_they_are_lists_where_the_format_has_such(
    several_path: Path, several: Classifier, data: Path, tmp_path: Path, name: str
) -> None:
    output = tmp_path / name
    succeed("predict", several_path, data, "-o", output, "--top-k", "3", "--explain")
    lines = output.read_text().splitlines() if name.endswith("jsonl") else []
    found: list[dict[str, Any]] = (
        [json.loads(line) for line in lines] if lines else pyarrow.parquet.read_table(output).to_pylist()
    )
    more = ["top_labels", "explanations"]
    assert list(found[0]) == ["label", "text", "predicted_labels", "scores", "decision", *more]
    assert [row["predicted_labels"] for row in found] == assigned(several)
    assert [row["scores"] for row in found] == [pytest.approx(wanted, abs=1e-6) for wanted in scores(several)]
    back = read_label_sets(output, [], "predicted_labels", targets=TargetOptions())
    assert [list(names) for names in back.labels] == assigned(several)
    for row, answer in zip(found, several.predict(TEXTS, explain=True), strict=True):
        assert answer.explanation is not None
        explained = row["explanations"]
        if not lines:
            explained = [
                [of["label"], [[pair["token"], pair["contribution"]] for pair in of["contributions"]]]
                for of in explained
            ]
        assert [label for label, _ in explained] == list(answer.assigned)
        for label, pairs in explained:
            added = answer.explanation.contributions[:, answer.label_names.index(label)]
            assert [value for _, value in pairs] == pytest.approx(added.tolist(), abs=1e-4)
            assert [token for token, _ in pairs] == row["text"].split()


def test_several_processes_answer_as_one(several_path: Path, data: Path, tmp_path: Path) -> None:
    for workers in ("1", "2"):
        succeed("predict", several_path, data, "-o", tmp_path / f"{workers}.csv", "--workers", workers)
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


def test_a_separator_that_a_label_or_a_score_holds_is_refused(several_path: Path, data: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    said = fail(2, "predict", several_path, data, "-o", output, "--label-separator", " ")
    assert "The label 'a bill' contains the separator ' '; choose another with --label-separator, or json" in said
    said = fail(2, "predict", several_path, data, "-o", output, "--label-separator", ".")
    assert "The separator '.' may stand in a score; choose another, or json." in said
    said = fail(2, "predict", several_path, data, "-o", tmp_path / "out.jsonl", "--label-separator", ";")
    assert "--label-separator joins the labels of a cell; jsonl has lists, so leave it out." in said
    assert {path.name for path in tmp_path.iterdir()} == {data.name}


def test_the_usual_separator_in_a_label_is_told_before_anything_is_written(data: Path, tmp_path: Path) -> None:
    model = trained(tmp_path / "m.onnx", {"post": "post; late"})
    assert "The label 'post; late' contains the separator ';'" in fail(
        2, "predict", model, data, "-o", tmp_path / "o.csv"
    )
    succeed("predict", model, data, "-o", tmp_path / "o.csv", "--label-separator", "json")


def test_a_model_with_one_label_a_text_joins_nothing(model_path: Path, data: Path, tmp_path: Path) -> None:
    said = fail(2, "predict", model_path, data, "-o", tmp_path / "out.csv", "--label-separator", ";")
    assert "joins several labels, and this model gives one; leave it out" in said


def test_the_columns_of_an_answer_are_those_that_are_named(several: Classifier) -> None:
    for columns in (AnswerColumns(several=True), AnswerColumns(several=True, top_k=2, explain=True)):
        assert all(tuple(answer) == columns.names for answer in columns.of(several, TEXTS))


def test_a_column_of_the_same_name_is_refused(several_path: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "new.csv", [("text", "scores"), ("parcel", "1")])
    assert "already has a column 'scores'" in fail(3, "predict", several_path, data, "-o", tmp_path / "out.csv")


def test_the_labels_of_the_rows_are_kept_in_every_form(several_path: Path, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_text('{"text": "parcel", "label": ["x", "y"], "tags": {"x": 0.5}}\n')
    succeed("predict", several_path, tmp_path / "new.jsonl", "-o", tmp_path / "out.jsonl")
    found = json.loads((tmp_path / "out.jsonl").read_text())
    assert (found["label"], found["tags"]) == (["x", "y"], {"x": 0.5})
    (tmp_path / "new.txt").write_text("__label__x __label__y parcel\n__label__z late\nback\n")
    succeed("predict", several_path, tmp_path / "new.txt", "-o", tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == [["x", "y"], "z", ""]
