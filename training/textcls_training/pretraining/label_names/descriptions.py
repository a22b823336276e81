"""Labels with words that describe them, read from a file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from textcls.errors import InputError, SurroundingsError
from textcls.model.labels import ALL_CHARACTERS, labels_problem

_AS_SPACES: Final = str.maketrans("_-/", "   ")
_ADVICE: Final = 'write one label per line, or JSON such as {"refunds": "money back refund"}'


def read_descriptions(path: Path) -> dict[str, str]:
    """Return the labels of the file at `path`, each with words that describe it: of a label alone those of its name.

    A file of JSON holds an object of labels with their words, any other one a label a line.

    Raises:
        InputError: the file does not hold such, or fewer than two labels.
        SurroundingsError: it cannot be read.
    """
    text = _text(path)
    found = _of_json(path, text) if path.suffix.lower() == ".json" else _of_lines(path, text)
    if wrong := labels_problem(tuple(found)):
        raise InputError(f"{path}: {wrong}; {_ADVICE}.")
    if len(found) < 2:
        raise InputError(f"{path} has one label, and at least two are needed; {_ADVICE}.")
    return found


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(ALL_CHARACTERS + 1)
        if len(data) > ALL_CHARACTERS:
            raise InputError(f"{path} has more than {ALL_CHARACTERS:,} bytes; {_ADVICE}.")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be read: {error.strerror}; {_ADVICE}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start:,}); {_ADVICE}.") from error


def _of_json(path: Path, text: str) -> dict[str, str]:
    try:
        found: Any = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}); {_ADVICE}.") from error
    if not isinstance(found, Mapping) or not all(isinstance(words, str) for words in found.values()):
        raise InputError(f"{path} must map labels to their words; {_ADVICE}.")
    return dict(found)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name appears twice")
    return found


def _of_lines(path: Path, text: str) -> dict[str, str]:
    labels = [line.strip() for line in text.splitlines() if line.strip()]
    if len(set(labels)) < len(labels):
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise InputError(f"{path}: the label {twice!r} appears twice; remove one.")
    return {label: words_of(label) for label in labels}


def words_of(label: str) -> str:
    """Return the words of a label's name."""
    return label.translate(_AS_SPACES)
