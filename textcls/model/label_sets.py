"""Several labels per row: the label set in a cell, or what is wrong with the cell.

A label set contains the labels that apply, each with its probability, which is 1 for a label that is just listed. It is
empty for a row without labels. Each function takes the value of a cell and returns its set, or says what is wrong, as a
clause to follow the place of the cell ("line 3: the labels in column 'tags' ...").
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from textcls.model.labels import label_problem

LabelSet = Mapping[str, float]
# Returns the set of a cell's value, or what is wrong; None is a cell without a value.
Parse = Callable[[Any], "LabelSet | str"]
# What the column of a label may contain instead of a probability, in lower case, as programs, databases and people
# write it.
_APPLIES: Final = dict.fromkeys(("1", "true", "t", "yes", "x"), 1.0) | dict.fromkeys(("0", "false", "f", "no", ""), 0.0)
_PLAIN: Final = (str, int, float, list, tuple, dict, bytes)
NO_LABELS: Final[LabelSet] = {}


def of_names(names: Iterable[str]) -> LabelSet | str:
    """Return the set of the labels `names`, each once, ignoring white space around it."""
    found = {}
    for name in names:
        label = name.strip()
        if wrong := label_problem(label):
            return f"hold one that {wrong}"
        found[label] = 1.0
    return found


def separated(value: Any, separator: str) -> LabelSet | str:
    """Return the labels of a cell with `separator` between them; empty parts between separators are skipped."""
    if value is None:
        return NO_LABELS
    if isinstance(value, list | dict | bytes):
        return f"are {_kind(value)}, which has no separator; leave --label-separator out"
    return of_names(part for part in str(value).split(separator) if part.strip())


def structured(value: Any) -> LabelSet | str:
    """Return the labels of a list, or of a map from labels to probabilities."""
    if value is None or value == "":
        return NO_LABELS
    if isinstance(value, dict):
        return _of_pairs(value.items())
    if not isinstance(value, list):
        return f"are {_kind(value)}, where other rows have a list; write lists in all rows, [] for no label"
    # pyarrow gives a map as a list of pairs.
    if value and all(isinstance(item, tuple) for item in value):
        return _of_pairs(value)
    odd = next((item for item in value if not isinstance(item, str)), None)
    if odd is not None or None in value:
        return f"hold {_kind(odd)} in their list; labels in a list are strings"
    if any(not name.strip() for name in value):
        return "hold an empty string; write [] for a row without labels"
    return of_names(value)


def one_or_none(value: Any) -> LabelSet | str:
    """Return the label of a cell that contains at most one."""
    if isinstance(value, list | dict | bytes):
        return f"are {_kind(value)}, where the rows before have one label each; write all as lists or none"
    label = "" if value is None else str(value).strip()
    return of_names([label]) if label else NO_LABELS


def of_python(labels: Collection[str] | Mapping[str, float]) -> LabelSet | str:
    """Return the labels that a program gives: a collection of names in any order, or a mapping."""
    return structured(dict(labels) if isinstance(labels, Mapping) else sorted(labels, key=str))


def in_json(value: Any) -> LabelSet | str:
    """Return the labels of a cell that contains a JSON list, or a JSON object from labels to probabilities."""
    if not isinstance(value, str):
        return structured(value)
    if not value.strip():
        return NO_LABELS
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return 'are not JSON; write a list such as ["billing", "refund"]'
    if isinstance(found, list | dict):
        return structured(found)
    return f'are {_kind(found)} and no list; write a list such as ["billing", "refund"]'


def of_cell(value: Any, separator: str | None) -> LabelSet | str:
    """Return the labels of a cell that contains a list, a map or a string.

    Args:
        value: the value of the cell.
        separator: what separates the labels of a string, `json` if it is a JSON list; None if no cell has one.
    """
    if separator is None or isinstance(value, list | dict):
        return structured(value)
    return in_json(value) if separator == "json" else separated(value, separator)


def add(labels: dict[str, float], others: LabelSet) -> None:
    """Add labels to those of the same text, with the higher probability if a label is in both."""
    for name, share in others.items():
        labels[name] = max(share, labels.get(name, 0.0))


def of_words(value: Any) -> LabelSet | str:
    """Return the labels of a line of fastText: a string, which is one label or empty, or a list of several."""
    return structured([value] if isinstance(value, str) and value else value)


def _of_pairs(pairs: Iterable[tuple[Any, Any]]) -> LabelSet | str:
    found: dict[str, float] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            return f"hold {_kind(name)} as a label; labels are strings"
        label = name.strip()
        if wrong := label_problem(label):
            return f"hold one that {wrong}"
        if label in found:
            return f"hold {label!r} twice"
        share = probability(value)
        if isinstance(share, str):
            return f"say of {label!r}: {share}"
        if share > 0:
            found[label] = share
    return found


def probability(value: Any) -> float | str:
    """Return the probability of a label in a cell or field, or what is wrong with it.

    0 and 1, no and yes, false and true, f and t, and x are probabilities, and so are numbers between; no value is 0.
    """
    if value is None:
        return 0.0
    if not isinstance(value, _PLAIN):
        # Decimals of Parquet are converted by way of text.
        value = str(value)
    if isinstance(value, str):
        text = value.strip()
        if (known := _APPLIES.get(text.lower())) is not None:
            return known
        try:
            found = float(text)
        except ValueError:
            return f"{_shown(text)} is neither 0 or 1, nor false or true, nor no or yes, nor a probability"
    elif isinstance(value, int | float):
        found = float(value) if abs(value) <= 1 or math.isnan(value) else math.inf
    else:
        return f"{_kind(value)} is not a probability; write a number from 0 to 1"
    # False for `nan`.
    if 0 <= found <= 1:
        return found
    return f"{_shown(str(value).strip())} is not a probability; write a number from 0 to 1"


def weight(value: Any) -> float | str:
    """Return the weight of a row, or what is wrong with it."""
    advice = "write a number of 0 or more"
    if value is None or (isinstance(value, str) and not value.strip()):
        return f"is empty; {advice}, 1 for a row that counts as any other"
    if isinstance(value, bool | list | dict | bytes):
        return f"is {_kind(value)}; {advice}"
    try:
        # Decimals of Parquet are converted by way of text.
        found = float(value) if isinstance(value, int | float) else float(str(value))
    except (ValueError, OverflowError):
        return f"is {_shown(str(value))}; {advice}"
    if not math.isfinite(found) or found < 0:
        return f"is {_shown(str(value).strip())}; {advice}"
    return found


def _kind(value: Any) -> str:
    names = {list: "a list", dict: "an object", bytes: "bytes", bool: "a truth value", str: "a string", tuple: "a pair"}
    if value is None:
        return "null"
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")
