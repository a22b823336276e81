"""Determine the scripts of texts from the Unicode names of their letters. Languages are not distinguished."""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Final

# First words of Unicode names that are not the name of a script.
_SAME: Final = {"CJK": "HAN", "IDEOGRAPHIC": "HAN", "HALFWIDTH": "KATAKANA", "FULLWIDTH": "LATIN"}


def shares(characters: Mapping[str, int]) -> dict[str, float]:
    """Return the share of the letters in each script, the largest first.

    Args:
        characters: how often each character occurs.
    """
    found: Counter[str] = Counter()
    for character, times in characters.items():
        if character.isalpha():
            found[_script(character)] += times
    total = found.total()
    return {script: times / total for script, times in found.most_common()}


def script_of(text: str) -> str:
    """Return the script of most letters of a text; an empty string if it has no letters."""
    return next(iter(shares(Counter(text))), "")


def _script(letter: str) -> str:
    first = unicodedata.name(letter, "OTHER").replace("-", " ").split()[0]
    return _SAME.get(first, first).capitalize()
