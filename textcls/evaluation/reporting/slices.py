"""Find the kinds of rows on which a model is weaker than on all others by more than chance.

Each slice is compared with all other rows by Fisher's exact test (1935), with Holm's correction (1979) for many tests.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies
from textcls.evaluation import intervals
from textcls.evaluation.data_quality.scripts import script_of
from textcls.evaluation.intervals import CHANCE, Estimate
from textcls.model.columns import told
from textcls.model.explanation import Explanation

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

# Slices with fewer rows, inside or outside, are not reported; nor more than this many values of a column.
LEAST_ROWS: Final = 20
MOST_VALUES: Final = 20
LENGTH, SCRIPT, UNKNOWN = "length", "script", "unknown words"
# The kind of rows without a value in a column.
MISSING: Final = "(missing)"
_MANY_UNKNOWN: Final = 0.25


class ReadText(NamedTuple):
    """The properties of a text that was read.

    Attributes:
        tokens: how many tokens were read.
        unknown: how many of them the model does not know.
        script: the script of most letters of the text; empty without letters.
    """

    tokens: int
    unknown: int
    script: str

    @classmethod
    def of(cls, explanation: Explanation) -> "ReadText":
        """Return the properties that an explanation contains of its text."""
        return cls(len(explanation.spans), int((~explanation.known).sum()), script_of(explanation.text))


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of one kind.

    Attributes:
        kind: what they are chosen by: `length`, `script`, `unknown words`, or the name of a column, which becomes
            `column length` if that is its name.
        name: the name of the slice within its kind.
        rows: the number of rows.
        accuracy: the accuracy on them; with several labels per text, the share with exactly their labels.
        others: accuracy of all other rows.
        p_value: the probability of so large a difference by chance, corrected for the number of slices.
        micro_f1: with several labels per text, F1 of all labels of these rows together; None if they have no label, and
            with one label per text.
        several: whether a text may have several labels.
    """

    kind: str
    name: str
    rows: int
    accuracy: Estimate
    others: float
    p_value: float
    micro_f1: float | None = None
    several: bool = False

    @property
    def weak(self) -> bool:
        """Whether the model is worse on them than elsewhere by more than chance."""
        return self.accuracy.value < self.others and self.p_value < CHANCE

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        found = asdict(self) | {"accuracy": self.accuracy.as_json(), "weak": self.weak}
        del found["several"]
        if not self.several:
            del found["micro_f1"]
        return found


def slices(
    answers: Sequence[ReadText],
    right: Bools,
    columns: Mapping[str, Sequence[object]],
    micro_f1: Callable[[Bools], float | None] | None = None,
) -> tuple[Slice, ...]:
    """Return all slices that are large enough, kind by kind.

    Args:
        answers: the properties of the text of each row.
        right: whether its answer is right [rows].
        columns: further columns of the rows; each value is a slice, or each quarter of many numbers or dates.
        micro_f1: with several labels per text, a function that returns F1 of all labels of the rows selected by a mask
            [rows]; None if these have no label.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    tokens = np.array([float(answer.tokens) for answer in answers])
    kinds = {
        LENGTH: _quarters(tokens, lambda value: f"{value:,.0f}", " tokens"),
        SCRIPT: _by_size([answer.script or "no letters" for answer in answers]),
        UNKNOWN: _by_size([_unknown(answer) for answer in answers]),
    }
    # A column may have the name of one of these.
    for name, column in columns.items():
        kinds[f"column {name}" if name in kinds else name] = _of_column(column)
    found = [one for kind, names in kinds.items() for one in _of_kind(kind, names, right, micro_f1)]
    return _corrected(found)


class _Names(NamedTuple):
    """The name of the slice of each row, and the names that are reported, in order."""

    of_row: Sequence[str]
    told: Sequence[str]


def _by_size(names: Sequence[str]) -> _Names:
    return _Names(names, [name for name, _ in Counter(names).most_common(MOST_VALUES)])


def _of_column(values: Sequence[object]) -> _Names:
    """Return the values of a column, or the quarters that they are in if there are many different numbers or dates."""
    names = [str(value) for value in values]
    if len(set(names)) <= MOST_VALUES or any(isinstance(value, list | tuple | dict | set) for value in values):
        return _by_size(names)
    from textcls.data.column_kinds import columns_of  # Readers of tables are not for those who only ask a model.

    (column,) = read = columns_of({"value": None}, {"value": values}, ())
    if column.kind == "category":
        return _by_size(names)
    cells = [column.cells(value)[0] for value in values]
    return _quarters(np.array([float(cell or "nan") for cell in cells]), lambda value: told(read, [f"{value:.9g}"])[0])


def _quarters(value_N: Floats, shown: Callable[[float], str], unit: str = "") -> _Names:
    """Return the quarter of all values that each row is in, named by its bounds; NaN is missing."""
    inner = np.unique(np.nanquantile(value_N, [0.25, 0.5, 0.75], method="lower"))
    # A quarter includes its upper bound; if all values are equal there is only one.
    quarter_N = np.where(np.isnan(value_N), len(inner) + 1, np.searchsorted(inner, value_N, side="left"))
    names = {}
    for number in np.unique(quarter_N).tolist():
        own = value_N[quarter_N == number]
        low, high = shown(float(own.min())), shown(float(own.max()))
        names[number] = f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
    names |= {len(inner) + 1: MISSING} if np.isnan(value_N).any() else {}
    return _Names([names[number] for number in quarter_N.tolist()], [*names.values()])


def _unknown(answer: ReadText) -> str:
    if not answer.unknown:
        return "none"
    return "up to a quarter" if answer.unknown <= _MANY_UNKNOWN * answer.tokens else "more than a quarter"


def _of_kind(kind: str, names: _Names, right: Bools, micro_f1: Callable[[Bools], float | None] | None) -> list[Slice]:
    # Not an array of names, which would be as wide in each row as the longest of them.
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names.of_row))}
    of_row = np.array([numbers[name] for name in names.of_row])
    found = []
    for name in names.told:
        inside = of_row == numbers[name]
        rows, hits = int(inside.sum()), int(right[inside].sum())
        others, other_hits = len(right) - rows, int(right.sum()) - hits
        if rows < LEAST_ROWS or others < LEAST_ROWS:
            continue
        p_value = _fisher(hits, rows, other_hits, others)
        several, f1 = micro_f1 is not None, None if micro_f1 is None else micro_f1(inside)
        accuracy = intervals.share(hits, rows)
        found.append(Slice(kind, name, rows, accuracy, other_hits / others, p_value, f1, several))
    return found


def _fisher(hits: int, rows: int, other_hits: int, others: int) -> float:
    """Return how probable hits so unevenly split between `rows` and `others` would be by chance (Fisher's exact test,
    two-sided): the sum over all splits that are no more probable than this one.
    """
    with optional_dependencies.needed_by("A test of slices"):
        from scipy.special import betaln, softmax  # `scipy.stats`, which has the test, takes a second to import.
    all_hits, every = hits + other_hits, max(1, rows + others)
    # Beyond 40 standard deviations of the hits, probabilities are too small for a floating-point number.
    mean = all_hits * rows / every
    near = 100 + 40 * math.sqrt(mean * (others / every))
    least, most = max(0, all_hits - others, math.floor(mean - near)), min(rows, all_hits, math.ceil(mean + near))
    if not least <= hits <= most:
        return 0.0
    inside = np.arange(least, most + 1)
    # By the logarithms of binomial coefficients, up to a term that all splits share.
    outside = all_hits - inside
    chance = softmax(-betaln(rows - inside + 1, inside + 1) - betaln(others - outside + 1, outside + 1))
    return float(min(1.0, chance[chance <= chance[hits - least] * (1 + 1e-7)].sum()))


def _corrected(found: Sequence[Slice]) -> tuple[Slice, ...]:
    """Return slices with Holm's p-values: the smallest of m is multiplied by m, the next by m - 1, and so on."""
    order = sorted(range(len(found)), key=lambda i: found[i].p_value)
    values, largest = [1.0] * len(found), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, found[i].p_value * (len(found) - rank)))
        values[i] = largest
    return tuple(replace(one, p_value=p) for one, p in zip(found, values, strict=True))
