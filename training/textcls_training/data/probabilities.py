"""Given probabilities of the labels, in columns of a table or in mappings: found, checked and ordered."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from textcls.errors import ConfigError, InputError

# The placeholder for the label in a pattern of columns.
LABEL: Final = "*"
# Written with two digits, the probabilities of many labels can miss 1 by this much.
TOLERANCE: Final = 0.02


def columns_of(columns: Sequence[str], pattern: str, names: Sequence[str], file: str) -> list[str]:
    """Return the column of each label, in the order of `names`.

    Args:
        columns: those of the file.
        pattern: the names of the columns, with a `*` for the label: `p_*`.
        names: the labels.
        file: name of the file, for messages.

    Raises:
        ConfigError: the pattern does not have exactly one `*`.
        InputError: a label has no column, or a column no label.
    """
    if pattern.count(LABEL) != 1:
        raise ConfigError(
            f"The pattern of the columns of probabilities must hold one * for the label, as p_* does, not {pattern!r}."
        )
    before, _, after = pattern.partition(LABEL)
    wanted = [f"{before}{name}{after}" for name in names]
    lacking = next((name for name, column in zip(names, wanted, strict=True) if column not in columns), None)
    if lacking is not None:
        raise InputError(
            f"{file} has no column {before + lacking + after!r} for the label {lacking!r}; beside the text it has "
            f"{', '.join(map(repr, columns)) or 'none'}."
        )
    room = len(before) + len(after)
    odd = next((c for c in columns if _matches(c, before, after, room) and c not in wanted), None)
    if odd is not None:
        raise InputError(
            f"{file}: the column {odd!r} is for a label that no training row has; remove it, or choose a pattern "
            "that does not match it."
        )
    return wanted


def _matches(column: str, before: str, after: str, room: int) -> bool:
    return len(column) >= room and column.startswith(before) and column.endswith(after)


def problem(fields: Mapping[str, Any], columns: Sequence[str], *, several: bool = False) -> str | None:
    """Return what is wrong with the probabilities in `columns` of a row, as a clause; None if nothing is.

    With one label per row they sum to 1; if it may have `several`, each is independent.
    """
    total = 0.0
    for column in columns:
        value = _number(fields.get(column))
        if value is None or not 0 <= value <= 1:
            return f"the probability in column {column!r} is {fields.get(column)!r}; write a number from 0 to 1"
        total += value
    if not several and abs(total - 1) > TOLERANCE:
        return (
            f"the probabilities in {columns[0]!r} to {columns[-1]!r} add up to {total:.3g} and not to 1; correct them"
        )
    return None


def of_row(fields: Mapping[str, Any], columns: Sequence[str], *, several: bool = False) -> list[float]:
    """Return the probabilities in `columns` of a row without a `problem`; of one label, they are normalised."""
    values = [_number(fields[column]) or 0.0 for column in columns]
    if several:
        return values
    total = sum(values)
    return [value / total for value in values]


def _number(value: object) -> float | None:
    """Return the finite number in a field; None if it contains none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def of_mappings(
    rows: Sequence[Mapping[str, float]], names: Sequence[str], *, several: bool = False
) -> list[list[float]]:
    """Return the probabilities of `names` in each of the mappings from label to probability.

    Raises:
        InputError: a mapping lacks a label or has an unknown one, or its values are not probabilities, or do
            not sum to 1 if a text has one label.
    """
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(
                f"probabilities[{i}] is not a mapping from labels to probabilities but {type(row).__name__}."
            )
        strange = sorted(set(map(str, row)) - set(names))
        if strange:
            raise InputError(f"probabilities[{i}] has the label {strange[0]!r}, which no training row has.")
        if lacking := next((name for name in names if name not in row), None):
            raise InputError(f"probabilities[{i}] has no probability of {lacking!r}; give one of each label.")
        if wrong := problem(row, names, several=several):
            raise InputError(f"probabilities[{i}]: {wrong}.".replace("column ", "the label ", 1))
    return [of_row(row, names, several=several) for row in rows]
