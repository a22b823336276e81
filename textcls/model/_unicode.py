"""Frozen character tables of the token rule, version 1: those of unicode_v1.json, by scripts/generate_unicode.py."""

import json
from pathlib import Path
from typing import Final

Ranges = tuple[tuple[int, int], ...]

_TABLES: Final = json.loads(Path(__file__).with_name("unicode_v1.json").read_bytes())


def _table(name: str) -> Ranges:
    return tuple((first, last) for first, last in _TABLES[name])


# Letters, marks, digits and the underscore, less UNSPACED.
WORD: Final = _table("word")
# Letters of scripts that are written without spaces: each is a token, with the marks that follow it.
UNSPACED: Final = _table("unspaced")
MARK: Final = _table("mark")
SPACE: Final = _table("space")
# Each character and its lower case: one to one, so that lower-casing never moves an offset.
LOWER: Final = _table("lower")
