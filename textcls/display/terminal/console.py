"""Where commands print, and what all their tables share."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console, RenderableType
from rich.text import Text

from textcls.display.text import signed

Printable = RenderableType

PIPE_WIDTH: Final = 1000
# As on the page; told apart by people who do not tell red from green, and legible on light and dark terminals.
FOR, AGAINST = "dodger_blue2", "dark_orange3"


def stdout_console() -> Console:
    """Return the console of the commands: as wide as the terminal; in a pipe nothing is wrapped or cut."""
    found = Console(soft_wrap=True)
    return found if found.is_terminal else Console(soft_wrap=True, width=PIPE_WIDTH)


def show(parts: Iterable[Printable], console: Console | None = None) -> None:
    """Print `parts`, one below the other, to standard output unless another `console` is given."""
    console = console or stdout_console()
    for part in parts:
        console.print(part)


def coloured(value: float, digits: int = 3) -> Text:
    """Return a number of logits, blue where it speaks for a label and orange where it speaks against it."""
    small = 0.5 * 10**-digits
    return Text(signed(value, digits), style=FOR if value > small else AGAINST if value < -small else "dim")
