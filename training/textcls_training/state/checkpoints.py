"""What a fit keeps while it runs, so that it can go on after a kill: an interface, and the one that keeps nothing.

A training is a sequence of fits that its rows, its options and its versions determine, and a fit is a sequence of steps
that these and its number of the step determine. So a checkpoint is: which fit, its arrays, and how many steps there
were. Whoever goes on from it takes the same steps as one who never stopped, to the same bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from textcls_training.state.arrays_file import Arrays


@dataclass(frozen=True, slots=True)
class FitState:
    """A fit between two of its steps.

    Attributes:
        arrays: all that later steps hang on, and what the fit has found out so far, by name.
        progress: how far it is, for people, such as "after epoch 7 of 10".
        done: whether all its epochs are over.
    """

    arrays: Arrays
    progress: str
    done: bool


class Checkpoint(Protocol):
    """Where one fit keeps its state."""

    def load(self) -> Arrays | None:
        """Return the arrays that were kept last; None if there are none."""

    def offer(self, state: Callable[[], FitState]) -> None:
        """Keep the state of a fit, if it is time to: called between two steps, as often as one likes."""


class Checkpoints(Protocol):
    """Where the fits of a training keep their states, each under its name."""

    def of(self, fit: str) -> Checkpoint:
        """Return where the fit of this name keeps its state."""

    def within(self, part: str) -> "Checkpoints":
        """Return where the fits of a part of the training do, beside those of others that are called alike."""


class _Nowhere:
    def load(self) -> None:
        return None

    def offer(self, state: Callable[[], FitState]) -> None:
        pass

    def of(self, fit: str) -> "_Nowhere":
        return self

    def within(self, part: str) -> "_Nowhere":
        return self


NOWHERE: Final = _Nowhere()
