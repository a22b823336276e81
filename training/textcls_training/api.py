"""Training from Python: lists of texts and labels in, a classifier out. `textcls.train` leads here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from textcls.classifier import Classifier
from textcls.errors import ConfigError, InputError
from textcls_training import pipeline
from textcls_training.config.settings import from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.probabilities import of_mappings
from textcls_training.data.rationales import Spans, parse
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts


def train(
    texts: Sequence[str],
    labels: Sequence[str],
    output: str | Path,
    *,
    valid: tuple[Sequence[str], Sequence[str]] | None = None,
    rationales: Sequence[object] | None = None,
    unlabelled: Sequence[str] | None = None,
    probabilities: Sequence[Mapping[str, float]] | None = None,
    **options: Any,
) -> Classifier:
    """Train on `texts` and their `labels`: what `textcls.train` says, whose errors it raises."""
    config = from_options(options)
    given = _labelled_texts(texts, labels, "texts")
    if rationales is not None:
        given = replace(given, rationales=_spans(rationales, given.texts))
    validation = None if valid is None else _labelled_texts(*valid, "texts of valid")
    more = None
    if unlabelled is not None:
        apart = [*given.texts, *(validation.texts if validation else ())]
        more = unlabelled_texts(unlabelled, given.label_names(), apart, config.unlabelled_rows, probabilities)
    elif probabilities is not None:
        raise ConfigError("The probabilities are of no texts; give these as unlabelled.")
    pipeline.train(given, Path(output), config, valid=validation, unlabelled=more)
    return Classifier.load(output)


def unlabelled_texts(
    texts: Sequence[str],
    names: Sequence[str],
    labelled: Sequence[str],
    limit: int,
    probabilities: Sequence[Mapping[str, float]] | None = None,
) -> UnlabelledTexts:
    """Return a sample of at most `limit` of unlabelled `texts`, with the probabilities of the labels `names`.

    Raises:
        InputError: the texts are no strings, or the probabilities are not theirs.
    """
    _check_strings(texts, "unlabelled texts", "")
    if probabilities is None:
        return UnlabelledTexts.sample(map(UnlabelledText, texts), limit, labelled)
    if len(probabilities) != len(texts):
        raise InputError(
            f"There are {len(texts)} unlabelled texts and {len(probabilities)} probabilities; one mapping a text is "
            "needed."
        )
    return UnlabelledTexts.sample(map(UnlabelledText, texts, of_mappings(probabilities, names)), limit, labelled)


def _labelled_texts(texts: Sequence[str], labels: Sequence[str], what: str) -> LabelledTexts:
    if isinstance(texts, str) or isinstance(labels, str):
        raise InputError(f"The {what} and their labels are two sequences of strings, not one string.")
    texts, labels = list(texts), list(labels)
    if len(texts) != len(labels):
        raise InputError(f"There are {len(texts)} {what} and {len(labels)} labels; one label a text is needed.")
    _check_strings(texts, what, "")
    _check_strings(labels, "labels", "; answers name labels by strings, so give str(label)")
    return LabelledTexts(texts=texts, labels=labels)


def _check_strings(values: Sequence[object], what: str, remedy: str) -> None:
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise InputError(f"{what.capitalize()}: number {i} is not a string but {type(value).__name__}{remedy}.")


def _spans(rationales: Sequence[object], texts: Sequence[str]) -> list[Spans]:
    if len(rationales) != len(texts):
        raise InputError(f"There are {len(texts)} texts and {len(rationales)} rationales; one a text is needed.")
    spans = []
    for i, (rationale, text) in enumerate(zip(rationales, texts, strict=True)):
        spans.append(parse(rationale, text, f"rationales[{i}]"))
    return spans
