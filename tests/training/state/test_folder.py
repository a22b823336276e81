"""The folder of a state: whose it is, what is told of it, and what is left when writing fails."""

import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.state.killed import Notes, rows_of
from textcls.errors import ConfigError, InputError, SurroundingsError
from textcls_training.config.settings import ModelConfig, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.fit.callbacks import Callback
from textcls_training.pipeline import training as pipeline
from textcls_training.state import folder
from textcls_training.state.checkpoints import FitState
from textcls_training.state.folder import opened

ROWS = rows_of(80)
CONFIG = TrainConfig(dim=4, ngrams=(), epochs=2, vectors="none")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are kept as often as they are offered."""
    monkeypatch.setattr(folder, "EVERY_SECONDS", 0)
    monkeypatch.setattr(folder, "WRITING_SHARE", 0)


class KilledError(Exception):
    pass


class StoppedAt(Notes):
    """A callback that ends the training at an epoch of the first split, as a kill would."""

    def __init__(self, path: Path, epoch: int) -> None:
        super().__init__(path)
        self._epoch = epoch

    def epoch(self, number: int, score: object) -> None:
        if number == self._epoch:
            raise KilledError


def train(
    path: Path, rows: LabelledTexts = ROWS, config: TrainConfig = CONFIG, epoch: int | None = None
) -> tuple[str, list[str]]:
    """Train with a state in `path`; return the hash of the model, and the notes."""
    notes, output = path.parent / "notes.txt", path.parent / "model.onnx"
    notes.write_text("")
    callback = Notes(notes) if epoch is None else StoppedAt(notes, epoch)
    pipeline.train(rows, output, config, callback=callback, state=path)
    return hashlib.sha256(output.read_bytes()).hexdigest(), notes.read_text().splitlines()


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The hash of the model of a training that nothing has disturbed."""
    output = tmp_path_factory.mktemp("usual") / "model.onnx"
    pipeline.train(ROWS, output, CONFIG)
    return hashlib.sha256(output.read_bytes()).hexdigest()


def test_a_training_goes_on_where_it_was_and_says_so_in_one_line(tmp_path: Path, usual: str) -> None:
    with pytest.raises(KilledError):
        train(tmp_path / "state", epoch=1)
    (tmp_path / "state" / "all-rows.npz").unlink(missing_ok=True)
    found, notes = train(tmp_path / "state")
    assert found == usual
    (line,) = [note for note in notes if note.startswith("Going on")]
    assert "after epoch 1 of 2 of split 1 of 5" in line  # The second thread may have come to another split.


def test_a_state_that_is_damaged_is_told_and_that_fit_begins_anew(tmp_path: Path, usual: str) -> None:
    with pytest.raises(KilledError):
        train(tmp_path / "state", epoch=2)
    damaged = tmp_path / "state" / "split-1-of-5.npz"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    found, notes = train(tmp_path / "state")
    assert found == usual
    assert f"{damaged} is damaged; it is not as it was written, so split 1 of 5 begins anew." in notes


def test_when_any_write_fails_the_next_run_goes_on_to_the_same_bytes(
    tmp_path: Path, usual: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, written, failing = os.fsync, 0, -1

    def fsync(file: int) -> None:
        nonlocal written
        written += 1
        if written == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    monkeypatch.setattr("textcls._util.atomic_write.os.fsync", fsync)
    assert train(tmp_path / "state")[0] == usual
    writes = written
    assert writes > 10
    for failing in [*range(1, writes, 4), writes - 1, writes]:
        path, written = tmp_path / f"state-{failing}", 0
        with pytest.raises(SurroundingsError, match="No space left on device; free some space"):
            train(path)
        assert not list(path.glob(".textcls-*"))
        written = -1000
        assert train(path)[0] == usual


@pytest.mark.parametrize(
    ("rows", "config", "told"),
    [
        (rows_of(81), CONFIG, r"the training rows differ\."),
        (ROWS, replace(CONFIG, epochs=3, seed=4), r"epochs was 2 and is 3, seed was 0 and is 4\."),
        (ROWS, replace(CONFIG, class_weight="balanced"), r"class_weight was auto and is balanced\."),
    ],
)
def test_the_state_of_another_training_is_refused_with_what_differs(
    tmp_path: Path, rows: LabelledTexts, config: TrainConfig, told: str
) -> None:
    train(tmp_path / "state")
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}
    with pytest.raises(ConfigError, match=rf"is of another training: {told} Remove the folder, or name another one\."):
        train(tmp_path / "state", rows, config)
    assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == before


def test_a_state_of_other_versions_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "state", {"versions": {"numpy": "1.0"}}, print):
        pass
    with (
        pytest.raises(ConfigError, match=r"numpy was 1\.0 and is 2\.0"),
        opened(tmp_path / "state", {"versions": {"numpy": "2.0"}}, print),
    ):
        pass


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "photo.jpg").touch()
    with pytest.raises(InputError, match="holds other files and no state of a training; name another folder"):
        train(tmp_path / "state")
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["photo.jpg"]


def test_two_processes_cannot_share_a_state(tmp_path: Path) -> None:
    def hold() -> Iterator[None]:
        with opened(tmp_path / "state", {}, print):
            yield

    holding = hold()
    next(holding)
    with pytest.raises(SurroundingsError, match="Another process trains with the state in"):
        train(tmp_path / "state")
    assert next(holding, None) is None


def test_what_a_killed_process_was_writing_is_cleared_away(tmp_path: Path, usual: str) -> None:
    with pytest.raises(KilledError):
        train(tmp_path / "state", epoch=1)
    left = tmp_path / "state" / ".textcls-state-0123456789abcdef"
    left.write_bytes(b"half")
    assert train(tmp_path / "state")[0] == usual
    assert not left.exists()


def test_a_state_is_written_seldom_enough_to_take_a_fortieth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "WRITING_SHARE", 40)
    clock, written = 0.0, []

    def write(*_: object) -> None:
        nonlocal clock
        clock += 2
        written.append(clock)

    monkeypatch.setattr("textcls_training.state.folder.time.monotonic", lambda: clock)
    monkeypatch.setattr("textcls_training.state.arrays_file.write", write)
    checkpoint = folder.FileCheckpoint(tmp_path / "fit.npz", "fit", print, keep_last=False)
    for _ in range(200):
        checkpoint.offer(lambda: FitState({}, "", False))
        clock += 1
    assert written == [2, 84, 166]


def test_what_cannot_be_kept_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = TrainConfig(model=ModelConfig(dim=4, dropout=0.1), epochs=1, device="cpu")
    with pytest.raises(ConfigError, match="The state of a training with dropout cannot be kept"):
        train(tmp_path / "state", config=config)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    with pytest.raises(ConfigError, match="The state of a training on a GPU cannot be kept; choose device cpu"):
        train(tmp_path / "state", config=TrainConfig(impl="reference", dim=4, epochs=1, device="cuda"))
    assert not (tmp_path / "state").exists()


def test_the_fits_of_teacher_and_student_go_on_too(tmp_path: Path) -> None:
    texts = [f"{text} once more" for text in ROWS.texts[:30]]
    unlabelled = UnlabelledTexts.sample(map(UnlabelledText, texts), 30, ROWS.texts)
    notes = tmp_path / "notes.txt"

    def train_in(state: str, callback: Callback) -> bytes:
        output = tmp_path / "model.onnx"
        pipeline.train(ROWS, output, CONFIG, unlabelled=unlabelled, callback=callback, state=tmp_path / state)
        return output.read_bytes()

    class StoppedInTheStudent(Notes):
        student = False

        def phase(self, name: str, rows: int) -> None:
            self.student |= name == "asking the teacher"

        def epoch(self, number: int, score: object) -> None:
            if self.student and number == 2:
                raise KilledError

    whole = train_in("whole", Notes(notes))
    with pytest.raises(KilledError):
        train_in("killed", StoppedInTheStudent(notes))
    names = {path.name for path in (tmp_path / "killed").iterdir()}
    assert {"split-1-of-5.npz", "split-1-of-5-teacher-1.npz", "split-1-of-5-the-student.npz"} <= names
    assert train_in("killed", Notes(notes)) == whole
    assert ", the student." in notes.read_text()
    with pytest.raises(InputError, match="it has learned from unlabelled texts; train on all rows again"):
        pipeline.train(ROWS, tmp_path / "m.onnx", from_state=tmp_path / "killed")
