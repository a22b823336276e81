"""Callbacks that are notified of the progress of a training."""

from typing import Final


class Callback:
    """A receiver of notifications about a training, which ignores those that a subclass does not handle."""

    def phase(self, name: str, rows: int) -> None:
        """Begin a new pass: `rows` rows over all its epochs."""

    def step(self, rows: int, loss: float | None = None) -> None:
        """Report a step; one that learns nothing has no loss."""

    def note(self, text: str) -> None:
        """Report something that is worth a line."""

    def epoch(self, number: int, score: float | None) -> None:
        """Report the end of an epoch: the share of right answers on validation rows, None without any."""


NOBODY: Final = Callback()
