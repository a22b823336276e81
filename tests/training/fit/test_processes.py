"""Processes that share the steps of a training, started by torchrun: the same bytes, one voice, and no orphans."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.command_line import write_rows
from tests.training.fit.shared_trainings import CASES, everything, trainer_of
from textcls.errors import ConfigError, SurroundingsError
from textcls_torch.fit.shared_gradients import Layout, SharedGradient, gradient_of_shards
from textcls_training.cli.train import _shared
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.resolve import chosen_impl
from textcls_training.config.settings import OPTIONS, ModelConfig, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.processes import ALONE, Started, shards_among, started
from textcls_training.fit.threads import reproducible
from textcls_training.pretraining.cli import _shared as _shared_pretraining

ROOT = Path(__file__).parents[3]
SMALL = ["--mixing", "lambda", "--dim", "8", "--ngrams", "none", "--device", "cpu"]
MASKED = ["--objective", "masked", "--mixing", "lambda", "--dim", "8", "--epochs", "2", "--device", "cpu"]


def torchrun(processes: int, *command: str | Path) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return run([*launcher, *map(str, command)])


def alone(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, *map(str, command)])


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def rows_path(sample: LabelledTexts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [["text", "label"], *map(list, zip(sample.texts, sample.labels, strict=True))]
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.csv", rows)


# What is learned


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_learn_what_one_does_to_the_last_bit(processes: int, tmp_path: Path) -> None:
    done = torchrun(processes, "-m", "tests.training.fit.shared_trainings", tmp_path)
    assert done.stdout == "of process 0\n"
    wanted = everything()
    for rank in range(processes):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found["learned"] == wanted
        assert found["by first"] == "of process 0"
        assert found["refused"].startswith("The processes that torchrun has started do not have the same rank,")


@pytest.mark.parametrize("case", CASES)
def test_shards_change_a_step_by_no_more_than_rounding(case: str) -> None:
    with reproducible(0):
        whole, apart = trainer_of(case, shards=1), trainer_of(case, shards=3)
        for text_B in (np.array([5, 0, 2, 1, 6, 3, 4]), np.array([6, 5])):
            assert float(apart._step(text_B)) == pytest.approx(float(whole._step(text_B)), rel=1e-5)
    for name, array in whole.arrays().items():
        np.testing.assert_allclose(apart.arrays()[name], array, rtol=1e-3, atol=1e-4, err_msg=name)


@settings(deadline=None)
@given(data=st.data(), shards=st.integers(1, 6))
def test_gradients_are_added_in_the_order_of_the_shards_and_tokens_keep_theirs(
    data: st.DataObject, shards: int
) -> None:
    """Numbers of very different sizes, whose sum hangs on the order."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    tokens = data.draw(st.lists(st.integers(0, 3), min_size=shards, max_size=shards))

    def numbers(*shape: int) -> torch.Tensor:
        return torch.from_numpy((rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 8, shape)).astype(np.float32))

    gradients = [SharedGradient([torch.tensor(1.5), numbers(2, 3)], [numbers(n, 2), numbers(n, 1)]) for n in tokens]
    layout = Layout([(), (2, 3)], [2, 1])
    found = gradient_of_shards(layout, [(n, n) for n in tokens], gradients.__getitem__, ALONE)
    wanted = torch.zeros(2, 3)
    for gradient in gradients:
        wanted += gradient.total[1]
    assert found.total[0] == 1.5 * shards
    torch.testing.assert_close(found.total[1], wanted, rtol=0, atol=0)
    for i in range(2):
        torch.testing.assert_close(found.own[i], torch.cat([each.own[i] for each in gradients]), rtol=0, atol=0)


# The commands


def test_the_command_writes_the_same_file_alone_and_shared_and_speaks_once(rows_path: Path, tmp_path: Path) -> None:
    told: list[str | Path] = ["-m", "textcls", "train", rows_path, *SMALL, "--epochs", "2"]
    said = alone(*told, "--shards", "8", "--output", tmp_path / "one").stdout
    shared = torchrun(2, *told, "--output", tmp_path / "two").stdout
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    assert b'"shards": 8' in (tmp_path / "one").read_bytes()
    assert shared == said.replace(str(tmp_path / "one"), str(tmp_path / "two"))


def test_masked_words_are_learned_alike_alone_and_shared(rows_path: Path, tmp_path: Path) -> None:
    told: list[str | Path] = ["-m", "textcls", "pretrain", rows_path, *MASKED]
    alone(*told, "--shards", "8", "--output", tmp_path / "one")
    said = torchrun(2, *told, "--output", tmp_path / "two").stdout
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    assert said.count("Trained on") == 1


@pytest.mark.parametrize("killed", [0, 1])
def test_where_a_process_is_killed_the_other_ends_with_an_error_and_no_file_is_left(
    killed: int, rows_path: Path, tmp_path: Path
) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    command = [sys.executable, "-m", "textcls", "train", rows_path, *SMALL, "--epochs", "5000"]
    command += ["--output", tmp_path / "model.onnx"]
    environment = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    with ExitStack() as open_pipes:
        pair = [
            open_pipes.enter_context(
                subprocess.Popen(
                    [*map(str, command)],
                    env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for rank in (0, 1)
        ]
        for process in pair:
            open_pipes.callback(process.kill)
        first, other = pair[0].stderr, pair[1 - killed].stderr
        assert first is not None
        assert other is not None
        while "epoch 1" not in first.readline():
            assert pair[0].poll() is None
        pair[killed].send_signal(signal.SIGKILL)
        said = other.read()
        pair[1 - killed].wait()
    assert pair[1 - killed].returncode == 6
    assert "Error: Another process that shares the steps has ended" in said
    assert list(tmp_path.iterdir()) == []


# What is refused, and who is there


def among(monkeypatch: pytest.MonkeyPatch, number: object, rank: object = 0) -> None:
    told = {"RANK": rank, "WORLD_SIZE": number, "LOCAL_RANK": rank, "MASTER_ADDR": "localhost", "MASTER_PORT": 1}
    for name, value in told.items():
        monkeypatch.setenv(name, str(value))


def test_torchrun_is_known_by_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert started() is None
    monkeypatch.setenv("RANK", "0")
    assert started() is None
    among(monkeypatch, 4, 3)
    assert started() == Started(3, 4, 3)
    for number, rank in ((2, 2), (2, -1), ("two", 0)):
        among(monkeypatch, number, rank)
        with pytest.raises(SurroundingsError, match=f"^RANK={rank} and WORLD_SIZE={number} are not what torchrun sets"):
            started()


def test_shards_are_eight_for_any_number_of_processes_and_one_a_process_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (shards_among(None), shards_among(3)) == (None, 3)
    for number in (1, 2, 8):
        among(monkeypatch, number)
        assert shards_among(None) == 8
    among(monkeypatch, 9)
    with pytest.raises(ConfigError, match=r"^9 processes need as many shards to share; add --shards 9\.$"):
        shards_among(None)
    assert shards_among(16) == 16


def test_the_compiled_trainer_and_more_than_one_training_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {name: option.default for name, option in OPTIONS.items()}
    mixed = {**usual, "mixing": "lambda"}
    assert _shared(mixed, None, {"--state": "kept"}) == mixed
    among(monkeypatch, 2)
    assert _shared(mixed, None, {"--state": None, "--resamples": 0}) == {**mixed, "shards": 8}
    assert _shared(usual, "why", {})["shards"] == 8
    with pytest.raises(ConfigError, match="with --workers 2, or add --impl reference"):
        _shared(usual, None, {})
    with pytest.raises(ConfigError, match="leave --state out"):
        _shared(mixed, None, {"--from": None, "--state": "kept"})
    among(monkeypatch, 1)
    assert _shared(usual, None, {}) == usual


def test_of_the_objectives_masked_words_alone_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    among(monkeypatch, 2)
    assert _shared_pretraining(PretrainConfig(objective="masked")).step_shards == 8
    with pytest.raises(ConfigError, match="share the steps of the objective masked, not of cooccurrence"):
        _shared_pretraining(PretrainConfig())
    with pytest.raises(ConfigError, match="shards is an option of the objective masked"):
        PretrainConfig(shards=2)


def test_shards_and_dropout_are_refused_together() -> None:
    for mixing in ("none", "lambda"):
        model = ModelConfig(dropout=0.1, mixing=mixing)
        assert chosen_impl(TrainConfig(model=model)) == "reference"
        with pytest.raises(ConfigError, match="Shards cannot be combined with dropout"):
            chosen_impl(TrainConfig(model=model, shards=2))
