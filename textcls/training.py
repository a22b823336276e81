"""Training from Python, which the extra `textcls[train]` brings: PyTorch is imported when it is asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textcls import extras
from textcls.classifier import Classifier


def train(
    texts: Sequence[str],
    labels: Sequence[str],
    output: str | Path,
    *,
    valid: tuple[Sequence[str], Sequence[str]] | None = None,
    rationales: Sequence[object] | None = None,
    **options: Any,
) -> Classifier:
    """Train on `texts` and their `labels`, write the model to `output`, and return it.

    Args:
        texts: the training texts.
        labels: the label of each.
        output: the ONNX file to write; it appears whole, or not at all.
        valid: texts and labels that choose epoch and temperature, instead of a part of `texts`.
        rationales: what people marked in each text, as a column of `--rationale-column` may hold it.
        options: those of `textcls train`, with an underscore for each hyphen: `epochs=3`, `size="small"`; `ngrams` is
            a tuple of sizes.

    Raises:
        MissingExtraError: the packages for training are not installed.
        InputError: nothing can be learned from this.
        ConfigError: there is no such option, or no such value.
        SurroundingsError: `output` cannot be written.
    """
    found = extras.load(extras.TRAIN, "textcls.train")
    classifier: Classifier = found(texts, labels, output, valid=valid, rationales=rationales, **options)
    return classifier
