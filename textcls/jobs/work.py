"""What a worker does, and what comes of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from textcls.errors import TextclsError

Job = TypeVar("Job")
Job_contra = TypeVar("Job_contra", contravariant=True)
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Work(Protocol[Job_contra, Result_co]):
    """What is done with each job. It goes to other processes, and so do jobs and results: all three are pickled."""

    def ready(self) -> Callable[[Job_contra], Result_co]:
        """Load what all jobs need, once a worker, and return what does one.

        That may be done twice with a job, of which one worker died, and has to leave the same behind as once.
        """


@dataclass(frozen=True, slots=True)
class Done(Generic[Job, Result]):
    """A job that was done."""

    job: Job
    result: Result


@dataclass(frozen=True, slots=True)
class Failed(Generic[Job]):
    """A job that was not done, and why: an error that is meant for a person. All others end the whole run."""

    job: Job
    error: TextclsError


Outcome = Done[Job, Result] | Failed[Job]


# Workers who have loaded their work: jobs in, what comes of them out, in the order in which they end.
Crew = Callable[[Sequence[Job]], Iterator[Outcome[Job, Result]]]


def attempt(do: Callable[[Job], Result], job: Job) -> "Outcome[Job, Result]":
    """Do `job`, and return what came of it."""
    try:
        return Done(job, do(job))
    except TextclsError as error:
        return Failed(job, error)
