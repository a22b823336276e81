"""What both examples write: a table, a JSON file with the figures, and pictures where matplotlib is installed."""

import datetime
import importlib.util
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

import torch

KERNELS: Final = Path(__file__).parents[1]
# The same figures give the same bytes.
STYLE: Final[dict[Any, Any]] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 8,
    "image.interpolation": "none",  # pixels as they are: a reader enlarges them
    "svg.fonttype": "none",
    "svg.hashsalt": "textcls",
}
# Okabe and Ito's palette, told apart by colour-blind readers.
COLOURS: Final = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


def can_draw() -> bool:
    """Return whether matplotlib is here; what is drawn is also in the tables."""
    return importlib.util.find_spec("matplotlib") is not None


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib as SVG, on white and without the date."""
    figure.savefig(path, format="svg", bbox_inches="tight", facecolor="white", metadata={"Date": None})


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    """Return "mean ± standard deviation", the deviation of a sample; without it where there is one value."""
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread}"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown, its first column to the left and the others to the right."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in (heads, rule, *rows))


def about(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what a figure comes with: date, commit, machine, versions and settings."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(KERNELS),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "settings": settings,
    }


def commit(folder: Path) -> str:
    """Return the short commit of a folder's checkout, and whether its code has changes; "unknown" outside of one."""
    name = _git(folder, "rev-parse", "--short", "HEAD")
    if not name:
        return "unknown"
    return f"{name} with changes" if _git(folder, "status", "--porcelain", "--", "*.py") else name


def _git(folder: Path, *arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
        ).stdout.strip()
    except FileNotFoundError:  # no git here
        return ""


def save_figures(path: Path, settings: dict[str, Any], figures: dict[str, Any]) -> None:
    """Write figures as JSON, after what `about` tells."""
    text = json.dumps(about(settings) | figures, indent=1, ensure_ascii=False, default=str)
    path.write_text(text + "\n", encoding="utf-8")


def rounded(values: Any, digits: int = 4) -> Any:
    """Return nested lists of numbers, rounded to so many digits after the point."""
    return [rounded(value, digits) for value in values] if isinstance(values, list) else round(values, digits)
