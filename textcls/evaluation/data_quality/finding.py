"""A finding: what may be wrong, in one sentence, with the first rows that it concerns."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Final

from textcls.evaluation.data_quality.survey import Survey

# How many rows or labels a finding names.
NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that may be wrong.

    Attributes:
        kind: a short name, for programs.
        message: what is wrong and what to do, in a sentence.
        count: how many rows or labels it concerns.
        rows: the locations of the first of them.
    """

    kind: str
    message: str
    count: int
    rows: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.message} {_lines(self.rows)}." if self.rows else self.message

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return asdict(self)


def _lines(rows: Sequence[str]) -> str:
    """Name the rows briefly: each file once for all of its rows."""
    found = []
    for place, group in groupby((row.rpartition(" ") for row in rows), key=lambda parts: parts[0]):
        numbers = [number for _, _, number in group]
        found.append(f"{place}{'s' * (len(numbers) > 1)} {', '.join(numbers)}")
    return "See " + "; ".join(found)


def places(survey: Survey, rows: Iterable[int]) -> tuple[str, ...]:
    """Return the locations of the first of the rows with these numbers."""
    return tuple(survey.places[int(i)] for _, i in zip(range(NAMED), rows, strict=False))


def plural(number: int, one: str, many: str) -> str:
    """Return the number followed by the noun in its singular or plural."""
    return f"{number:,} {one if number == 1 else many}"


def first_of(shown: Sequence[str]) -> str:
    """Return the first of `shown`, and how many more there are."""
    more = f" and {len(shown) - NAMED:,} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + more
