"""Labels of rows that a model does not know: such rows count as errors, and if all are unknown, there is a mistake."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from textcls.errors import InputError
from textcls.evaluation.data_quality.joint_labels import JSON, joins
from textcls.model.label_paths import LabelPaths
from textcls.model.labels import BETWEEN_LEVELS, plain_name

# The number of labels that a sentence names.
_NAMED: Final = 8
_LONGEST: Final = 60


def unknown_labels(
    right: Iterable[str],
    known: Sequence[str],
    rows: int,
    *,
    knows: str = "the model knows",
    what: str = "model",
    tree: LabelPaths | None = None,
) -> tuple[str, ...]:
    """Return which labels of rows the model does not know, in the order of their names.

    Args:
        right: the labels of all rows.
        known: the labels of the model.
        rows: the number of rows.
        knows: the owner of these labels, for the message.
        what: what may be the wrong one in that case, likewise.
        tree: the tree of the model's labels, if they are paths.

    Raises:
        InputError: the model knows none of them, nor a node of their paths.
    """
    given = set(right)
    unknown = tuple(sorted(given - set(known)))
    if given and len(unknown) == len(given) and not (tree is not None and any(map(tree.knows, given))):
        none = "The row has no label" if rows == 1 else f"None of the {rows:,} rows has a label"
        said = f"{none} that {knows}, but {names_of(unknown, known)}, and {knows} {names_of(known)}"
        joined = _joined(unknown, known)
        raise InputError(
            f"{said}. {joined}" if joined else f"{said}: is that the column of the labels, and the right {what}?"
        )
    return unknown


def unknown_labels_sentence(unknown: Sequence[str], known: Sequence[str], who: str = "The model") -> str:
    """State which labels of the rows the model does not know, and which of its own may be meant."""
    above = [one for one in unknown if any(label.startswith(f"{one}{BETWEEN_LEVELS}") for label in known)]
    ends = Counter(label.rpartition(BETWEEN_LEVELS)[2] for label in known if BETWEEN_LEVELS in label)
    ambiguous = [one for one in unknown if one not in above and ends[one] > 1]
    others = [one for one in unknown if one not in above and one not in ambiguous]
    found = []
    if above:
        stand = "stands" if len(above) == 1 else "stand"
        found.append(
            f"{names_of(above)} {stand} above labels of the model: its answers are labels, so that such rows count as "
            "errors, except level by level."
        )
    if ambiguous:
        are = "is the last part" if len(ambiguous) == 1 else "are the last parts"
        found.append(
            f"{names_of(ambiguous)} {are} of several labels: rows that do not give the whole path count as errors."
        )
    if others:
        found.append(f"{who} does not know {names_of(others, known)}: rows with such labels count as errors.")
    return " ".join(found)


def never_assigned_sentence(unknown: Sequence[str], known: Sequence[str], who: str = "The model") -> str:
    """State which labels of the rows a multi-label model does not know, and which of its own may be meant."""
    said = f"{who} does not know {names_of(unknown, known)}, and so never assigns such labels."
    return f"{said} {_joined(unknown, known)}".rstrip()


def _joined(unknown: Sequence[str], known: Sequence[str]) -> str:
    """Say how labels are to be read if unknown ones are several known ones in a cell; return nothing otherwise."""
    sign = joins(unknown, known)
    if sign is None:
        return ""
    asked = sign if sign == JSON else repr(sign)
    return f"These are known labels, several in a cell: read them with --label-separator {asked}."


def names_of(labels: Sequence[str], known: Sequence[str] = ()) -> str:
    """Return labels as a sentence names them, each with the known one that may be meant, such as `1` for `1.0`."""
    shown = [_with_meant(label, known) for label in labels[:_NAMED]]
    more = len(labels) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more label{'s' * (more != 1)}" if more else "")


def _with_meant(label: str, known: Sequence[str]) -> str:
    meant = next((one for one in known if plain_name(one) == plain_name(label)), None)
    return _quoted(label) if meant is None else f"{_quoted(label)} (did you mean {_quoted(meant)}?)"


def _quoted(label: str) -> str:
    return repr(label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "\u2026")
