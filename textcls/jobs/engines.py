"""Which workers there are."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, Protocol, get_args

from textcls.jobs import cluster, processes
from textcls.jobs.work import Job, Outcome, Result, Work

EngineName = Literal["local", "ray"]
ENGINES: Final = get_args(EngineName)


class Engine(Protocol):
    """Does jobs."""

    def __call__(self, work: Work[Job, Result], jobs: Sequence[Job]) -> Iterator["Outcome[Job, Result]"]:
        """Yield what comes of `jobs`, in the order in which they end."""


def engine(name: EngineName, workers: int | None = None, say: Callable[[str], None] = lambda note: None) -> Engine:
    """Return the engine of this name.

    Args:
        name: `local` for processes of this machine, `ray` for a cluster.
        workers: how many; by default this process alone, or all CPUs of the cluster.
        say: is told what a person should know meanwhile, in sentences.

    Raises:
        MissingExtraError: the engine needs a package that is not installed.
    """
    if name == "ray":
        cluster.require()

    def run(work: Work[Any, Any], jobs: Sequence[Any]) -> Iterator[Any]:
        return cluster.run(work, jobs, workers, say) if name == "ray" else processes.run(work, jobs, workers or 1)

    return run
