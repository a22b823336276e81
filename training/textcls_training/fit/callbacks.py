"""Who is told how a training goes."""

from typing import Final, Protocol


class Callback(Protocol):
    """Who wants to know how a training goes."""

    def phase(self, name: str, rows: int) -> None:
        """A new pass begins: `rows` rows over all its epochs."""

    def step(self, rows: int, loss: float | None = None) -> None:
        """A step was taken; what learns nothing has no loss."""

    def note(self, text: str) -> None:
        """Something happened that is worth a line."""

    def epoch(self, number: int, score: float | None) -> None:
        """An epoch is over: the share of right answers on validation rows, None without any."""


class _Nobody:
    def phase(self, name: str, rows: int) -> None:
        pass

    def step(self, rows: int, loss: float | None = None) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def epoch(self, number: int, score: float | None) -> None:
        pass


NOBODY: Final[Callback] = _Nobody()
