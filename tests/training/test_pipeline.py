"""Whole training runs: the report, the saved file, and the same bytes on every machine setting."""

import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from tests.command_line import succeed
from tests.training.helpers import Trained
from textcls import Classifier, InputError, SurroundingsError
from textcls.evaluation.metrics import ClassificationReport
from textcls.model.artifact import METADATA_KEY
from textcls_training.config.resolve import chosen_impl, resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit import cross_fit
from textcls_training.fit.threads import reproducible
from textcls_training.pipeline.training import run, train

ROOT = Path(__file__).parent.parent.parent
AGAIN = """
import sys
from pathlib import Path
from tests.training.helpers import SMALL
from textcls.data import read_labelled
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train
rows = read_labelled(Path(sys.argv[1]), ["text"], "label")
train(LabelledTexts(texts=rows.texts[:150], labels=rows.labels[:150]), Path(sys.argv[2]), SMALL)
"""


def metadata(path: Path) -> str:
    found: dict[str, str] = {prop.key: prop.value for prop in onnx.load(path).metadata_props}
    return found[METADATA_KEY]


@pytest.mark.parametrize("threads", [2, 4])
def test_training_again_gives_the_same_bytes_on_any_number_of_threads(
    threads: int, trained: Trained, tmp_path: Path
) -> None:
    torch.set_num_threads(threads)
    try:
        train(trained.texts, tmp_path / "again.onnx", trained.config)
    finally:
        torch.set_num_threads(1)
    assert (tmp_path / "again.onnx").read_bytes() == trained.path.read_bytes()


def test_another_process_with_other_string_hashes_gives_the_same_bytes(
    trained: Trained, sample_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "again.onnx"
    folders = os.pathsep.join(str(ROOT / folder) for folder in (".", "training", "kernels"))
    subprocess.run(
        [sys.executable, "-c", AGAIN, str(sample_path), str(path)],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2"},
    )
    assert path.read_bytes() == trained.path.read_bytes()


def test_the_saved_model_answers_as_the_trained_one(trained: Trained, tmp_path: Path) -> None:
    """Training is repeated in memory; what separates the two is the quantisation of rows to 8 bits."""
    names = sorted(set(trained.texts.labels))
    labels = np.array([names.index(label) for label in trained.texts.labels], np.int64)
    corpus = Corpus.of(trained.texts.texts, trained.config.max_tokens)
    impl = chosen_impl(trained.config)
    resolved = resolve(trained.config, trained.texts.texts, len(corpus.token), len(names), impl=impl)
    with reproducible(resolved.seed):
        trainer = cross_fit.fit(Dataset(corpus, labels), len(names), resolved, trained.report.epochs)
    calibration = run(trained.texts, tmp_path / "again.onnx", trained.config).selected.calibration
    expected = calibration.combine(trainer.predict(trainer.encode(corpus)))
    answers = Classifier.load(trained.path).predict(trained.texts.texts, explain=True)
    found = np.array([answer.explanation.logit_values for answer in answers if answer.explanation])
    assert np.abs(found - expected).max() < 0.02 * np.ptp(expected)
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.97


def test_the_saved_model_says_what_it_is(trained: Trained) -> None:
    info = Classifier.load(trained.path).info
    assert info.labels == tuple(sorted(set(trained.texts.labels)))
    assert info.max_tokens == trained.config.max_tokens
    assert info.features.ngram_sizes == trained.config.ngrams
    assert info.model["dim"] == 8
    assert info.temperature == trained.report.temperature
    assert (info.text_columns, info.label_column) == (("text",), "label")
    assert info.training["rows"] == 150
    assert info.training["epochs"] == trained.report.epochs
    assert info.training["shares"] == pytest.approx(trained.report.ensemble_weights, abs=1e-6)
    assert re.fullmatch("[0-9a-f]{64}", info.training["data_sha256"])
    assert {"numba", "onnxruntime", "python"} <= set(info.training["versions"])
    # PyTorch had no part in it.
    assert "torch" not in info.training["versions"]


def test_the_bias_is_the_logits_of_the_empty_text(trained: Trained) -> None:
    classifier = Classifier.load(trained.path)
    explanation = classifier.predict("", explain=True).explanation
    assert explanation is not None
    np.testing.assert_allclose(explanation.logit_values, classifier.info.bias, atol=1e-6)


def test_the_report_is_of_rows_that_were_held_out(trained: Trained) -> None:
    report = trained.report
    assert report.rows == 150
    assert 0 < report.held_out_rows <= 150
    assert report.held_out.rows == report.held_out_rows
    assert 1 <= report.epochs <= 3
    assert isinstance(report.held_out, ClassificationReport)
    assert 0 <= report.held_out.accuracy < 1
    assert report.file_bytes == trained.path.stat().st_size
    assert len(report.ensemble_weights) == 2
    assert min(report.ensemble_weights) >= 0
    assert sum(report.ensemble_weights) == pytest.approx(1)


def test_the_file_is_valid_onnx(trained: Trained) -> None:
    onnx.checker.check_model(onnx.load(trained.path), full_check=False)


def test_the_file_holds_no_time_path_host_or_user(trained: Trained) -> None:
    content = trained.path.read_bytes()
    for secret in (str(trained.path.parent), str(ROOT), str(Path.home()), socket.gethostname(), "site-packages"):
        assert len(secret) < 5 or secret.encode() not in content
    words = metadata(trained.path)
    assert not re.search(r"\d{4}-\d\d-\d\d|\d\d:\d\d", words)
    assert "/" not in words
    keys = json.loads(words)["training"].keys()
    assert not [key for key in keys if re.search("time|second|duration|date_|host|user|path|thread|device", key)]
    graph = onnx.load(trained.path).graph
    assert not [node for node in graph.node if node.metadata_props or node.doc_string]


def test_the_file_tells_its_options_and_the_rows_that_judged_it_where_they_were_given(
    trained: Trained, sample: LabelledTexts, tmp_path: Path
) -> None:
    valid = LabelledTexts(texts=sample.texts[:60], labels=sample.labels[:60])
    config = TrainConfig(size="tiny", epochs=1, ngrams=(), device="cpu", vectors="none")
    train(sample, tmp_path / "model.onnx", config, valid=valid)
    told = Classifier.load(tmp_path / "model.onnx").info.training
    assert told["options"] == {"size": "tiny", "epochs": 1, "ngrams": []}
    assert told["validation_sha256"] == valid.sha256() != told["data_sha256"]
    shown = succeed("inspect", tmp_path / "model.onnx", "--verbose")
    (line,) = re.findall(r"^options +(.*\S)", shown, re.MULTILINE)
    assert all(option in line for option in ("--size tiny", "--ngrams none", "--epochs 1"))
    assert "validation_sha256" not in metadata(trained.path)


def test_with_validation_rows_all_training_rows_are_learned_from(sample: LabelledTexts, tmp_path: Path) -> None:
    valid = LabelledTexts(texts=sample.texts[:60], labels=sample.labels[:60])
    taught = LabelledTexts(texts=sample.texts[60:], labels=sample.labels[60:])
    config = TrainConfig(dim=4, epochs=1, ngrams=(), device="cpu", vectors="none")
    report = train(taught, tmp_path / "model.onnx", config, valid=valid)
    assert (report.rows, report.held_out_rows, report.held_out.rows) == (90, 60, 60)
    assert report.temperature != 1
    assert report.ensemble_weights == (1.0,)


@pytest.mark.parametrize("mixing", ["none", "lambda"])
def test_the_gate_of_a_mixing_layer_is_reported_where_there_is_one(
    mixing: str, sample: LabelledTexts, tmp_path: Path
) -> None:
    config = TrainConfig(dim=4, mixing=mixing, epochs=1, ngrams=(), device="cpu")
    report = train(sample, tmp_path / "model.onnx", config)
    assert (report.gate is not None) == (mixing == "lambda")
    assert Classifier.load(tmp_path / "model.onnx").info.training["gate"] == report.gate


def test_a_label_that_only_validation_rows_have_is_refused(sample: LabelledTexts, tmp_path: Path) -> None:
    valid = replace(sample, labels=["stranger"] * 150)
    with pytest.raises(InputError, match="The validation rows have the label 'stranger', which no training row has"):
        train(sample, tmp_path / "model.onnx", valid=valid)


def test_a_missing_folder_is_refused_before_training_begins(sample: LabelledTexts, tmp_path: Path) -> None:
    class Surprised:
        def phase(self, name: str, rows: int) -> None:
            pytest.fail("Training began.")

        step = epoch = phase

    with pytest.raises(SurroundingsError, match="does not exist"):
        train(sample, tmp_path / "nowhere" / "model.onnx", callback=Surprised())  # type: ignore[arg-type]


def test_the_report_as_plain_data_keeps_its_names(trained: Trained) -> None:
    found = trained.report.to_json()
    assert list(found) == [
        "rows", "held_out_rows", "folds", "epochs", "temperature", "shares", "held_out", "ece_before", "gate",
        "parameters", "mixing_parameters", "file_bytes", "vectors", "interrupted", "seconds", "distillation",
        "threshold_rows", "columns", "trainer", "goal", "cannot_go_on",
    ]  # fmt: skip
    assert found["shares"] == trained.report.ensemble_weights
    assert found["distillation"] is None


def test_a_training_with_rationales_repeats_itself_and_says_how_many_rows_had_them(
    sample: LabelledTexts, tmp_path: Path
) -> None:
    spans = [((0, len(sample.texts[0])),), *[()] * (len(sample.texts) - 1)]
    config = TrainConfig(dim=8, ngrams=(), epochs=2, device="cpu")
    given = LabelledTexts(texts=sample.texts, labels=sample.labels, rationales=spans)
    for name in ("one", "other"):
        train(given, tmp_path / f"{name}.onnx", config)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "other.onnx").read_bytes()
    assert Classifier.load(tmp_path / "one.onnx").info.training["rationales"] == 1


@pytest.mark.parametrize(
    ("rows", "labels", "words", "held_out"),
    [(1600, 2, 3, 1600), (1600, 70, 3, 160), (1600, 2, 400, 160)],
    ids=["a fit is quick", "many labels", "much text"],
)
def test_all_rows_are_held_out_in_turn_where_that_is_quick(
    tmp_path: Path, rows: int, labels: int, words: int, held_out: int
) -> None:
    texts = [" ".join(f"w{(i * 7 + j) % 500}" for j in range(words)) + f" row {i}" for i in range(rows)]
    given = LabelledTexts(texts=texts, labels=[f"label {i % labels}" for i in range(rows)])
    report = train(given, tmp_path / "model.onnx", TrainConfig(epochs=1, dim=2, ngrams=(), vectors="none"))
    assert report.held_out_rows == pytest.approx(held_out, rel=0.5)


def test_gradient_steps_of_several_labels_whose_vectors_are_left_out_are_trained_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textcls_training.fit.cross_fit.better", lambda *_: False)
    monkeypatch.setattr("textcls_training.pipeline.either_way.better", lambda *_: True)
    words = ["my", "card", "was", "charged", "twice", "where", "is", "the", "parcel"]
    texts = [" ".join(words[(i * j) % 9] for j in range(1, 7)) + f" {i}" for i in range(1600)]
    sets = [dict.fromkeys({"card", "parcel"} & {*text.split()}, 1.0) for text in texts]
    report = train(LabelledTexts(texts=texts, label_sets=sets), tmp_path / "m.onnx", TrainConfig(epochs=1, dim=2))
    assert report.vectors is None
