"""Labels by their names: which names can be labels, their numbers, suggestions, and the differences of two models."""

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime, time
from difflib import get_close_matches
from numbers import Real
from typing import Final, NamedTuple

from textcls.errors import ConfigError

# A model file, each of its answers and its metrics contain the names of all labels.
MOST_LABELS: Final = 100_000
# If a text may have several labels: training keeps a probability of each label for each row.
MOST_SEVERAL: Final = 10_000
LABEL_CHARACTERS: Final = 1000
# Between the parts of labels that are paths of a tree, and between the columns of its levels.
BETWEEN_LEVELS: Final = " > "
ALL_CHARACTERS: Final = 10_000_000
# Most labels of a change that a sentence names.
_NAMED: Final = 5
# In messages about an unknown label: names to show, characters of each, and names to search for a similar one; limited,
# since requests to a service may contain such labels, too.
_SHOWN, _SHOWN_CHARACTERS, _COMPARED = 20, 100, 200
_PLAIN: Final = str.maketrans({"_": None, "-": None, "ä": "ae", "ö": "oe", "ü": "ue"})


def unpaired_surrogate(text: str) -> str | None:
    """Return the first unpaired surrogate of `text`, which has no UTF-8 form; None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return text[error.start]
    return None


def label_problem(label: str) -> str | None:
    """Return why `label` cannot be a label, as a clause to follow its place; None if it can."""
    if not label:
        return "is empty"
    if len(label) > LABEL_CHARACTERS:
        return f"has {len(label):,} characters; the maximum is {LABEL_CHARACTERS:,}"
    if surrogate := unpaired_surrogate(label):
        return f"holds {ascii(surrogate)[1:-1]}, half a character that has no UTF-8 form"
    return None


def is_missing(value: object) -> bool:
    """Return whether a value of a table is missing: None, NaN, or their equivalents in pandas."""
    nan = isinstance(value, Real) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def written(value: object) -> str:
    """Return the label in a cell, which may be a number or a truth value; empty if it is missing."""
    return "" if is_missing(value) else str(plain_day(value)).strip()


def plain_day(value: object) -> object:
    """Return a time at midnight as its date, as CSV has it; anything else unchanged."""
    return value.date() if isinstance(value, datetime) and value.time() == time() else value


def plain_name(label: str) -> str:
    """Return a form shared by labels that may be the same: without case, spaces, `_` and `-`, with umlauts as two
    letters; for a number its value.
    """
    try:
        return repr(float(label))
    except ValueError:
        return "".join(as_seen(label).casefold().translate(_PLAIN).split()) or label


def as_seen(label: str) -> str:
    """Return a label as a person sees it: in composed Unicode, unlike on macOS, and without zero-width characters."""
    if label.isascii():
        return label
    return unicodedata.normalize("NFC", "".join(sign for sign in label if unicodedata.category(sign) != "Cf"))


def spelling(label: str) -> str:
    """Return a form shared by labels that differ only in case and spaces."""
    return " ".join(as_seen(label).lower().split())


def as_known(label: str, known: Sequence[str]) -> str:
    """Return a label without surrounding spaces, or the first known one that looks the same."""
    if label in known:
        return label
    name = unicodedata.normalize("NFC", written(label))
    return name if name in known else next((one for one in known if as_seen(one) == as_seen(name)), name)


def labels_problem(labels: Sequence[str]) -> str | None:
    """Return why `labels` cannot be the labels of a model, in one clause; None if they can."""
    if not labels:
        return "there are no labels"
    if len(labels) > MOST_LABELS:
        return f"there are {len(labels):,} labels; the maximum is {MOST_LABELS:,}"
    for i, label in enumerate(labels):
        if wrong := label_problem(label):
            return f"label number {i} {wrong}"
    if len(set(labels)) < len(labels):
        return "two labels have the same name"
    if sum(map(len, labels)) > ALL_CHARACTERS:
        return f"the labels have more than {ALL_CHARACTERS:,} characters together"
    return None


def label_number(labels: Sequence[str], label: str, nodes: Iterable[str] = ()) -> int:
    """Return the number of a label; messages may also suggest `nodes`, which are above labels.

    Raises:
        ConfigError: there is no such label.
    """
    if not isinstance(label, str):
        raise ConfigError(f"A label is named by a string, not {label!r}.")
    if label in labels:
        return labels.index(label)
    if below := next((one for one in labels if one.startswith(f"{label}{BETWEEN_LEVELS}")), None):
        raise ConfigError(f"{label!r} is not a label but a level above some, such as {below!r}: name a label.")
    meant = f" (did you mean {near!r}?)" if (near := _meant([*labels, *nodes], label)) else ""
    shown = ", ".join(name[:_SHOWN_CHARACTERS] for name in labels[:_SHOWN])
    more = f" and {len(labels) - _SHOWN:,} more" if len(labels) > _SHOWN else ""
    raise ConfigError(f"The model has no label {label[:_SHOWN_CHARACTERS]!r}{meant}; its labels are {shown}{more}.")


def _meant(labels: Sequence[str], label: str) -> str | None:
    """Return a label with a similar spelling; None if there is none, or if the search would take too long."""
    if len(label) > _SHOWN_CHARACTERS:
        return None
    spelt = {name.lower(): name for name in reversed(labels)}
    near = get_close_matches(label.lower(), spelt, 1) if len(labels) <= _COMPARED else []
    near = [label.lower()] if label.lower() in spelt else near
    return spelt[near[0]] if near else None


class LabelChange(NamedTuple):
    """The difference between the labels of two models, each in the order of its model."""

    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_counted('added', self.added)}, {_counted('removed', self.removed)}"


def label_change(before: Sequence[str], after: Sequence[str]) -> LabelChange | None:
    """Return how the labels of two models differ; None if they are the same, in any order."""
    added, removed = frozenset(after).difference(before), frozenset(before).difference(after)
    if not added and not removed:
        return None
    return LabelChange(
        tuple(label for label in after if label in added), tuple(label for label in before if label in removed)
    )


def _counted(what: str, labels: Sequence[str]) -> str:
    named = "".join(f" {label!r}" for label in labels[:_NAMED])
    return f"{len(labels):,} {what}{named}{' ...' if len(labels) > _NAMED else ''}"
