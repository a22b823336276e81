"""Training from Python, and what takes trainings; the extra `textcls[train]` brings what they import when called."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from textcls._util import optional_dependencies
from textcls.errors import InputError
from textcls.evaluation.data_quality.label_audit import LabelAudit
from textcls.model.classifier import Classifier, Text
from textcls.model.sequences import require_sequence

AUDIT: Final = "textcls_training.api:audit_labels"
# Of a text: its label, or all its labels, or the probability of each.
Label = str | Collection[str] | Mapping[str, float]


def train(
    texts: Iterable[Text],
    labels: Iterable[Label],
    output: str | Path,
    *,
    valid: tuple[Iterable[Text], Iterable[Label]] | None = None,
    columns: Sequence[str] = (),
    weights: Iterable[float] | None = None,
    rationales: Iterable[object] | None = None,
    unlabelled: Iterable[Text] | None = None,
    probabilities: Iterable[Mapping[str, float]] | None = None,
    state: str | Path | None = None,
    from_state: str | Path | None = None,
    **options: Any,
) -> Classifier:
    """Train on `texts` and their `labels`, write the model to `output`, and return it.

    Args:
        texts: the training texts: strings, or rows with the same text columns each, such as `{"subject": ..., "body":
            ...}`. The columns of the first row, in its order, are those that the model will read.
        columns: the columns of rows beside the text, such as `["product", "price:number"]`: as category, number or
            date, which is detected if it is not given. What a column does not bring on held-out rows is left out.
        labels: the label of each, a string: answers name labels by strings. Where a text may have several labels, or
            none: a list or a set of them, or a mapping from labels to probabilities, of each text.
        output: the ONNX file to write; it appears whole, or not at all.
        valid: validation rows, which choose epoch and temperature, instead of a part of `texts`.
        weights: how much each text counts, 0 or more; all alike by default.
        rationales: human rationales of each text, as a column of `--rationale-column` may hold them.
        unlabelled: texts without labels. The `teacher` of `options` answers them, or else the model itself, and the
            model learns from the answers, too, if held-out rows say that it helps.
        probabilities: somebody's answers to `unlabelled`, in the place of a teacher's: of each text a mapping from
            every label to its probability.
        state: a folder in which the training keeps what is needed to go on after a kill: the same call goes on from
            there, to the same bytes. Finished, it is what `from_state` goes on from.
        from_state: the `state` of a finished training, to which `texts` are new rows, of new labels, too. Options that
            are not given are those of that training.
        options: those of `textcls train`, with an underscore for each hyphen, and with the same values: `epochs=3`,
            `size="small"`, `ngrams="3,5"` or `ngrams=(3, 5)`. None is the default.

    Raises:
        MissingExtraError: the packages for training are not installed.
        InputError: nothing can be learned from this.
        ConfigError: there is no such option, or no such value.
        SurroundingsError: `output` cannot be written.

    Examples:
        >>> texts, labels = textcls.read("tickets.csv")
        >>> classifier = textcls.train(texts, labels, "new.onnx", epochs=2)
        >>> "billing" in classifier.labels
        True
    """
    if not isinstance(output, str | Path):
        raise InputError(f"output is the name of the file to write, not {type(output).__name__}.")
    if valid is not None and not (isinstance(valid, tuple | list) and len(valid) == 2):
        raise InputError("valid is a pair, (texts, labels), of the rows that validate.")
    more = [(given, what) for given, what in ((unlabelled, "texts"), (probabilities, "mappings")) if given is not None]
    rows = ((texts, "texts"), (labels, "labels"), *zip(valid or (), ("texts", "labels"), strict=False))
    for given, what in (*rows, *more):
        require_sequence(given, what)
    found = optional_dependencies.load(optional_dependencies.TRAIN, "textcls.train")
    answered = {"unlabelled": unlabelled, "probabilities": probabilities}
    how = {"columns": columns, "state": state, "from_state": from_state}
    classifier: Classifier = found(
        texts, labels, output, valid=valid, weights=weights, rationales=rationales, **answered, **how, **options
    )
    return classifier


def audit_labels(
    texts: Iterable[Text], labels: Iterable[Label], *, columns: Sequence[str] = (), **options: Any
) -> LabelAudit:
    """Return the texts of which a label is probably wrong, or missing: what `textcls check --labels` lists.

    Args:
        texts: the texts, or rows, as of `train`.
        labels: the label of each, or its labels, likewise.
        columns: columns beside the text, likewise.
        options: the options of the trainings, as those of `train`.

    Raises:
        MissingExtraError: the packages for training are not installed.
        InputError: nothing can be learned from this.
        ConfigError: there is no such option, or no such value.

    Examples:
        >>> texts, labels = textcls.read("tickets.csv")
        >>> textcls.audit_labels(texts[:200], labels[:200]).rows
        200
    """
    for given, what in ((texts, "texts"), (labels, "labels")):
        require_sequence(given, what)
    found: LabelAudit = optional_dependencies.load(AUDIT, "textcls.audit_labels")(
        texts, labels, columns=columns, **options
    )
    return found
