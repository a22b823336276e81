"""Workers on this machine: this process, or several."""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import Any

from textcls._util import interrupts
from textcls.errors import SurroundingsError
from textcls.jobs.work import Crew, Job, Outcome, Result, Work, attempt

# What does a job, in a process of the pool.
_do: Callable[[Any], Any] | None = None


@contextmanager
def hired(work: Work[Job, Result], workers: int = 1) -> Iterator[Crew[Job, Result]]:
    """Give workers who have loaded `work`, for as long as the block lasts.

    Args:
        work: what is done with each job.
        workers: processes; with one it is this.

    Raises:
        SurroundingsError: a worker has died.
    """
    if workers == 1:
        do = work.ready()
        yield lambda jobs: (attempt(do, job) for job in jobs)
        return
    # Spawned: a forked copy of a process that runs threads, as ONNX Runtime does, may hang.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _load, (work,))
    try:
        yield lambda jobs: _outcomes(pool, iter(jobs), workers)
    except BrokenProcessPool as error:
        raise SurroundingsError(
            "A worker process ended unexpectedly, perhaps for lack of memory; use fewer --workers. What is written "
            "is kept."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _outcomes(pool: ProcessPoolExecutor, jobs: Iterator[Job], workers: int) -> Iterator["Outcome[Job, Result]"]:
    """Keep each worker busy, with one job waiting for it, and yield what comes of them."""
    running: set[Future[Outcome[Job, Result]]] = set()
    while True:
        for job in islice(jobs, 2 * workers - len(running)):
            # Ctrl-C reaches every process of the terminal from its first moment; this one decides what ends.
            with interrupts.held_back():
                running.add(pool.submit(_attempt, job))
        if not running:
            return
        ended, running = wait(running, return_when=FIRST_COMPLETED)
        for future in ended:
            yield future.result()


def _load(work: Work[Any, Any]) -> None:
    global _do
    _do = work.ready()


def _attempt(job: Any) -> Any:
    if _do is None:
        raise RuntimeError("the worker has not loaded its work")
    return attempt(_do, job)
