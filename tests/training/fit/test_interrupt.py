"""Ctrl-C during training: before the first validation nothing is left, after it what has been learned is saved."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import heed_ctrl_c, succeed, write_rows
from tests.training.helpers import SMALL
from textcls import Classifier
from textcls.evaluation.metrics import ClassificationReport
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.interrupt import Stop, stopped_by_ctrl_c
from textcls_training.pipeline.training import train

ROWS = 3000
ROOT = Path(__file__).parents[3]
PROGRAM = "from textcls.cli import main; main(prog_name='textcls')"
# Ctrl-C comes before anything is validated, however fast or slow the machine is.
INTERRUPTED_AT_ONCE = f"""
import signal
from textcls_training.fit.cross_fit import ValidatedFit
ValidatedFit.run = lambda *_, **__: signal.raise_signal(signal.SIGINT)
{PROGRAM}
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows that take a while: each label has a word of its own among many others."""
    generator = np.random.default_rng(0)
    rows = [
        (" ".join([*(f"w{n}" for n in generator.integers(0, 500, 12)), f"clue{i % 3}"]), f"label{i % 3}")
        for i in range(ROWS)
    ]
    return write_rows(tmp_path_factory.mktemp("data") / "rows.csv", [("text", "label"), *rows])


@contextmanager
def training(data: Path, output: Path, program: str = PROGRAM) -> Iterator[subprocess.Popen[str]]:
    """A real process that trains, which takes Ctrl-C even if these tests run in the background."""
    folders = os.pathsep.join(str(ROOT / folder) for folder in (".", "training", "kernels"))
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", program, "train", data, "-o", output, "--epochs", "300", "--dim", "8"],
        env={**os.environ, "PYTHONPATH": folders},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    pytest.fail(f"The program never said {words!r}.")


def test_after_the_first_validation_what_has_been_learned_is_saved(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "rows.onnx"
    with training(data, output) as process:
        wait_for(process, "epoch 1, ")
        process.send_signal(signal.SIGINT)
        said, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "Ctrl-C once more ends without it." in told
    info = Classifier.load(output).info
    rows, epochs = info.training["rows"], info.training["epochs"]
    assert info.training["interrupted"] is True
    assert ROWS * 0.8 <= rows < ROWS
    assert rows + info.training["held_out_rows"] == ROWS
    assert 1 <= epochs < 300
    sentence = f"Interrupted: {output} holds what was learned from {rows:,} rows; whole epochs: {epochs}."
    assert told.splitlines()[-1] == sentence
    assert f"Trained on {rows:,} rows, 3 labels, {epochs} epoch{'s' * (epochs > 1)}." in said
    assert ", interrupted" in succeed("inspect", output)
    assert Classifier.load(output).predict("w1 w2 clue1").label == "label1"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.onnx"]


def test_before_the_first_validation_nothing_is_left(data: Path, tmp_path: Path) -> None:
    with training(data, tmp_path / "rows.onnx", INTERRUPTED_AT_ONCE) as process:
        said, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert said == ""
    assert told.splitlines()[-1] == "Interrupted; no file was left half-written."
    assert list(tmp_path.iterdir()) == []


class StopsAfter(Callback):
    """Requests a stop in the middle of an epoch."""

    def __init__(self, stop: Stop, steps: int) -> None:
        self.stop, self.steps = stop, steps

    def step(self, rows: int, loss: float | None = None) -> None:
        self.steps -= 1
        if not self.steps:
            self.stop.requested = True


def test_what_is_said_of_an_interrupted_model_is_measured_on_itself(sample: LabelledTexts, tmp_path: Path) -> None:
    valid = LabelledTexts(texts=sample.texts[:60], labels=sample.labels[:60])
    taught = LabelledTexts(texts=sample.texts[60:], labels=sample.labels[60:])
    stop = Stop()
    # 90 rows are 6 steps of 16: this is in the fourth epoch. The reference looks at every step.
    config = replace(SMALL, epochs=30, impl="reference")
    report = train(taught, tmp_path / "m.onnx", config, valid=valid, callback=StopsAfter(stop, 20), stop=stop)
    assert (report.interrupted, report.epochs, report.rows, report.held_out_rows) == (True, 3, 90, 60)
    answers = Classifier.load(tmp_path / "m.onnx").predict(valid.texts)
    right = np.mean([answer.label == label for answer, label in zip(answers, valid.labels, strict=True)])
    assert isinstance(report.held_out, ClassificationReport)
    assert report.held_out.accuracy == pytest.approx(right, abs=0.04)  # but for the rounding of rows to 8 bits


def test_of_splits_the_first_is_kept_even_if_a_later_one_is_interrupted(sample: LabelledTexts, tmp_path: Path) -> None:
    stop = Stop()
    config = replace(SMALL, epochs=2)
    # 120 rows to learn from are 8 steps an epoch: this is in the third fold, the second that the main thread fits.
    report = train(sample, tmp_path / "m.onnx", config, callback=StopsAfter(stop, 20), stop=stop)
    assert (report.interrupted, report.epochs, report.folds) == (True, 2, 1)
    assert report.rows + report.held_out_rows == 150


def test_a_stop_before_the_first_validation_breaks_off(sample: LabelledTexts, tmp_path: Path) -> None:
    stop = Stop()
    with pytest.raises(KeyboardInterrupt):
        train(sample, tmp_path / "m.onnx", SMALL, callback=StopsAfter(stop, 2), stop=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_training_that_nobody_stops_says_nothing_of_it(sample: LabelledTexts, tmp_path: Path) -> None:
    stop = Stop()
    report = train(sample, tmp_path / "m.onnx", SMALL, stop=stop)
    assert not report.interrupted
    assert (stop.requested, stop.possible) == (False, True)
    assert "interrupted" not in Classifier.load(tmp_path / "m.onnx").info.training


def test_ctrl_c_requests_a_stop_once_one_is_possible_and_interrupts_before_and_the_second_time(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stopped_by_ctrl_c(quiet=False) as stop:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            stop.possible = True
            signal.raise_signal(signal.SIGINT)
            assert stop.requested
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with stopped_by_ctrl_c(quiet=True):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert capfd.readouterr().err.count("Interrupted: saving") == 1
