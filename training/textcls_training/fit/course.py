"""What the fits of a training share beside what they learn from."""

from dataclasses import dataclass, field, replace
from typing import Self

from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.state.checkpoints import NOWHERE, Checkpoints


@dataclass(frozen=True, slots=True)
class Course:
    """How a training runs.

    Attributes:
        callback: notified of progress.
        stop: a request to end it early.
        checkpoints: where its fits keep their states, and resume from.
    """

    callback: Callback = NOBODY
    stop: Stop = field(default_factory=Stop)
    checkpoints: Checkpoints = NOWHERE

    def within(self, part: str) -> Self:
        """Return the course of a part of the training, whose fits keep their states apart from those of others."""
        return replace(self, checkpoints=self.checkpoints.within(part))
