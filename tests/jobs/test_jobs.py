"""Jobs done by workers: each once, whoever does it; what goes wrong with one is told with it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.service.processes import until
from textcls.errors import InputError, SurroundingsError
from textcls.jobs import Done, Engine, Failed


@dataclass(frozen=True)
class Squares:
    """Squares numbers; -1 is refused, and 13 kills its worker."""

    loads: Path

    def ready(self) -> Callable[[int], int]:
        with self.loads.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return self.square

    def square(self, number: int) -> int:
        if number == -1:
            raise InputError("-1 is not a number for this.")
        if number == 13:
            os._exit(1)
        return number * number


def outcomes(tmp_path: Path, numbers: Sequence[int], workers: int) -> list[Done[int, int] | Failed[int]]:
    return list(Engine("local", workers)(Squares(tmp_path / "loads"), numbers))


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_is_done_once_and_the_work_is_loaded_once_a_worker(tmp_path: Path, workers: int) -> None:
    found = outcomes(tmp_path, range(12), workers)
    assert sorted((one.job, one.result) for one in found if isinstance(one, Done)) == [(i, i * i) for i in range(12)]
    loads = (tmp_path / "loads").read_text().split()
    assert len(loads) == len(set(loads)) <= workers


@pytest.mark.parametrize("workers", [1, 2])
def test_who_is_hired_loads_the_work_once_for_all_that_comes(tmp_path: Path, workers: int) -> None:
    with Engine("local", workers).hired(Squares(tmp_path / "loads")) as crew:
        for jobs in ([1, 2, 3], [], [4, 5]):
            found = {one.job: one.result for one in crew(jobs) if isinstance(one, Done)}
            assert found == {i: i * i for i in jobs}
    loads = (tmp_path / "loads").read_text().split()
    assert len(loads) == len(set(loads)) <= workers


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_that_fails_is_told_with_its_reason_and_the_others_are_done(tmp_path: Path, workers: int) -> None:
    found = outcomes(tmp_path, [1, -1, 2], workers)
    (failed,) = [one for one in found if isinstance(one, Failed)]
    assert (failed.job, str(failed.error)) == (-1, "-1 is not a number for this.")
    assert sorted(one.job for one in found if isinstance(one, Done)) == [1, 2]


def test_a_job_that_kills_its_worker_is_told_and_all_others_are_done(tmp_path: Path) -> None:
    found = outcomes(tmp_path, [1, 2, 13, 3, 4, 5, 13, 6], 2)
    failed = [one for one in found if isinstance(one, Failed)]
    assert [one.job for one in failed] == [13, 13]
    assert "ended unexpectedly, twice: it is damaged, or takes more memory than there is" in str(failed[0].error)
    assert sorted(one.job for one in found if isinstance(one, Done)) == [1, 2, 3, 4, 5, 6]


def test_workers_that_die_whatever_the_job_are_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SurroundingsError, match=r"Worker processes end unexpectedly.*use fewer --workers"):
        outcomes(tmp_path, [13] * 50, 2)


def test_without_jobs_nothing_is_started(tmp_path: Path) -> None:
    assert list(Engine("local", 2)(Squares(tmp_path / "loads"), [])) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="this system does not show its processes as files")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_workers_end_with_the_process_that_hired_them_however_that_ends(how: str) -> None:
    # Idle ones, and one that works.
    code = """
import os, time
from textcls.jobs.processes import pool_of

if __name__ == "__main__":
    pool = pool_of(2)
    found = {pool.submit(os.getpid).result() for _ in range(20)}
    pool.submit(time.sleep, 60)
    print(*found, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None:
            pytest.fail("there is no output")
        workers = process.stdout.readline().split()
        assert workers
        process.send_signal(getattr(signal, how))
        until(lambda: not any(_is_alive(worker) for worker in workers))


def _is_alive(process: str) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
