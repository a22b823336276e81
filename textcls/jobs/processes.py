"""Workers on this machine: this process, or several."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, Final, Generic

from textcls._util import interrupts
from textcls.errors import InputError, SurroundingsError
from textcls.jobs.work import Crew, Failed, Job, Outcome, Result, Work, attempt

# If this many jobs in a row lose their worker, the jobs are not the cause.
MOST_DEATHS: Final = 3

# The function that does a job, in a process of the pool.
_do: Callable[[Any], Any] | None = None


def pool_of(workers: int, load: Callable[..., None] | None = None, *given: Any) -> ProcessPoolExecutor:
    """Return a pool of processes that end with this one, however it ends; each begins with `load(*given)`."""
    # Spawned, since a forked copy of a process that runs threads, as ONNX Runtime does, may hang.
    return ProcessPoolExecutor(workers, get_context("spawn"), _begin, (load, given))


def _begin(load: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    # If the parent was killed, a worker would wait for jobs forever, since it has both ends of its queue open.
    Thread(target=_end_with_parent, daemon=True).start()
    if load is not None:
        load(*given)


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


@contextmanager
def hired(work: Work[Job, Result], workers: int = 1) -> Iterator[Crew[Job, Result]]:
    """Provide workers that have loaded `work`, for as long as the block lasts.

    A job whose worker dies, even when it runs alone, has failed; the others are done.

    Args:
        work: what is done with each job.
        workers: the number of processes; a single one is this process.

    Raises:
        SurroundingsError: workers die whatever the job.
    """
    if workers == 1:
        do = work.ready()
        yield lambda jobs: (attempt(do, job) for job in jobs)
        return
    crew = _Processes(work, workers)
    try:
        yield lambda jobs: crew.outcomes(iter(jobs))
    finally:
        crew.pool.shutdown(cancel_futures=True)


class _Processes(Generic[Job, Result]):
    """Processes that have loaded `work`; if one dies, the whole pool is replaced."""

    def __init__(self, work: Work[Job, Result], workers: int) -> None:
        self._work, self._workers, self._deaths = work, workers, 0
        self.pool = self._new(workers)

    def _new(self, workers: int) -> ProcessPoolExecutor:
        return pool_of(workers, _load, self._work)

    def outcomes(self, jobs: Iterator[Job]) -> Iterator[Outcome[Job, Result]]:
        """Keep each worker busy, with one job waiting for it, and yield the outcomes."""
        running: dict[Future[Outcome[Job, Result]], Job] = {}
        while True:
            lost: list[Job] = []
            for job in islice(jobs, 2 * self._workers - len(running)):
                try:
                    # Ctrl-C reaches every process of the terminal from its start; this one alone decides what ends.
                    with interrupts.held_back_from_processes():
                        running[self.pool.submit(_attempt, job)] = job
                except BrokenProcessPool:
                    lost.append(job)
            if not running and not lost:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    lost.append(job)
            if lost:
                yield from self._one_by_one([*lost, *running.values()])
                running.clear()

    def _one_by_one(self, jobs: list[Job]) -> Iterator[Outcome[Job, Result]]:
        """Redo, one by one, the jobs under way when a process died, as it is not known which of them caused it."""
        self.pool.shutdown(cancel_futures=True)
        for job in jobs:
            with self._new(1) as alone:
                try:
                    with interrupts.held_back_from_processes():
                        future = alone.submit(_attempt, job)
                    yield future.result()
                    self._deaths = 0
                except BrokenProcessPool as error:
                    yield Failed(job, self._died(error))
        self.pool = self._new(self._workers)

    def _died(self, error: BrokenProcessPool) -> InputError:
        """Return the error for a job whose process has died.

        Raises:
            SurroundingsError: the processes of `MOST_DEATHS` jobs in a row have died.
        """
        self._deaths += 1
        if self._deaths == MOST_DEATHS:
            raise SurroundingsError(
                "Worker processes end unexpectedly, one after another, perhaps for lack of memory; use fewer "
                "--workers. What is written is kept."
            ) from error
        return InputError(
            "The process that worked on it ended unexpectedly, twice: it is damaged, or takes more memory than there "
            "is."
        )


def _load(work: Work[Any, Any]) -> None:
    global _do
    _do = work.ready()


def _attempt(job: Any) -> Any:
    if _do is None:
        raise RuntimeError("the worker has not loaded its work")
    return attempt(_do, job)
