"""Texts about labels that are learned beside the rows: the words of label names if rows are few, or those of a file."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from textcls.data.label_names import LabelNames
from textcls.data.rows import BadRows
from textcls.errors import ConfigError, InputError
from textcls.model.labels import label_problem, labels_problem
from textcls.model.tokenizer import tokenize
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.dataset import Dataset
from textcls_training.data.label_names import ADVICE, read_about_labels, texts_of_names
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import Callback

# Names are learned for labels of at most this many rows, if they are this share of all. Measured: training/README.md.
RARE_ROWS: Final = 10
LEAST_RARE: Final = 0.25
# Rows, and letters of each, that reveal names in another script, which say nothing about the texts.
LOOKED_AT: Final = 200
NAMES_TEACH: Final = "Some labels have few rows, so the names of labels teach as well."
_IMPOSSIBLE: Final = (
    "label_names cannot be combined with prototypes, nor with a state that does not hold all rows; choose label_names "
    "none, and add the texts to the rows."
)


def texts_about_labels(
    given: LabelledTexts, names: Sequence[str], config: TrainConfig, callback: Callback, *, sampled: bool, new: bool
) -> list[tuple[str, str]]:
    """Return texts about labels to be learned, each with its label.

    Args:
        given: the rows.
        names: their labels.
        config: the configuration.
        callback: notified of what is learned, if the training is the user's own.
        sampled: whether the state of the training does not contain all rows.
        new: whether there may be labels that no row has; otherwise texts about these are left out.

    Raises:
        ConfigError: a file is requested, and cannot be used.
        InputError: the file cannot be read, or a label or a text of it cannot be used.
    """
    path = config.label_names
    impossible = sampled or config.head == "prototypes"
    if isinstance(path, Path):
        if impossible:
            raise ConfigError(_IMPOSSIBLE)
        return _of_file(path, given, names, callback, new=new)
    found = [] if path == "none" or impossible else _of_rare_labels(given, names)
    if found and new:
        callback.note(NAMES_TEACH)
    return found


def _of_rare_labels(given: LabelledTexts, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the names of labels with few rows, if there are many such labels."""
    rows = Counter(given.labels if given.label_sets is None else chain.from_iterable(given.label_sets))
    rare = {name for name in names if rows[name] <= RARE_ROWS}
    if len(rare) < LEAST_RARE * len(names):
        return []
    letters = [sign for text in given.texts[:LOOKED_AT] for sign in text[:LOOKED_AT] if sign.isalpha()]
    latin = 2 * sum(map(str.isascii, letters)) >= len(letters)
    return [(name, text) for name, text in texts_of_names(names) if name in rare and (latin or not text.isascii())]


def _of_file(
    path: Path, given: LabelledTexts, names: Sequence[str], callback: Callback, *, new: bool
) -> list[tuple[str, str]]:
    several, bad = given.label_sets is not None, BadRows()
    known = LabelNames.of_labels(names, given.label_column, given.renamed, several=several)
    found = [(known.name(label, bad), text) for label, text in read_about_labels(path)]
    if not found:
        raise InputError(f"{path} says nothing of any label; {ADVICE}.")
    for label, text in found:
        if why := label_problem(label):
            raise InputError(f"{path}: the label {label[:20]!r} {why}.")
        if not tokenize(text):
            raise InputError(f"{path}: what is said of {label!r} has no word; write some, or leave it out.")
    for sentence in bad.odd_rows():
        callback.note(f"{path}: {sentence}")
    used = {*names}
    if not new:
        return [(label, text) for label, text in found if label in used]
    if alone := sorted({label for label, _ in found} - used):
        if why := labels_problem(sorted({*used, *alone})):
            raise InputError(f"With those of {path}, {why}.")
        more = f" and {len(alone) - 1:,} more labels have" if len(alone) > 1 else " has"
        callback.note(f"{alone[0]!r}{more} no row: only texts of label_names teach them.")
    return found


def without_copies(taught: Dataset, labels: Sequence[str], given: LabelledTexts, valid: Dataset | None) -> Int64:
    """Return which of the rows and the texts after them are learned: a copy of a row, which may be held out, or of a
    validation row would give the answer away.

    Args:
        taught: the rows, followed by texts about labels.
        labels: the labels of these texts.
        given: the rows.
        valid: validation rows, if there are any.
    """
    rows, hashes = len(given.texts), taught.corpus.hash
    judging = hashes[:rows] if valid is None else np.concatenate([hashes[:rows], valid.corpus.hash])
    used = given.labels_in_use()
    copies = np.isin(hashes[rows:], judging) & np.array([label in used for label in labels])
    return np.flatnonzero(np.concatenate([np.ones(rows, np.bool_), ~copies]))
