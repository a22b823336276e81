"""`textcls tune` of rows with several labels: what is measured, rows that judge, and settings that train the same."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from tests.command_line import fail, succeed, write_rows

pytest.importorskip("optuna", reason="tuning needs Optuna: pip install 'textcls[tune]'")

import textcls
from textcls.errors import ConfigError
from textcls_training.config.settings import from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import part_of_rows
from textcls_training.pipeline.trials import Fold, Trained, Trial, Trials
from textcls_training.tuning.judging import answers, measure_of, right_of
from textcls_training.tuning.space import space_of, usual_values

WORDS = ("refund", "parcel", "invoice")
SETS = [[WORDS[i % 3], *([WORDS[i // 3 % 3]] if i % 2 else [])] if i % 5 else [] for i in range(90)]
TEXTS = [f"about {' and '.join(labels) or 'nothing'}, note {i}" for i, labels in enumerate(SETS)]
ROWS = LabelledTexts(texts=TEXTS, label_sets=[dict.fromkeys(labels, 1.0) for labels in SETS])
TOLD: dict[str, Any] = {"epochs": 2, "dim": 4, "ngrams": "none", "bigrams": False, "vectors": "none", "size": "tiny"}
FEW = ("--trials", "4", "--folds", "2", "--rounds", "1")
OPTIONS = (
    "--epochs", "2", "--dim", "4", "--ngrams", "none", "--no-bigrams", "--vectors", "none", "--size", "tiny", "--quiet"
)  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The rows as CSV, each label set in a cell, with weights."""
    rows = [(text, ";".join(labels), str(1 + i % 2)) for i, (text, labels) in enumerate(zip(TEXTS, SETS, strict=True))]
    return write_rows(tmp_path / "rows.csv", [("text", "label", "trust"), *rows])


def seen(trained: Trained) -> tuple[list[Any], dict[str, float], list[tuple[str, ...]]]:
    """What is measured, beside what the model assigns."""
    found = answers(trained)
    assigned = [tuple(sorted(answer.assigned)) for answer in trained.classifier.predict(trained.held_out.texts)]
    return list(found.labels), found.figures, assigned


def test_what_is_measured_are_the_labels_that_the_model_assigns_by_its_thresholds() -> None:
    fold = Fold(np.arange(60), np.arange(60, 90))
    with_thresholds = from_options(TOLD | {"epochs": 8})
    labels, figures, assigned = Trials(ROWS, [fold], seen).ready()(Trial("one", with_thresholds))
    assert labels == assigned
    gold, found = (np.array([[word in row for word in WORDS] for row in sets]) for sets in (SETS[60:], assigned))
    assert figures["micro_f1"] == pytest.approx(f1_score(gold, found, average="micro"))
    assert figures["macro_f1"] == pytest.approx(f1_score(gold, found, average="macro", zero_division=0))
    assert figures["accuracy"] == pytest.approx((gold == found).all(1).mean())


def test_labels_count_from_a_half_on_and_micro_f1_is_for_several() -> None:
    soft = LabelledTexts(texts=["a", "b"], label_sets=[{"x": 0.5, "y": 0.4}, {}])
    assert right_of(soft) == [("x",), ()]
    assert (measure_of(soft, None), measure_of(soft, "accuracy")) == ("micro_f1", "accuracy")
    one = LabelledTexts(texts=["a", "b"], labels=["x", "y"])
    assert measure_of(one, None) == "accuracy"
    with pytest.raises(ConfigError, match="Micro-F1 is for rows with several labels"):
        measure_of(one, "micro_f1")


def test_parts_of_rows_have_their_rarest_labels_alike() -> None:
    rare = LabelledTexts(
        texts=[f"text number {i}" for i in range(300)],
        label_sets=[{"often": 1.0} | ({"rare": 1.0} if i % 30 == 0 else {}) for i in range(300)],
    )
    part = part_of_rows(rare, 5)
    assert np.bincount(part[::30], minlength=5).tolist() == [2] * 5


def test_what_machines_cannot_have_is_not_chosen_for_them() -> None:
    assert {*space_of(ROWS, {"impl": "one-vs-rest"}, macro_f1=False)} == {"epochs", "ngrams", "bigrams"}


def test_what_training_takes_by_itself_is_what_it_takes_for_several_labels(tmp_path: Path) -> None:
    fixed = {name: value for name, value in TOLD.items() if name not in ("epochs", "dim")}
    training = textcls.train(TEXTS, SETS, tmp_path / "usual.onnx", impl="compiled", **fixed).info.training
    usual = usual_values(ROWS, fixed)
    assert usual["epochs"] == training["scheduled_epochs"]
    assert usual["table_rate"] == training["optim"]["table_rate"]
    one = LabelledTexts(texts=TEXTS, labels=[labels[0] if labels else "refund" for labels in SETS])
    assert usual != usual_values(one, fixed)


def test_the_command_promises_micro_f1_and_its_settings_train_the_same_rows(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "textcls.toml"
    call = ("tune", table, "-o", output, "--label-separator", ";", "--weight-column", "trust", *FEW, *OPTIONS)
    found = json.loads(succeed(*call, "--json"))
    assert found["measure"] == "micro_f1"
    assert 10 < found["judged_rows"] < 30
    assert found["micro_f1"]["low"] <= found["micro_f1"]["difference"] <= found["micro_f1"]["high"]
    assert {"accuracy", "macro_f1"} <= found.keys()
    settings = tomllib.loads(output.read_text())["train"]
    assert (settings["label-separator"], settings["weight-column"]) == (";", "trust")
    assert "micro-F1" in output.read_text()
    shown = succeed(*call)
    for said in ("micro-F1", "macro-F1", "all labels right"):
        assert said in shown
    assert "accuracy" not in shown
    succeed("train", table, "--config", output, "--output", tmp_path / "a.onnx", "--quiet")
    weights = [1.0 + i % 2 for i in range(90)]
    textcls.train(TEXTS, SETS, tmp_path / "b.onnx", weights=weights, **found["recommended"])
    first, second = (textcls.Classifier.load(tmp_path / name) for name in ("a.onnx", "b.onnx"))
    same = [[answer.probabilities.tolist() for answer in one.predict(TEXTS[:9])] for one in (first, second)]
    assert same[0] == same[1]


def test_a_label_with_a_column_need_not_be_in_each_fold(tmp_path: Path) -> None:
    head = ("text", *(f"tag_{word}" for word in WORDS), "tag_once")
    cells = [[str(int(word in labels)) for word in WORDS] for labels in SETS]
    rows = [(text, *of, str(int(i == 7))) for i, (text, of) in enumerate(zip(TEXTS, cells, strict=True))]
    path = write_rows(tmp_path / "columns.csv", [head, *rows])
    call = ("tune", path, "-o", tmp_path / "out.toml", "--label-columns", "tag_*", *FEW, *OPTIONS)
    assert json.loads(succeed(*call, "--json"))["labels"] == 4


def test_micro_f1_of_one_label_a_row_is_refused(tmp_path: Path) -> None:
    rows = [(text, WORDS[i % 3]) for i, text in enumerate(TEXTS)]
    path = write_rows(tmp_path / "one.csv", [("text", "label"), *rows])
    call = ("tune", path, "-o", tmp_path / "out.toml", "--measure", "micro-f1", *FEW, *OPTIONS)
    assert "Micro-F1 is for rows with several labels" in fail(2, *call)
