"""Labels that a program gives with texts: checked by kind of model, and read as the model has them, as in files."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from textcls.data.label_names import LabelNames
from textcls.data.rows import BadRows
from textcls.errors import InputError
from textcls.model.artifact import ModelInfo
from textcls.model.label_sets import LabelSet, of_python
from textcls.model.labels import is_missing
from textcls.model.sequences import Text_T, pairs

# The labels of a text: all of them, or the probability of each.
Labels = Collection[str] | Mapping[str, float]


@contextmanager
def warned() -> Iterator[BadRows]:
    """Warn, on exit, of labels that were read as others."""
    bad = BadRows()
    yield bad
    for sentence in bad.odd_rows():
        warnings.warn(sentence, stacklevel=3)


def as_known(rows: Iterable[tuple[Any, Any]], info: ModelInfo) -> Iterator[tuple[Any, Any]]:
    """Yield the rows with each label, or each label of a set, replaced by its name in the model."""
    names = LabelNames.of_models(info)
    with warned() as bad:
        for text, target in rows:
            yield text, names.target(target, bad)


def with_labels_if_known(
    rows: Iterable[tuple[Text_T, Any]], info: ModelInfo
) -> Iterator[tuple[Text_T, str | frozenset[str] | None]]:
    """Yield rows, each a text and its label or labels as the model has them, or None if they are not known.

    Raises:
        InputError: one of them is something else, or has several labels and the model gives one, or the reverse.
    """
    names = LabelNames.of_models(info)
    with warned() as bad:
        for i, (text, given) in enumerate(pairs(rows)):
            if is_missing(given):
                yield text, None
            elif info.several:
                yield text, present(names.target(label_set(given, i), bad))
            else:
                yield text, names.name(one_label(given, i), bad)


def is_label_set(label: object) -> bool:
    """Return whether a row has, or may have, several labels."""
    return isinstance(label, list | tuple | set | frozenset | Mapping)


def with_one_label(rows: Iterable[tuple[Text_T, Any]]) -> Iterator[tuple[Text_T, str]]:
    """Yield the rows for a model with one label per text.

    Raises:
        InputError: one of them is not such a pair, or has several labels, or one that is not a string.
    """
    for i, (text, label) in enumerate(pairs(rows)):
        yield text, one_label(label, i)


def one_label(label: object, row: int) -> str:
    """Return the label of a row.

    Raises:
        InputError: it is missing, or not a string, or there are several.
    """
    if is_label_set(label):
        raise InputError(f"Row {row} has labels in a {type(label).__name__}, and this model gives one label per text.")
    if is_missing(label):
        raise InputError(f"Row {row} has no label; leave it out.")
    if not isinstance(label, str):
        kind = type(label).__name__
        raise InputError(f"Row {row} has a label that is not a string but {kind}; give str(label).")
    return label


def label_set(labels: Labels, row: int) -> LabelSet:
    """Return the labels of a row with their probabilities.

    Raises:
        InputError: they are not labels.
    """
    if isinstance(labels, str):
        raise InputError(
            f"Row {row} has the string {labels!r} for a label, and this model may give several; write [{labels!r}]."
        )
    if not isinstance(labels, Mapping | Collection):
        raise InputError(f"Row {row} has a {type(labels).__name__} instead of a list of labels.")
    found = of_python(labels)
    if isinstance(found, str):
        raise InputError(f"The labels of row {row} {found}.")
    return found


def present(labels: LabelSet) -> frozenset[str]:
    """Return the labels of a row that count as present: those with a probability of at least a half."""
    return frozenset(name for name, share in labels.items() if share >= 0.5)
