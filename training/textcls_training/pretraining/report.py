"""What every objective reports on a pre-training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from textcls.display.text import in_a_shell


class PretrainingReport(Protocol):
    """The result of a pre-training."""

    @property
    def interrupted(self) -> bool:
        """Return whether it was stopped early; the file then contains what had been learned."""

    def to_json(self) -> dict[str, Any]:
        """Return everything, for programs."""

    def show(self, console: Console, output: Path) -> None:
        """Print it for users, and what to do next with the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsWritten:
    """A file of vectors that a pre-training has written.

    Attributes:
        texts: the number of texts it has learned from.
        words: how many words have a vector.
        dim: the number of dimensions.
        file_bytes: the size of the file.
    """

    texts: int
    words: int
    dim: int
    file_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return everything."""
        return {"texts": self.texts, "words": self.words, "dim": self.dim, "file_bytes": self.file_bytes}

    def show(self, console: Console, output: Path) -> None:
        """Print the report, and the next command."""
        next_one = f"textcls train LABELLED --vectors {in_a_shell(output)}"
        console.print(
            f"{output}: {self.words:,} words of {self.dim} numbers, {self.file_bytes / 1e6:.2f} MB. Next: {next_one}",
            highlight=False,
            soft_wrap=True,
            markup=False,
        )
