"""Training from Python, and what depends on it; both need the extra `textcls[train]` when they are called."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from textcls._util import optional_dependencies
from textcls.errors import InputError
from textcls.evaluation.data_quality.label_audit import LabelAudit
from textcls.model.classifier import Classifier, Text
from textcls.model.sequences import require_sequence

AUDIT: Final = "textcls_training.api:audit_labels"
# For one text: its label, or all its labels, or the probability of each.
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
        texts: the training texts: strings, or rows that all have the same text columns, such as `{"subject": ...,
            "body": ...}`. The model will read the columns of the first row, in its order.
        columns: the columns of rows beside the text, such as `["product", "price:number"]`: as category, number or
            date, which is detected if it is not given. Columns that do not help on held-out rows are left out.
        labels: the label of each text, a string: answers name labels by strings. If a text may have several labels, or
            none: for each text a list or a set of them, or a mapping from labels to probabilities.
        output: the ONNX file to write; it appears whole, or not at all.
        valid: validation rows, which choose epoch and temperature, instead of a part of `texts`.
        weights: how much each text counts, 0 or more; by default all count the same.
        rationales: human rationales for each text, as a column of `--rationale-column` may contain them.
        unlabelled: texts without labels. The `teacher` in `options` answers them, or else the model itself, and the
            model also learns from the answers if held-out rows show that it helps.
        probabilities: existing answers to `unlabelled`, in place of a teacher's: for each text a mapping from every
            label to its probability.
        state: a folder in which the training keeps what it needs to resume after a kill: the same call resumes from
            there, with the same resulting bytes. Once finished, it can be given as `from_state`.
        from_state: the `state` of a finished training, to which `texts` are new rows, possibly with new labels. Options
            that are not given are those of that training.
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
    """Return the texts whose labels are probably wrong, or incomplete: what `textcls check --labels` lists.

    Args:
        texts: the texts, or rows, as for `train`.
        labels: the label or labels of each, as for `train`.
        columns: the columns beside the text, as for `train`.
        options: the options of the trainings, as for `train`.

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
