"""Patterns of file names, such as part-*.parquet, that no shell has expanded."""

import glob
from pathlib import Path

from textcls.data.source import STANDARD
from textcls.errors import InputError


def is_pattern(path: Path) -> bool:
    """Return whether a path is a pattern: it contains *, ? or [, and no file has exactly that name."""
    try:
        return path != STANDARD and glob.has_magic(str(path)) and not path.exists()
    except OSError:  # an invalid name, which opening it will report
        return False


def matching(path: Path) -> list[Path]:
    """Return the files that a pattern matches, sorted by name; a path that is not a pattern is returned by itself.

    Raises:
        InputError: a pattern matches no file.
    """
    if not is_pattern(path):
        return [path]
    there = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207 - of any path, absolute or not
    # Without the files that Excel writes while a workbook is open.
    found = sorted(one for one in there if not one.name.startswith("~$"))
    if not found:
        raise InputError(f"No file matches {path}; check the folder and the pattern.")
    return found
