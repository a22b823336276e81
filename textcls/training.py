"""Training from Python, which the extra `textcls[train]` brings: PyTorch is imported when it is asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textcls._util import optional_dependencies
from textcls.classifier import Classifier
from textcls.sequences import require_sequence


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
        labels: the label of each, a string: answers name labels by strings.
        output: the ONNX file to write; it appears whole, or not at all.
        valid: validation rows, which choose epoch and temperature, instead of a part of `texts`.
        rationales: human rationales of each text, as a column of `--rationale-column` may hold them.
        options: those of `textcls train`, with an underscore for each hyphen, and with the same values: `epochs=3`,
            `size="small"`, `ngrams="3,5"` or `ngrams=(3, 5)`. None is the default.

    Raises:
        MissingExtraError: the packages for training are not installed.
        InputError: nothing can be learned from this.
        ConfigError: there is no such option, or no such value.
        SurroundingsError: `output` cannot be written.
    """
    for given, what in ((texts, "texts"), (labels, "labels"), *zip(valid or (), ("texts", "labels"), strict=False)):
        require_sequence(given, what)
    found = optional_dependencies.load(optional_dependencies.TRAIN, "textcls.train")
    classifier: Classifier = found(texts, labels, output, valid=valid, rationales=rationales, **options)
    return classifier
