"""Map the labels of rows to the names that a model has for them, in Python as in files."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from textcls.data.label_names import LabelNames
from textcls.data.rows import BadRows
from textcls.model.artifact import ModelInfo


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
