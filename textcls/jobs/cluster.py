"""Workers on a Ray cluster (https://docs.ray.io), each an actor; Ray is in the extra `textcls[ray]`.

Each free worker takes one job at a time, so that a slow node does less and delays no other. A worker that dies, or
whose node does, is replaced, and its job is done again. Ray's own retries are not used: they would bind a job to its
worker while that waits for a free CPU.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from textcls._util import optional_dependencies
from textcls.errors import InputError, SurroundingsError
from textcls.jobs.work import Crew, Failed, Job, Result, Work, attempt

# A job is given up once this many workers have died on it: it is likely to be the cause.
ATTEMPTS: Final = 3
# The run ends once this many workers in a row have died before their first job.
STARTS: Final = 3


def require() -> Any:
    """Return the `ray` package.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    with optional_dependencies.needed_by("--engine ray"):
        import ray
        import ray.exceptions
    return ray


class Worker:
    """A worker with its work loaded; Ray runs it as an actor."""

    def __init__(self, work: Work[Any, Any]) -> None:
        self._do = work.ready()

    def started(self) -> None:
        """Return once the work is loaded."""

    def attempt(self, job: Any) -> Any:
        """Do `job`, and return its outcome."""
        return attempt(self._do, job)


@contextmanager
def hired(
    work: Work[Job, Result],
    workers: int | None = None,
    in_all: int | None = None,
    say: Callable[[str], None] = lambda note: None,
) -> Iterator[Crew[Job, Result]]:
    """Provide workers that have loaded `work`, for as long as the block lasts.

    The cluster is that of RAY_ADDRESS, else one running on this machine, else one that is started on it for the block.

    Args:
        work: what is done with each job.
        workers: the number of actors, each with one CPU; those without a free CPU wait for one, which lets a cluster
            grow. By default as many as the cluster has CPUs.
        in_all: how many jobs there will be, if that is known: workers with nothing left to do are ended.
        say: takes a sentence about each job that is done again.

    Raises:
        MissingExtraError: Ray is not installed.
        SurroundingsError: there is no cluster at the address, or workers do not start there.
    """
    with connected() as ray:
        number = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        crew = _Crew(ray, work, number if in_all is None else min(number, in_all), say, keep=in_all is None)
        try:
            yield crew.outcomes
        finally:
            crew.dismiss()


class _Crew:
    """Workers and the jobs that they are doing."""

    def __init__(self, ray: Any, work: Work[Any, Any], number: int, say: Callable[[str], None], *, keep: bool) -> None:
        self._ray, self._say, self._keep = ray, say, keep
        # Stored once in the cluster, not once per worker.
        self._work = ray.put(work)
        self._actor = ray.remote(num_cpus=1)(Worker)
        # By the pending answer: the worker, and the number and the job that it is doing; None while it starts.
        self._busy: dict[Any, tuple[Any, tuple[int, Any] | None]] = {}
        self._idle: list[Any] = []
        self._deaths: Counter[int] = Counter()
        self._failed_starts = 0
        for _ in range(number):
            self._hire()

    def outcomes(self, jobs: Sequence[Any]) -> Iterator[Any]:
        """Give each free worker the next job, and yield the outcomes, until all jobs have ended."""
        waiting = deque(enumerate(jobs))
        left = len(waiting)
        self._deaths.clear()
        idle, self._idle = self._idle, []
        for worker in idle:
            self._go_on(worker, waiting)
        while left:
            (answer,), _ = self._ray.wait(list(self._busy), num_returns=1)
            worker, numbered = self._busy.pop(answer)
            try:
                outcome = self._ray.get(answer)
            except self._ray.exceptions.RayActorError as error:
                outcome = self._after_death(numbered, error, waiting)
                self._hire()
            else:
                self._failed_starts = 0
                self._go_on(worker, waiting)
            if outcome is not None:
                left -= 1
                yield outcome

    def dismiss(self) -> None:
        """End all workers."""
        for worker in [*self._idle, *(worker for worker, _ in self._busy.values())]:
            self._ray.kill(worker)
        self._idle.clear()
        self._busy.clear()

    def _hire(self) -> None:
        worker = self._actor.remote(self._work)
        self._busy[worker.started.remote()] = worker, None

    def _go_on(self, worker: Any, waiting: "deque[tuple[int, Any]]") -> None:
        if waiting:
            number, job = waiting.popleft()
            self._busy[worker.attempt.remote(job)] = worker, (number, job)
        elif self._keep:
            self._idle.append(worker)
        else:
            self._ray.kill(worker)

    def _after_death(
        self, numbered: tuple[int, Any] | None, error: Exception, waiting: "deque[tuple[int, Any]]"
    ) -> "Failed[Any] | None":
        """Put the job of a dead worker back at the front of the queue, or give it up.

        Raises:
            SurroundingsError: workers do not start.
        """
        if numbered is None:
            self._failed_starts += 1
            if self._failed_starts < STARTS:
                return None
            raise SurroundingsError(
                f"The workers do not start: {last_line(error)}; install the same textcls[ray] on every node."
            ) from error
        number, job = numbered
        self._deaths[number] += 1
        if self._deaths[number] < ATTEMPTS:
            waiting.appendleft(numbered)
            self._say(f"a worker died, or its node; another begins anew with {job}.")
            return None
        why = f"{ATTEMPTS} workers died of it one after the other, perhaps for lack of memory"
        return Failed(job, InputError(f"{why}; split it, or give the nodes more."))


def last_line(error: Exception) -> str:
    """Return the last line of an error's message, without its full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__


@contextmanager
def connected() -> Iterator[Any]:
    """Connect to the cluster, unless the caller is connected already, and yield the `ray` package.

    Raises:
        MissingExtraError: Ray is not installed.
        SurroundingsError: there is no cluster at the address.
    """
    ray = require()
    if ray.is_initialized():
        yield ray
        return
    try:
        # Workers report errors in their outcomes, so their logs are not needed.
        ray.init(log_to_driver=False, logging_level="ERROR", configure_logging=True, include_dashboard=None)
    except Exception as error:  # Ray raises built-in exceptions, too
        raise SurroundingsError(
            f"There is no cluster of Ray to work on: {last_line(error)}; see RAY_ADDRESS."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()
