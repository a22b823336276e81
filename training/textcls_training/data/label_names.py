"""The names of labels, and texts about them: with few rows, these are training texts as well."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from textcls._util.text_file import read_text
from textcls.data import read_labelled
from textcls.errors import InputError
from textcls.model.labels import ALL_CHARACTERS

ADVICE: Final = (
    "write a table with the columns text and label, a .txt file with one label per line, or a .json file such as "
    '{"refunds": "money back refund"}'
)
# Suffixes read as a table; files with other suffixes, except .json, contain one label per line.
TABLES: Final = frozenset({".csv", ".tsv", ".xlsx", ".jsonl", ".ndjson", ".parquet"})

_BETWEEN_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|[\s!-/:-@\[-`{-~]+")
# What is meaningful by itself: three letters of the Latin alphabet, or one of another.
_WORD: Final = re.compile(r"[A-Za-z]{3}|(?=[^\x00-\x7f])[^\W\d_]")


def words_of(label: str) -> str:
    """Return the words of a label's name: "card arrival" for `card_arrival`."""
    return " ".join(filter(None, _BETWEEN_WORDS.split(label)))


def texts_of_names(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each label with the words of its name as a text.

    Labels whose name has no words, such as 0 or B2, or has the words of another, `label_1`, are left out.
    """
    texts = {name: words_of(name) for name in names}
    words = {name: frozenset(filter(_WORD.search, text.lower().split())) for name, text in texts.items()}
    times = Counter(words.values())
    return [(name, text) for name, text in texts.items() if words[name] and times[words[name]] == 1]


def read_about_labels(path: Path) -> list[tuple[str, str]]:
    """Return texts about labels, each after its label: those of a table or a JSON object, or, for a file with one label
    per line, the words of the labels.

    Raises:
        InputError: there is no such file, it cannot be read, or it contains none of these.
    """
    suffix = path.suffix.lower()
    if suffix == ".json":
        return [*_of_json(path).items()]
    if suffix not in TABLES:
        return [(label, words_of(label)) for label in _labels_of_lines(path)]
    rows = read_labelled(path)
    return [*zip(rows.labels, rows.texts, strict=True)]


def _of_json(path: Path) -> dict[str, str]:
    try:
        found: Any = json.loads(read_text(path, ALL_CHARACTERS, "The file of names"), object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}); {ADVICE}.") from error
    if not isinstance(found, Mapping) or not all(isinstance(words, str) for words in found.values()):
        raise InputError(f"{path} must map labels to their words; {ADVICE}.")
    return dict(found)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name appears twice")
    return found


def _labels_of_lines(path: Path) -> list[str]:
    lines = read_text(path, ALL_CHARACTERS, "The file of names").splitlines()
    labels = [line.strip() for line in lines if line.strip()]
    if len(set(labels)) < len(labels):
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise InputError(f"{path}: the label {twice!r} appears twice; remove one.")
    return labels
