"""The consoles that commands print to, and what all their tables share."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from textcls.display.text import signed, visible

Printable = RenderableType

PIPE_WIDTH: Final = 1000
# The page's colours: distinguishable with red-green blindness, and legible on light and dark terminals.
FOR, AGAINST = "dodger_blue2", "dark_orange3"


class VisibleConsole(Console):
    """A console that no text can control: what would move the cursor or reorder a line is shown, not sent."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as any console does, with every text made visible."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def on_broken_pipe(self) -> None:
        """Leave it to the command to end as one whose reader has gone; rich would exit with 1."""
        raise


def stdout_console() -> Console:
    """Return the console of the commands: as wide as the terminal; in a pipe nothing is wrapped or cut."""
    found = VisibleConsole(soft_wrap=True)
    return found if found.is_terminal else VisibleConsole(soft_wrap=True, width=PIPE_WIDTH)


def stderr_console(*, quiet: bool) -> Console:
    """Return the console of progress and notes."""
    return VisibleConsole(stderr=True, quiet=quiet)


def notebook_console() -> Console:
    """Return the console of progress for callers from Python: quiet except in a notebook."""
    found = stderr_console(quiet=False)
    found.quiet = not found.is_jupyter
    return found


def show(parts: Iterable[Printable], console: Console | None = None) -> None:
    """Print `parts`, one below the other, to standard output unless another `console` is given."""
    console = console or stdout_console()
    for part in parts:
        console.print(part)


def coloured(value: float, digits: int = 3) -> Text:
    """Return a number of logits, blue if it speaks for a label and orange if it speaks against it."""
    small = 0.5 * 10**-digits
    return Text(signed(value, digits), style=FOR if value > small else AGAINST if value < -small else "dim")


def table_of(words: Sequence[str], numbers: Sequence[str], **look: Any) -> Table:
    """Return a table without lines: `words` head its first columns, aligned left, `numbers` the others, aligned right.

    Args:
        words: heads.
        numbers: heads.
        look: the style of the columns, as arguments of `rich.table.Table.add_column`.
    """
    table = Table(box=None, pad_edge=False)
    for word in words:
        table.add_column(Text(word), **look)
    for number in numbers:
        table.add_column(Text(number), justify="right", **look)
    return table
