"""Checkpoints of a fit, so that it can resume after a kill: an interface, and an implementation that keeps nothing.

A training is a sequence of fits that its rows, its options and its versions determine, and a fit is a sequence of steps
that these and its number of the step determine. So a checkpoint is: which fit, its arrays, and how many steps there
were. Whoever goes on from it takes the same steps as one who never stopped, to the same bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from textcls_training.data.arrays import Int64
from textcls_training.state.arrays_file import Arrays


@dataclass(frozen=True, slots=True)
class Learned:
    """What a fit of an earlier training has learned, and another begins with.

    Attributes:
        arrays: its final arrays.
        label_C: the present number of each of its labels.
    """

    arrays: Arrays
    label_C: Int64


@dataclass(frozen=True, slots=True)
class FitState:
    """A fit between two of its steps.

    Attributes:
        arrays: all that later steps depend on, and what the fit has found out so far, by name.
        progress: its progress in readable form, such as "after epoch 7 of 10".
        done: whether all its epochs are over.
    """

    arrays: Arrays
    progress: str
    done: bool


class Checkpoint(Protocol):
    """Keep the state of one fit."""

    def learned(self) -> Learned | None:
        """Return what the fit begins with; None if it begins anew."""

    def load(self) -> Arrays | None:
        """Return the arrays that were kept last; None if there are none."""

    def offer(self, state: Callable[[], FitState]) -> None:
        """Keep the state of a fit, if it is time to: called between two steps, any number of times."""

    def finish(self, state: Callable[[], FitState]) -> None:
        """Keep the final state of a fit, if it is needed."""


class Checkpoints(Protocol):
    """Keep the states of the fits of a training, each under its name."""

    def of(self, fit: str) -> Checkpoint:
        """Return where the fit of this name keeps its state."""

    def within(self, part: str) -> "Checkpoints":
        """Return where the fits of one part keep their states, beside fits of the same names in other parts."""


class _Nowhere:
    def learned(self) -> None:
        return None

    def load(self) -> None:
        return None

    def offer(self, state: Callable[[], FitState]) -> None:
        pass

    def finish(self, state: Callable[[], FitState]) -> None:
        pass

    def of(self, fit: str) -> "_Nowhere":
        return self

    def within(self, part: str) -> "_Nowhere":
        return self


NOWHERE: Final = _Nowhere()


class After:
    """Checkpoints of fits that begin with what those of an earlier training have learned.

    Args:
        checkpoints: where the states are kept.
        learned: what the fit of a name begins with.
    """

    def __init__(self, checkpoints: Checkpoints, learned: Callable[[str], Learned]) -> None:
        self._checkpoints, self._learned = checkpoints, learned

    def of(self, fit: str) -> Checkpoint:
        """Return where the fit of this name keeps its state, and what it begins with."""
        return _Begun(self._checkpoints.of(fit), partial(self._learned, fit))

    def within(self, part: str) -> Checkpoints:
        """Return where the fits of one part keep their states; they begin anew."""
        return self._checkpoints.within(part)


class _Begun:
    def __init__(self, checkpoint: Checkpoint, learned: Callable[[], Learned]) -> None:
        self.learned, self.load = learned, checkpoint.load
        self.offer, self.finish = checkpoint.offer, checkpoint.finish
