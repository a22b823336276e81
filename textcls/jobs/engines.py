"""The engines: where workers run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Literal, get_args

from textcls.jobs import cluster, processes
from textcls.jobs.work import Crew, Job, Outcome, Result, Work

EngineName = Literal["local", "ray"]
ENGINES: Final = get_args(EngineName)


@dataclass(frozen=True, slots=True)
class Engine:
    """Runs jobs.

    Attributes:
        name: `local` for processes on this machine, `ray` for a cluster.
        workers: how many; None for this process alone, or for all CPUs of the cluster.
        say: takes sentences about what happens during the run.

    Raises:
        MissingExtraError: the engine needs a package that is not installed.
    """

    name: EngineName = "local"
    workers: int | None = None
    say: Callable[[str], None] = lambda note: None

    def __post_init__(self) -> None:
        if self.name == "ray":
            cluster.require()

    def __call__(self, work: Work[Job, Result], jobs: Sequence[Job]) -> Iterator["Outcome[Job, Result]"]:
        """Yield the outcomes of `jobs`, in the order in which they end."""
        if jobs:
            with self.hired(work, len(jobs)) as crew:
                yield from crew(jobs)

    def hired(self, work: Work[Job, Result], in_all: int | None = None) -> AbstractContextManager[Crew[Job, Result]]:
        """Provide workers that have loaded `work`, as long as the block lasts: for jobs that depend on others.

        Args:
            work: what is done with each job.
            in_all: how many jobs there will be, if that is known: workers with nothing left to do are ended.
        """
        if self.name == "ray":
            return cluster.hired(work, self.workers, in_all, self.say)
        workers = self.workers or 1
        return processes.hired(work, workers if in_all is None else min(workers, in_all))


# This process alone.
HERE: Final = Engine()
