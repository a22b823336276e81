"""The files from which the options of the running command were read, which no output may replace."""

from pathlib import Path
from typing import Final

import click

# Key in a command's context: those files.
_FILES: Final = "textcls.option_files"


def add(context: click.Context, path: Path) -> None:
    """Add a file to those that were read."""
    context.meta.setdefault(_FILES, []).append(path)


def of(context: click.Context) -> list[Path]:
    """Return the files that were read."""
    return list(context.meta.get(_FILES, ()))
