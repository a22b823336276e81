"""Patterns of file names, such as part-*.parquet, for where no shell has put names in their place."""

import glob
from pathlib import Path

from textcls.data.source import STANDARD
from textcls.errors import InputError


def is_pattern(path: Path) -> bool:
    """Whether a path is a pattern: it holds *, ? or [ and there is no file of that very name."""
    try:
        return path != STANDARD and glob.has_magic(str(path)) and not path.exists()
    except OSError:  # a name that no system allows, which opening it will say
        return False


def matching(path: Path) -> list[Path]:
    """Return the files that a pattern matches, in the order of their names; a path that is not a pattern itself.

    Raises:
        InputError: a pattern matches none.
    """
    if not is_pattern(path):
        return [path]
    there = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207 - of any path, absolute or not
    # Not those that Excel writes while a book is open.
    found = sorted(one for one in there if not one.name.startswith("~$"))
    if not found:
        raise InputError(f"No file matches {path}; check the folder and the pattern.")
    return found
