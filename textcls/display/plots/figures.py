"""A common style for all plots, and a plot as the content of a file: SVG, PNG or PDF."""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textcls._util import optional_dependencies
from textcls.display.text import named, one_line
from textcls.errors import ConfigError, SurroundingsError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of the pages: for a label, against it, and neutral.
FOR: Final = "#1d64dc"
AGAINST: Final = "#d15400"
NEUTRAL: Final = "#8d95a1"
FORMATS: Final = ("svg", "png", "pdf")
# Fonts, tried in this order for characters that the first one lacks.
_FONTS: Final = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Thai", "Noto Sans Arabic",
    "Noto Sans Devanagari", "Noto Sans Hebrew", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic",
    "Malgun Gothic", "Leelawadee UI", "Arial Unicode MS", "Noto Emoji",
)  # fmt: skip
_STYLE: Final[dict[Any, Any]] = {
    "axes.edgecolor": NEUTRAL,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "font.size": 10,
    # Text stays text, which every viewer has fonts for; the same picture has the same bytes.
    "svg.fonttype": "none",
    "svg.hashsalt": "textcls",
    "text.parse_math": False,
    "savefig.dpi": 200,
}
_MISSING: Final = re.compile(r"Glyph (\d+)")
# The most characters of a name, and the inches per character.
LONGEST_NAME: Final = 32
_CHARACTER: Final = 0.08


def require(what: str) -> None:
    """Check before long work that plots can be drawn.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    optional_dependencies.require(what, "matplotlib")


def format_of(path: Path) -> str:
    """Return the format that is indicated by the name of a file.

    Raises:
        ConfigError: it is none of `FORMATS`.
    """
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise ConfigError(f"The name {path} does not say the format of the plot; end it in .svg, .png or .pdf.")
    return form


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of all plots."""
    with optional_dependencies.needed_by("A plot"):
        from matplotlib import font_manager, rc_context
    there = set(font_manager.get_font_names())
    with rc_context({**_STYLE, "font.family": [name for name in _FONTS if name in there]}):
        yield


def axes_of(width: float, height: float) -> tuple["Figure", "Axes"]:
    """Return an empty plot of this size in inches, which no window shows, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    return figure, figure.add_subplot()


def fitted(text: str, width: int = LONGEST_NAME) -> str:
    """Return the beginning of a text on one line, as wide as `width` Latin characters; an ellipsis is for the rest."""
    from rich.cells import cell_len, chop_cells

    shown = one_line(text)
    return shown if cell_len(shown) <= width else chop_cells(shown, width - 1)[0].rstrip() + "\u2026"


def row_name(text: str) -> str:
    """Return a token or label as named in a plot, which has less space than a table."""
    return fitted(named(text))


def room_for(names: Sequence[str]) -> float:
    """Return the inches beside a plot that names need."""
    from rich.cells import cell_len

    return _CHARACTER * max(map(cell_len, names), default=0)


def name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Name the rows of a plot, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)


def content(figure: "Figure", form: str) -> bytes:
    """Return a plot as the content of a file.

    Raises:
        SurroundingsError: it would contain boxes in place of characters, since no font on this machine has these.
    """
    found = io.BytesIO()
    # The date would change the bytes.
    about: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with styled(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        figure.savefig(found, format=form, metadata=about)
    missing = sorted({int(sign[1]) for one in warned if (sign := _MISSING.match(str(one.message)))})
    if missing and form != "svg":
        signs = " ".join(f"{chr(code)} (U+{code:04X})" for code in missing[:3])
        raise SurroundingsError(
            f"No font of this machine has the characters {signs}; write an .svg, whose viewer has fonts of its own, or "
            "install some, such as Noto."
        )
    return found.getvalue()
