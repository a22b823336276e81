"""Steps whose gradients come from a real cluster of Ray: the bytes of this machine, whatever is killed meanwhile."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import succeed
from tests.ray_cluster import LEFT_OPEN, cluster_of
from tests.training.fit.compiled.test_compiled import CASES, configuration
from tests.training.helpers import Recorder
from textcls.errors import SurroundingsError
from textcls_training.fit.compiled.cluster import Actors
from textcls_training.fit.compiled.trainer import CompiledTrainer

pytestmark = LEFT_OPEN
EPOCHS = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A cluster of a node without a CPU, where the driver is, and of two with two each: its address."""
    with cluster_of(2) as nodes:
        yield nodes.address


def trainer_of(case: str = "hard targets", **told: Any) -> CompiledTrainer:
    data, more = CASES[case]
    return CompiledTrainer(data, 3, replace(configuration(data, **more), epochs=EPOCHS, shards=4, **told))


def bytes_of(trainer: CompiledTrainer) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in trainer.arrays().items()}


class Killing(Recorder):
    """Kills processes of workers after some steps, each time `every` of them."""

    def __init__(self, trainer: CompiledTrainer, steps: tuple[int, ...], every: bool = False) -> None:
        super().__init__()
        self.trainer, self.when, self.every = trainer, steps, every

    def epoch(self, number: int, score: Any) -> None:
        super().epoch(number, score)
        if number in self.when:
            for actors in self.trainer._workers:
                assert isinstance(actors, Actors)
                for process in actors.processes[: None if self.every else 1]:
                    os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("case", ["hard targets", "several labels", "vectors of words"])
def test_a_cluster_takes_the_steps_of_this_machine_to_the_last_bit(cluster: str, case: str) -> None:
    here = trainer_of(case)
    here.train(3)
    for workers in (1, 2):
        there = trainer_of(case, engine="ray", workers=workers)
        there.train(3)
        assert bytes_of(there) == bytes_of(here)


def test_workers_that_are_killed_are_replaced_and_nothing_is_lost(cluster: str) -> None:
    here, there = trainer_of(), trainer_of(engine="ray", workers=2)
    here.train(EPOCHS)
    callback = Killing(there, (5, 20), every=True)
    there.train(EPOCHS, callback)
    assert bytes_of(there) == bytes_of(here)
    assert callback.notes == ["A worker died, or its node; another goes on in its place."] * 2 * 2 * there.views


def test_workers_that_die_again_and_again_end_the_training_in_one_sentence(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = trainer_of(engine="ray", workers=1)
    begin, started = Actors._started, Counter[Actors]()

    def dying(self: Actors, number: int) -> Any:
        actors, processes = begin(self, number)
        os.kill(processes[0], signal.SIGKILL)
        started[self] += 1
        return actors, processes

    monkeypatch.setattr(Actors, "_started", dying)
    with pytest.raises(SurroundingsError, match=r"^3 workers died one after the other.*With --state the same command"):
        trainer.train(EPOCHS)
    assert max(started.values()) == 3  # Nobody would ask a fourth.


def test_a_command_that_is_killed_and_typed_again_writes_the_file_of_one_that_was_not(
    cluster: str, sample_path: Path, tmp_path: Path
) -> None:
    told = ["--valid", str(sample_path), "--epochs", "20", "--dim", "8", "--vectors", "none", "--ngrams", "none"]
    succeed("train", sample_path, "--output", tmp_path / "here", "--quiet", *told, "--shards", "8")
    state = tmp_path / "state"
    command = [sys.executable, "-m", "textcls", "train", sample_path, "--output", tmp_path / "there", "--quiet"]
    command += [*told, "--state", state, "--engine", "ray", "--workers", "2"]
    environment = {**os.environ, "RAY_ADDRESS": cluster}
    with subprocess.Popen([*map(str, command)], env=environment) as process:
        while not list(state.glob("*.npz")) and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
