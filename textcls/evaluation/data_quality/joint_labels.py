"""Detect cells that look like several labels in one: does a separator occur whose parts recur in other combinations?

Among the distinct cells of a label column, a sign counts as a separator if

- at least 3 contain it between different parts, and not all contain it the same number of times;
- these cells have fewer distinct parts than cells with such parts, and a part occurs in two or more cells on average;
- at least a fifth of the parts come first in one cell and later in another, so that they are neither levels of a
  hierarchy nor two properties such as `food/good`.

Names do not contain `;` and `|`. So one cell is enough if it contains one of these between parts that are all cells
of their own. So are a few that add a tag such as `urgent` to labels that are cells of their own, if there are at
least twice as many of these as tags: otherwise both could be levels of a hierarchy. Names such as `sci/space`,
`Payday loan, title loan` or `yes/no` beside `yes` and `no` are therefore single labels.
"""

import json
from collections.abc import Collection, Iterable, Set
from typing import Final, NamedTuple

JSON: Final = "json"
SEPARATORS: Final = (";", ",", "|", "/")
_NEVER_IN_NAMES: Final = (";", "|")
LEAST_JOINT: Final = 3
LEAST_MOVING: Final = 0.2
# The share of the cells that must be JSON lists.
LEAST_LISTS: Final = 0.9


class Joint(NamedTuple):
    """The separator between the labels of a cell, and how many different labels there would be."""

    separator: str
    labels: int


def joint_labels(cells: Collection[str]) -> Joint | None:
    """Return what seems to separate several labels in one of the distinct `cells`; None if nothing does.

    The separator is `json` if the cells are JSON lists.
    """
    lists = [found for cell in cells if (found := _json_list(cell)) is not None]
    if len(cells) >= LEAST_JOINT and len(lists) >= LEAST_LISTS * len(cells):
        return Joint(JSON, len({name for names in lists for name in names}))
    alone = {*cells}
    for sign in _NEVER_IN_NAMES:
        split = [parts for cell in cells if len({*(parts := _parts(cell, sign))}) > 1]
        if any({*parts} <= alone for parts in split) or _tagged(split, alone):
            return Joint(sign, len({*_flat(_parts(cell, sign) for cell in cells)}))
    holding = {sign: sum(sign in cell for cell in cells) for sign in SEPARATORS}
    for sign in sorted(SEPARATORS, key=lambda sign: -holding[sign]):
        if holding[sign] >= LEAST_JOINT and (labels := _labels_between(cells, sign)):
            return Joint(sign, labels)
    return None


def joins(cells: Iterable[str], known: Collection[str]) -> str | None:
    """Return what separates known labels in the `cells` that are several of these; None if none are."""
    every, names = list(cells), {*known}
    for sign in SEPARATORS:
        split = [parts for cell in every if len(parts := _parts(cell, sign)) > 1]
        if split and names.issuperset(_flat(split)):
            return sign
    lists = [found for cell in every if (found := _json_list(cell)) is not None]
    return JSON if lists and names.issuperset(_flat(lists)) else None


def _tagged(split: Collection[list[str]], alone: Set[str]) -> bool:
    """Return whether few parts follow many different ones, all of which are cells of their own."""
    first = {parts[0] for parts in split}
    added = set(_flat(parts[1:] for parts in split))
    return len(added) > 0 and first <= alone and 2 * len(added) <= len(first)


def _labels_between(cells: Collection[str], sign: str) -> int:
    """Return how many labels the signs separate, 0 if they do not look like separators."""
    split = [parts for cell in cells if (parts := _parts(cell, sign))]
    joint = [parts for parts in split if len(set(parts)) > 1]
    joined = set(_flat(joint))
    holding = [found for parts in split if (found := joined.intersection(parts))]
    moving = {parts[0] for parts in joint}.intersection(_flat(parts[1:] for parts in joint))
    several = len(joint) >= LEAST_JOINT and len(set(map(len, split))) > 1
    recurring = len(joined) < len(holding) and sum(map(len, holding)) >= 2 * len(joined)
    moved = len(moving) >= LEAST_MOVING * len(joined)
    return len(set(_flat(split))) if several and recurring and moved else 0


def _parts(cell: str, sign: str) -> list[str]:
    return [part.strip() for part in cell.split(sign) if part.strip()]


def _flat(lists: Iterable[list[str]]) -> Iterable[str]:
    return (part for each in lists for part in each)


def _json_list(cell: str) -> list[str] | None:
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(name, str) for name in found) else None
