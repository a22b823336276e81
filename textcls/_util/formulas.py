"""Fields of a table that a spreadsheet would run."""

import re
from typing import Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def without_formula(text: str) -> str:
    """Return a field with an apostrophe before it if a spreadsheet would take it for a formula.

    By OWASP's page on CSV injection a formula begins with `=`, `+`, `-`, `@`, a tab or a line end; not so a number.
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
