"""What has changed since the training of a model that may give several labels, and what its file keeps of it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import textcls
from tests.command_line import fail, run, succeed, write_rows
from tests.model_metadata import with_held_out
from textcls import Classifier
from textcls.errors import ArtifactError
from textcls.evaluation.drift.drift import measure_drift
from textcls.evaluation.drift.summary import HeldOutSummary, LabelSetCounts
from textcls.evaluation.drift.tally import Bins, bins_of
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.model.artifact import HELD_OUT
from textcls.model.model_file.thresholds import store_thresholds
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import training as pipeline

WORDS = ("refund", "parcel", "invoice")


def rows_of(count: int, seed: int, shares: tuple[float, ...] = (0.4, 0.4, 0.4)) -> tuple[list[str], list[list[str]]]:
    """Texts that name their labels, which each has with a share."""
    random = np.random.default_rng(seed)
    sets = [[word for word, share in zip(WORDS, shares, strict=True) if random.random() < share] for _ in range(count)]
    texts = [f"about {' and '.join(labels) or 'nothing'} of order {i % 50}" for i, labels in enumerate(sets)]
    return texts, sets


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model, trained on 400 such rows."""
    found = tmp_path_factory.mktemp("several") / "m.onnx"
    textcls.train(*rows_of(400, 0), found, vectors="none", ngrams="none")
    return found


@pytest.fixture(scope="module")
def model(path: Path) -> Classifier:
    """It, loaded."""
    return Classifier.load(path)


def test_a_training_counts_the_label_sets_of_its_held_out_rows(model: Classifier) -> None:
    found = HeldOutSummary.of_model(model.info)
    assert found.sets is not None
    assert found.rows == model.info.training["held_out_rows"] == sum(found.sets.counts) == sum(found.scores.counts)
    assert found.accuracy is not None
    assert sum(found.right) == round(found.accuracy * found.rows)
    assert found.accuracy > 0.9
    # Each of the eight sets of these labels is assigned to more than ten of the rows.
    assert len(found.sets.sets) == 8
    in_sets = [sum(n for of, n in zip(found.sets.sets, found.sets.counts, strict=False) if i in of) for i in range(3)]
    assert found.labels == tuple(in_sets)
    assert HeldOutSummary.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_what_a_file_says_of_its_held_out_rows_is_what_the_training_has_said(tmp_path: Path) -> None:
    texts, labels = rows_of(300, 4, (0.4, 0.3, 0.05))
    wrong = [found[:1] if i % 4 == 0 else found for i, found in enumerate(labels)]
    rows = LabelledTexts(texts=texts, label_sets=[dict.fromkeys(found, 1.0) for found in wrong])
    report = pipeline.train(rows, tmp_path / "m.onnx", TrainConfig(vectors="none", ngrams=())).held_out
    assert isinstance(report, LabelSetReport)
    found = HeldOutSummary.of_model(Classifier.load(tmp_path / "m.onnx").info)
    assert found.accuracy == pytest.approx(report.exact, abs=1e-6)
    assert found.labels == tuple(one.assigned for one in sorted(report.labels, key=lambda one: one.label))


def test_rare_and_long_label_sets_count_as_one() -> None:
    assigned = np.zeros((45, 12), np.bool_)
    assigned[:20, 0] = True
    assigned[20:25, 1] = True
    assigned[25:40, :9] = True
    found = LabelSetCounts.of(assigned)
    assert found == LabelSetCounts(((0,),), (20, 25))
    assert found.bins([(0,), (1,), (), (0, 1)]) == [0, 1, 1, 1]


def test_label_sets_as_those_of_the_training_are_not_told_as_changed_and_others_are(model: Classifier) -> None:
    same = measure_drift(model, ((text, None) for text in rows_of(300, 1)[0]))
    assert not same.distances["labels"].is_sure
    assert same.labels_a_text == pytest.approx((1.2, 1.2), abs=0.15)
    other = measure_drift(model, ((text, None) for text in rows_of(300, 2, (0.95, 0.4, 0.05))[0]))
    assert "labels" in other.above(0.25)
    shares = {one.label: one.now for one in other.labels}
    assert shares["refund"] == pytest.approx(0.95, abs=0.06)
    assert shares["invoice"] == pytest.approx(0.05, abs=0.06)
    assert other.labels[-1].label == "parcel"


def test_labels_that_come_together_otherwise_are_told_though_each_is_as_frequent_as_before(model: Classifier) -> None:
    every = [list(WORDS)] * 120 + [[]] * 180
    texts = [f"about {' and '.join(labels) or 'nothing'} of order {i % 50}" for i, labels in enumerate(every)]
    found = measure_drift(model, ((text, None) for text in texts))
    assert all(abs(one.now - (one.before or 0)) < 0.1 for one in found.labels)
    assert "labels" in found.above(0.25)


def test_rows_with_labels_tell_how_many_are_right_and_no_accuracy_is_expected(model: Classifier) -> None:
    texts, sets = rows_of(100, 3)
    wrong = [[*labels, "gossip"] if i < 30 else labels for i, labels in enumerate(sets)]
    found = measure_drift(model, zip(texts, wrong, strict=True))
    right = [set(answer.assigned) == set(of) for answer, of in zip(model.predict(texts), wrong, strict=True)]
    assert found.accuracy is not None
    assert found.accuracy.value == sum(right) / 100 <= 0.7
    assert (found.labelled, found.unknown_labels, found.expected_accuracy) == (100, ("gossip",), None)


def test_the_command_says_what_it_cannot_tell_and_fails_above_a_distance(path: Path, tmp_path: Path) -> None:
    texts, sets = rows_of(200, 4, (0.95, 0.4, 0.05))
    new = write_rows(tmp_path / "new.csv", [("text",), *((text,) for text in texts)])
    said = succeed("drift", path, new)
    assert "200 rows   labels a row 1." in said
    assert "Without labels, it is unknown how good the answers are" in said
    assert "expected accuracy" not in said
    assert run("drift", path, new, "--fail-above", "0.25").exit_code == 1
    labelled = tmp_path / "labelled.jsonl"
    lines = ({"text": text, "label": labels} for text, labels in zip(texts, sets, strict=True))
    labelled.write_text("".join(json.dumps(line) + "\n" for line in lines))
    printed = json.loads(succeed("drift", path, labelled, "--json"))
    assert printed["labelled_rows"] == 200
    assert printed["expected_accuracy"] is None
    assert printed["labels_a_text"]["now"] == pytest.approx(sum(map(len, sets)) / 200, abs=0.1)
    assert "200 rows with labels: " in succeed("drift", path, labelled)


def test_a_service_watches_label_sets_as_often_as_the_training_saw_them(model: Classifier) -> None:
    bins, held_out = bins_of(model.info), HeldOutSummary.of_model(model.info)
    assert bins is not None
    assert held_out.sets is not None
    row = [0.0] * bins.size
    for numbers, rows in zip(held_out.sets.sets, held_out.sets.counts, strict=False):
        for _ in range(rows):
            bins.add(row, 0, [model.labels[number] for number in reversed(numbers)], 0.5, 3, 1)
    for _ in range(held_out.sets.counts[-1]):
        bins.add(row, 0, list(model.labels), 0.5, 3, 1)
    assert bins.tally(row).labels == held_out.sets.counts
    assert len(bins.names()["labels"]) == len(held_out.sets.counts)
    assert Bins.from_json(json.loads(json.dumps(bins.to_json()))).fingerprint == bins.fingerprint


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sets": [[0]] * 2, "counts": [1, 2, 397]}, "label sets and their counts do not belong together"),
        ({"sets": [[0]], "counts": [1, 2]}, "rows and label sets do not belong together"),
        ({"sets": [["a"]], "counts": [1, 2]}, "a count is something else"),
        (None, "it is of another task"),
    ],
)
def test_a_damaged_summary_is_refused(model: Classifier, changed: object, said: str) -> None:
    found = {**HeldOutSummary.of_model(model.info).to_json(), "sets": changed}
    as_read = json.loads(json.dumps(found))
    with pytest.raises(ArtifactError, match=said):
        HeldOutSummary.of_model(replace(model.info, training={**model.info.training, HELD_OUT: as_read}))


def test_thresholds_that_were_changed_are_no_change_of_texts(path: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(path.read_bytes())
    store_thresholds(model, [0.999] * 3)
    new = write_rows(tmp_path / "new.csv", [("text",), *((text,) for text in rows_of(200, 4)[0])])
    assert "labels" in json.loads(succeed("drift", path, new, "--json"))["distances"]
    found = json.loads(succeed("drift", model, new, "--json", "--fail-above", "0.25"))
    assert ([*found["distances"]], found["held_out_accuracy"]) == (["scores", "lengths"], None)
    assert found["labels_a_text"]["before"] is None
    said = succeed("drift", model, new)
    assert "Labels are not compared: their thresholds were changed after the training" in said
    assert " were assigned all their labels" not in said
    bins = bins_of(Classifier.load(model).info)
    assert bins is not None
    assert bins.held_out.answers is None


def test_label_sets_of_which_none_is_frequent_are_not_compared_and_that_is_said(path: Path, tmp_path: Path) -> None:
    found = HeldOutSummary.of_model(Classifier.load(path).info)
    summary = replace(found, sets=LabelSetCounts((), (found.rows,)))
    rare = with_held_out(path, summary.to_json(), tmp_path / "rare.onnx")
    texts = rows_of(200, 4, (0.95, 0.4, 0.05))[0]
    assert set(measure_drift(Classifier.load(rare), ((text, None) for text in texts)).distances) == {
        "scores",
        "lengths",
    }
    new = write_rows(tmp_path / "new.csv", [("text",), *((text,) for text in texts)])
    said = succeed("drift", rare, new)
    assert "Label sets cannot be compared: none was assigned to as many as 10 held-out rows of the training" in said
    assert "labels   " not in said.partition("distance (PSI)")[2]


@pytest.fixture(scope="module")
def separated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on rows with a separator."""
    folder = tmp_path_factory.mktemp("separated")
    data = write_rows(folder / "rows.csv", [("text", "labels"), *cells(*rows_of(400, 0))])
    options = ("--label-column", "labels", "--vectors", "none", "--ngrams", "none")
    succeed("train", data, "--label-separator", ";", "--output", folder / "m.onnx", *options)
    return folder / "m.onnx"


def cells(texts: list[str], sets: list[list[str]]) -> list[tuple[str, str]]:
    """Texts with their labels in a cell."""
    return [(text, ";".join(labels)) for text, labels in zip(texts, sets, strict=True)]


def told(model: Path, data: Path, *more: str) -> tuple[int, float | None]:
    """How many rows drift takes for labelled, and what share of them is right."""
    found = json.loads(succeed("drift", model, data, "--json", *more))
    return found["labelled_rows"], None if found["accuracy"] is None else found["accuracy"]["value"]


def test_an_empty_cell_is_no_label_only_where_each_row_must_have_labels(separated: Path, tmp_path: Path) -> None:
    texts, sets = rows_of(200, 5, (1.0, 0.4, 0.4))
    rows = [(text, cell if i < 100 else "") for i, (text, cell) in enumerate(cells(texts, sets))]
    half = write_rows(tmp_path / "half.csv", [("text", "labels"), *rows])
    labelled, share = told(separated, half)
    assert labelled == 100
    assert share is not None
    assert share > 0.9
    labelled, of_all = told(separated, half, "--label-column", "labels")
    assert labelled == 200
    assert of_all == pytest.approx(share / 2)
    assert "100 rows have nothing in place of labels" in run("drift", separated, half).stderr
    lines = tmp_path / "half.jsonl"
    fields = (
        {"text": text, "labels": labels if i < 100 else None}
        for i, (text, labels) in enumerate(zip(texts, sets, strict=True))
    )
    lines.write_text("".join(json.dumps(one) + "\n" for one in [*fields, {"text": "about refund", "labels": []}]))
    labelled, with_none = told(separated, lines)
    assert labelled == 101
    assert with_none == pytest.approx(100 * share / 101)


def test_labels_that_cannot_be_read_are_left_aside_with_a_note(path: Path, separated: Path, tmp_path: Path) -> None:
    rows = cells(*rows_of(50, 6, (1.0, 0.4, 0.4)))
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    assert told(path, data) == (0, None)  # Trained on lists.
    said = run("drift", path, data).stderr
    assert "The labels of 50 rows are left aside, since they cannot be read; " in said
    assert "rows.csv, line 2: the labels in column 'label' are a string" in said
    refused = fail(3, "drift", path, data, "--label-column", "label")
    assert "write the labels as those of the training, in lists, or leave --label-column out" in refused
    odd = tmp_path / "odd.jsonl"
    odd.write_text(json.dumps({"text": "refund", "labels": ["refund"]}) + "\n" + '{"text": "parcel", "labels": [1]}\n')
    assert told(separated, odd)[0] == 1


@pytest.mark.parametrize("shares", ["1,0,1", ",,"])
def test_empty_columns_of_labels_are_labels_that_nobody_knows(tmp_path: Path, shares: str) -> None:
    texts, sets = rows_of(200, 0)
    head = ("text", *(f"is_{word}" for word in WORDS))
    rows = [(text, *(str(int(word in of)) for word in WORDS)) for text, of in zip(texts, sets, strict=True)]
    data = write_rows(tmp_path / "columns.csv", [head, *rows])
    succeed("train", data, "--label-columns", "is_*", "--output", tmp_path / "m.onnx", "--vectors", "none")
    new = write_rows(tmp_path / "new.csv", [head, ("about refund and invoice", *shares.split(",")), rows[0]])
    assert told(tmp_path / "m.onnx", new)[0] == (1 if shares == ",," else 2)


def test_labels_come_through_a_pipe(separated: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.csv", [("text", "labels"), *cells(*rows_of(50, 7, (1.0, 0.4, 0.4)))])
    found = run("drift", separated, "-", "--json", given=data.read_bytes())
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["labelled_rows"] == 50
