"""What a worker does, and the outcome of a job."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from textcls.errors import TextclsError

Job = TypeVar("Job")
Job_contra = TypeVar("Job_contra", contravariant=True)
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Work(Protocol[Job_contra, Result_co]):
    """What is done with each job; it is sent to other processes, as are jobs and results, so all three are pickled."""

    def ready(self) -> Callable[[Job_contra], Result_co]:
        """Load what all jobs need, once per worker, and return the function that does one job.

        It may run twice for a job, if a worker died on it, and must then leave the same result as running once.
        """


@dataclass(frozen=True, slots=True)
class Done(Generic[Job, Result]):
    """A job that was done."""

    job: Job
    result: Result


@dataclass(frozen=True, slots=True)
class Failed(Generic[Job]):
    """A job that failed, with an error that is meant for users; all other errors end the whole run."""

    job: Job
    error: TextclsError


Outcome = Done[Job, Result] | Failed[Job]


# Workers that have loaded their work: takes jobs, and yields their outcomes in the order in which they end.
Crew = Callable[[Sequence[Job]], Iterator[Outcome[Job, Result]]]


def attempt(do: Callable[[Job], Result], job: Job) -> "Outcome[Job, Result]":
    """Do `job`, and return its outcome."""
    try:
        return Done(job, do(job))
    except TextclsError as error:
        return Failed(job, error)
