"""What every objective tells of a pre-training."""

from pathlib import Path
from typing import Any, Protocol

from rich.console import Console


class PretrainingReport(Protocol):
    """What came of a pre-training."""

    @property
    def interrupted(self) -> bool:
        """Whether somebody has ended it early; the file then holds what had been learned."""

    def to_json(self) -> dict[str, Any]:
        """Return all of it, for programs."""

    def show(self, console: Console, output: Path) -> None:
        """Print it, for people, and what can be done next with the file."""
