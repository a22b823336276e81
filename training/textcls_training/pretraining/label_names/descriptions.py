"""Labels with words that describe them, read from a file."""

from pathlib import Path

from textcls.errors import InputError
from textcls.model.labels import labels_problem
from textcls_training.data.label_names import ADVICE, read_about_labels


def read_descriptions(path: Path) -> dict[str, str]:
    """Return the labels of the file at `path`, each with all words that describe it.

    Raises:
        InputError: as in `read_about_labels`, or there are fewer than two labels.
        SurroundingsError: as in `read_about_labels`.
    """
    found: dict[str, str] = {}
    for label, words in read_about_labels(path):
        found[label] = f"{found[label]} {words}" if label in found else words
    if wrong := labels_problem(tuple(found)):
        raise InputError(f"{path}: {wrong}; {ADVICE}.")
    if len(found) < 2:
        raise InputError(f"{path} has one label, and at least two are needed; {ADVICE}.")
    return found
