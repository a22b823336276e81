"""Jobs on a real cluster of Ray: of several nodes on this machine, of which processes and nodes are killed."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import succeed
from tests.ray_cluster import LEFT_OPEN, cluster_of
from textcls.jobs import Done, Engine, Failed
from textcls.jobs.batch.folder import MANIFEST
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.trials import Trial, Trials, answered_labels, folds_of, results

pytestmark = LEFT_OPEN


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of a node without a CPU, where the driver is, and of two with one each."""
    with cluster_of(1) as nodes:
        yield nodes


@dataclass(frozen=True)
class Dying:
    """Writes down each job; the workers of job 0 die, once or each time."""

    folder: Path
    each_time: bool

    def ready(self) -> Callable[[int], int]:
        return self.do

    def do(self, number: int) -> int:
        with (self.folder / str(number)).open("a") as file:
            file.write("x")
        if number == 0 and (self.each_time or len((self.folder / "0").read_text()) == 1):
            os._exit(1)
        return number


def done_times(folder: Path) -> dict[int, int]:
    return {int(path.name): len(path.read_text()) for path in folder.iterdir()}


def test_the_job_of_a_worker_that_dies_is_done_again_and_no_other(cluster: Any, tmp_path: Path) -> None:
    found = list(Engine("ray", 2)(Dying(tmp_path, each_time=False), range(6)))
    assert sorted(one.job for one in found if isinstance(one, Done)) == list(range(6))
    assert done_times(tmp_path) == {0: 2, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}


def test_a_job_that_kills_its_workers_is_given_up_and_the_others_are_done(cluster: Any, tmp_path: Path) -> None:
    found = list(Engine("ray", 2)(Dying(tmp_path, each_time=True), range(4)))
    (failed,) = [one for one in found if isinstance(one, Failed)]
    assert failed.job == 0
    assert "3 workers died of it one after the other" in str(failed.error)
    assert sorted(one.job for one in found if isinstance(one, Done)) == [1, 2, 3]
    assert done_times(tmp_path) == {0: 3, 1: 1, 2: 1, 3: 1}


def test_a_cluster_writes_the_files_that_this_machine_writes(cluster: Any, model_path: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for i in range(4):
        rows = [{"id": j, "text": f"parcel {i * j} is late " * (j % 7)} for j in range(200)]
        (data / f"{i}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    succeed("predict", model_path, f"{data}/*.jsonl", "-o", f"{tmp_path}/local/", "--quiet", "--explain")
    said = succeed(
        "predict", model_path, f"{data}/*.jsonl", "-o", f"{tmp_path}/ray", "--quiet", "--explain", "--engine", "ray"
    )
    assert said == f"800 rows in 4 files -> {tmp_path}/ray\n"
    assert hashes(tmp_path / "ray") == hashes(tmp_path / "local")


def test_who_is_hired_does_jobs_that_come_one_part_after_the_other(cluster: Any, tmp_path: Path) -> None:
    with Engine("ray", 2).hired(Dying(tmp_path, each_time=False)) as crew:
        for jobs in ([0, 1, 2], [], [3], [4, 5, 6]):
            assert sorted(one.job for one in crew(jobs) if isinstance(one, Done)) == jobs
    assert done_times(tmp_path) == {0: 2, **dict.fromkeys(range(1, 7), 1)}


def test_trials_on_a_cluster_find_what_this_machine_finds(cluster: Any) -> None:
    words = ("refund", "parcel")
    rows = LabelledTexts(
        texts=[f"{words[i % 2]} please, number {i}" for i in range(60)],
        labels=[words[(i + (i % 15 == 4)) % 2] for i in range(60)],
    )
    config = TrainConfig(epochs=2, dim=4, vectors="none", size="tiny")
    trials = [Trial(f"part {part}", config, part) for part in range(2)]
    answers = []
    for who in (Engine("ray", 2), Engine("local")):
        with who.hired(Trials(rows, folds_of(rows, 2), answered_labels)) as crew:
            answers.append({str(trial): found for trial, found in results(crew, trials)})
    assert answers[0] == answers[1]
    assert {len(found) for found in answers[0].values()} == {30}


def hashes(folder: Path) -> dict[str, str]:
    files = [path for path in folder.iterdir() if path.name != MANIFEST]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
