"""Training from Python: lists of texts and labels in, a classifier out. `textcls.train` leads here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textcls.classifier import Classifier
from textcls.errors import InputError
from textcls_training import rationales as marks
from textcls_training import run
from textcls_training.config import from_options
from textcls_training.run import Source


def train(
    texts: Sequence[str],
    labels: Sequence[str],
    output: str | Path,
    *,
    valid: tuple[Sequence[str], Sequence[str]] | None = None,
    rationales: Sequence[object] | None = None,
    **options: Any,
) -> Classifier:
    """Train on `texts` and their `labels`: what `textcls.train` says, whose errors it raises."""
    source = _source(texts, labels, "texts")
    if rationales is not None:
        if len(rationales) != len(source.texts):
            raise InputError(f"There are {len(texts)} texts and {len(rationales)} rationales; one a text is needed.")
        pairs = enumerate(zip(rationales, source.texts, strict=True))
        spans = [marks.parse(given, text, f"rationales[{i}]") for i, (given, text) in pairs]
        source = Source(texts=source.texts, labels=source.labels, rationales=spans)
    config = from_options(len(set(source.labels)), options)
    judges = None if valid is None else _source(*valid, "texts of valid")
    run.train(source, Path(output), config, valid=judges)
    return Classifier.load(output)


def _source(texts: Sequence[str], labels: Sequence[str], what: str) -> Source:
    if isinstance(texts, str) or isinstance(labels, str):
        raise InputError(f"The {what} and their labels are two sequences of strings, not one string.")
    texts, labels = list(texts), list(labels)
    if len(texts) != len(labels):
        raise InputError(f"There are {len(texts)} {what} and {len(labels)} labels; one label a text is needed.")
    for name, values in ((what, texts), ("labels", labels)):
        odd = next((i for i, value in enumerate(values) if not isinstance(value, str)), None)
        if odd is not None:
            raise InputError(f"{name.capitalize()}: number {odd} is not a string but {type(values[odd]).__name__}.")
    return Source(texts=texts, labels=labels)
