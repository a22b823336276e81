"""Training from Python: lists of texts and labels in, a classifier out; the implementation of `textcls.train`."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from textcls.data.column_kinds import cells_of_rows, columns_of, wanted_kinds
from textcls.display.terminal.console import notebook_console
from textcls.display.text import plural
from textcls.errors import ConfigError, InputError
from textcls.evaluation.data_quality.label_audit import LabelAudit
from textcls.explain import telling_columns
from textcls.model.classifier import Classifier, Text
from textcls.model.columns import KINDS, Column, Kind
from textcls.model.label_sets import LabelSet, of_python, weight
from textcls.model.labels import is_missing, label_problem
from textcls.model.sequences import as_list, require_sequence, require_texts
from textcls.model.text_columns import and_, text_of_row
from textcls_training.audit.run import audit
from textcls_training.config.needs import unmet
from textcls_training.config.settings import TrainConfig, from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.probabilities import of_mappings
from textcls_training.data.rationales import Spans, parse
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.fit.calibration import MIN_ROWS
from textcls_training.fit.progress import progress_on
from textcls_training.pipeline import training as pipeline
from textcls_training.pipeline.preparing import BALANCED
from textcls_training.pipeline.training_report import TrainReport

# The target of a text: its label, or all its labels, or the probability of each.
Label = str | Collection[str] | Mapping[str, float]


def train(
    texts: Sequence[Text],
    labels: Sequence[Label],
    output: str | Path,
    *,
    valid: tuple[Sequence[Text], Sequence[Label]] | None = None,
    columns: Sequence[str] = (),
    weights: Sequence[float] | None = None,
    rationales: Iterable[object] | None = None,
    unlabelled: Sequence[Text] | None = None,
    probabilities: Sequence[Mapping[str, float]] | None = None,
    state: str | Path | None = None,
    from_state: str | Path | None = None,
    **options: Any,
) -> Classifier:
    """Train on `texts` and their `labels` as described in `textcls.train`, with the same errors."""
    config = from_options(options)
    _check_needs(options, config, {"rationales": rationales, "unlabelled": unlabelled, "state": state})
    texts = texts if isinstance(texts, str) else as_list(texts)  # They are read twice.
    wanted = wanted_kinds(columns)
    read = text_columns_of(texts, list(wanted))
    given = labelled_rows(texts, labels, wanted, read)
    if weights is not None:
        given = replace(given, weights=checked_weights(weights, len(given.texts)))
    if rationales is not None:
        given = replace(given, rationales=_spans(rationales, given.texts))
    validation = None
    if valid is not None:
        valid_rows = valid[0] if isinstance(valid[0], str) else as_list(valid[0])
        valid_texts = joined(valid_rows, read, "Texts of valid")
        validation = labelled_texts(valid_texts, valid[1], "texts of valid", several=given.label_sets is not None)
        validation = with_columns(validation, valid_rows, wanted, given.columns)
        if not validation.texts:
            raise InputError("There are no rows in valid: give some, or leave it out.")
    more = None
    if unlabelled is not None:
        apart = [*given.texts, *(validation.texts if validation else ())]
        names, several = given.label_names(), given.label_sets is not None
        others = joined(unlabelled, read, "Unlabelled texts")
        more = unlabelled_texts(others, names, apart, config.unlabelled_rows, probabilities, several=several)
    elif probabilities is not None:
        raise ConfigError("probabilities needs the texts they belong to; pass those as unlabelled.")
    _warn_of(given, config)
    kept, earlier = (None if path is None else Path(path) for path in (state, from_state))
    with progress_on(notebook_console()) as callback:
        report = pipeline.train(
            given.counting(),
            Path(output),
            config,
            valid=validation,
            unlabelled=more,
            callback=callback,
            state=kept,
            from_state=earlier,
        )
    warn_if_not_calibrated(report)
    return Classifier.load(output)


def _check_needs(options: Collection[str], config: TrainConfig, arguments: Mapping[str, object]) -> None:
    mixing = [] if config.mixing == "none" else ["mixing"]
    given = [name for name, value in arguments.items() if value is not None]
    if (found := unmet(options, [*given, *mixing])) is not None:
        raise ConfigError(f"{found[0]} needs {found[1]}; pass that as well, or leave it out.")


def _warn_of(given: LabelledTexts, config: TrainConfig) -> None:
    """Warn of columns that give the label away, and of balanced weights where a text may have several labels."""
    said: list[str] = []
    if given.label_sets is not None:
        said = [BALANCED] if config.class_weight == "balanced" else []
    elif given.columns and given.labels:
        telling = telling_columns.telling(given.columns, given.cells, given.labels)
        said = [sentence for sentences in telling.values() for sentence in sentences]
    for sentence in said:
        warnings.warn(sentence, stacklevel=4)


def warn_if_not_calibrated(report: TrainReport) -> None:
    """Warn that probabilities are not to be trusted if too few rows were held out to fit them."""
    if not report.calibrated:
        rows = plural(report.held_out_rows, "validation row")
        warnings.warn(f"Not calibrated: {rows}, and {MIN_ROWS} are needed.", stacklevel=4)


def audit_labels(
    texts: Sequence[Text], labels: Sequence[Label], *, columns: Sequence[str] = (), **options: Any
) -> LabelAudit:
    """Return the texts whose label is probably wrong, as described in `textcls.audit_labels`, with the same errors."""
    texts = texts if isinstance(texts, str) else as_list(texts)
    wanted = wanted_kinds(columns)
    given = labelled_rows(texts, labels, wanted, text_columns_of(texts, list(wanted)))
    with progress_on(notebook_console()) as callback:
        return audit(given, from_options(options), callback)


def labelled_rows(
    texts: Sequence[Text],
    labels: Sequence[Label],
    wanted: Mapping[str, Kind | None],
    text_columns: tuple[str, ...] | None,
) -> LabelledTexts:
    """Return texts, or rows with their text columns and the `wanted` other columns, with their labels."""
    given = labelled_texts(joined(texts, text_columns, "Texts"), labels, "texts")
    if text_columns is not None:
        _check_leak(texts, given, text_columns)
        given = replace(given, text_columns=text_columns)
    return with_columns(given, texts, wanted)


def _check_leak(rows: Sequence[Any], given: LabelledTexts, columns: Sequence[str]) -> None:
    """Refuse rows that contain their labels, which a model would read as text."""
    if len(set(given.labels)) < 2:
        return
    for name in columns:
        if all(row[name] == label for row, label in zip(rows, given.labels, strict=True)):
            raise InputError(f"Texts: the column {name!r} holds the labels themselves; leave it out of the rows.")


def with_columns(
    given: LabelledTexts, rows: Sequence[Any], wanted: Mapping[str, Kind | None], columns: Sequence[Column] = ()
) -> LabelledTexts:
    """Return labelled texts with the contents of the other columns.

    Args:
        given: the texts.
        rows: the rows they came from; a row may lack a column.
        wanted: the columns, with their kinds if specified; none for none.
        columns: how they are read; if empty, that is found out.
    """
    if not wanted:
        return given
    values = {name: [row.get(name) for row in rows] for name in wanted}
    columns = tuple(columns) or columns_of(wanted, values, given.text_columns)
    return replace(given, columns=columns, cells=cells_of_rows(columns, values))


def text_columns_of(texts: Sequence[Text], beside: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Return the columns of the text of rows, in the order of the first row; None if texts are strings.

    Raises:
        InputError: a column name is not a string, or there is none; or a row has a different one; or columns `beside`
            the text need rows, or are in none of them.
    """
    if isinstance(texts, str | bytes) or not isinstance(first := next(iter(texts), None), Mapping):
        if beside:
            raise InputError(f"The columns {and_(beside)} need rows, such as {{'text': ..., {beside[0]!r}: ...}}.")
        return None
    if strange := next((name for name in beside if not any(name in row for row in texts)), None):
        name, colon, kind = strange.rpartition(":")
        said = f", and {kind!r} is not a kind of one ({and_(KINDS)})" if colon and name in first else ""
        raise InputError(f"No row has the column {strange!r}{said}; the first has {and_(list(map(str, first)))}.")
    columns = tuple(name for name in first if name not in beside)
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise InputError("Texts: number 0 is a row without a text column that has a name.")
    for i, row in enumerate(texts):
        if isinstance(row, Mapping) and (more := [name for name in row if name not in columns and name not in beside]):
            raise InputError(
                f"Texts: number {i} has {more[0]!r}, and the first row has not: give each row the same text columns."
            )
    return columns


def joined(texts: Any, columns: tuple[str, ...] | None, what: str) -> Any:
    """Return texts as they are, or, for rows, the texts in their columns."""
    if columns is None or texts is None:
        return texts
    found = []
    for i, row in enumerate(texts):
        if not isinstance(row, Mapping):
            raise InputError(f"{what}: number {i} is a {type(row).__name__}, and others are rows of {and_(columns)}.")
        found.append(text_of_row(row, columns, f"{what}: number {i}"))
    return found


def unlabelled_texts(
    texts: Sequence[str],
    names: Sequence[str],
    labelled: Sequence[str],
    limit: int,
    probabilities: Sequence[Mapping[str, float]] | None = None,
    *,
    several: bool = False,
) -> UnlabelledTexts:
    """Return a sample of at most `limit` of unlabelled `texts`, with the probabilities of the labels `names`.

    They sum to 1, unless a text may have `several` labels.

    Raises:
        InputError: the texts are not strings, or the probabilities do not match them.
    """
    require_texts(texts, "unlabelled texts")
    texts = list(texts)
    _check_strings(texts, "unlabelled texts")
    probabilities = None if probabilities is None else list(probabilities)
    if probabilities is None:
        return UnlabelledTexts.sample(map(UnlabelledText, texts), limit, labelled)
    if len(probabilities) != len(texts):
        raise InputError(
            f"There are {len(texts)} unlabelled texts and {len(probabilities)} probabilities; give one mapping "
            "per text."
        )
    found = of_mappings(probabilities, names, several=several)
    return UnlabelledTexts.sample(map(UnlabelledText, texts, found), limit, labelled)


def labelled_texts(
    texts: Sequence[str], labels: Sequence[Label], what: str, *, several: bool | None = None
) -> LabelledTexts:
    """Return `texts` with their labels; messages call them `what`.

    Args:
        texts: the texts.
        labels: the label of each, or its labels: names, or a mapping from names to probabilities.
        what: what they are called.
        several: whether each has labels, or a label; None to decide by the first that is not a string.

    Raises:
        InputError: these are not texts with their labels.
    """
    if isinstance(texts, str) or isinstance(labels, str):
        raise InputError(f"The {what} and their labels are two sequences of strings, not one string.")
    texts, labels = as_list(texts), as_list(labels)
    if len(texts) != len(labels):
        raise InputError(f"There are {len(texts)} {what} and {len(labels)} labels; give one label per text.")
    _check_strings(texts, what)
    if several is None:
        several = any(isinstance(label, Collection) and not isinstance(label, str | bytes) for label in labels)
    # The texts of `valid` come with the labels of `valid`.
    read, of = (_label_set if several else _label), f"Labels{what.removeprefix('texts')}"
    found: list[Any] = [read(label, of, i) for i, label in enumerate(labels)]
    return LabelledTexts(texts=texts, label_sets=found) if several else LabelledTexts(texts=texts, labels=found)


def _label(given: object, of: str, i: int) -> str:
    """Return the label of text `i` as when reading files: without the space around it."""
    if is_missing(given):
        raise InputError(f"{of}: number {i} is missing; leave out what has no label.")
    if not isinstance(given, str):
        kind = type(given).__name__
        raise InputError(
            f"{of}: number {i} is not a string but {kind}; answers name labels by strings, so give str(label)."
        )
    label = given.strip()
    if wrong := label_problem(label):
        raise InputError(f"{of}: number {i} {wrong}.")
    return label


def _label_set(labels: Label, of: str, i: int) -> LabelSet:
    """Return the labels of text `i` with their probabilities."""
    if isinstance(labels, str):
        raise InputError(f"{of}: number {i} is the string {labels!r}, where others are lists; write [{labels!r}].")
    if not isinstance(labels, Mapping | Collection):
        raise InputError(f"{of}: number {i} is of type {type(labels).__name__}, not a list of labels.")
    found = of_python(labels)
    if isinstance(found, str):
        raise InputError(f"{of}: those of number {i} {found}.")
    return found


def checked_weights(weights: Sequence[float], rows: int) -> list[float]:
    """Return the weights of rows as plain numbers.

    Raises:
        InputError: there is not one per row, one is not a number of at least 0, or all are 0.
    """
    require_sequence(weights, "weights")
    weights = as_list(weights)
    if len(weights) != rows:
        raise InputError(f"There are {rows} texts and {len(weights)} weights; give one per text.")
    checked = []
    for i, given in enumerate(weights):
        found = weight(given.item() if hasattr(given, "item") else given)
        if isinstance(found, str):
            raise InputError(f"Weights: number {i} {found}.")
        checked.append(found)
    return checked


def _check_strings(values: Sequence[object], what: str) -> None:
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise InputError(f"{what.capitalize()}: number {i} is not a string but {type(value).__name__}.")


def _spans(rationales: Iterable[object], texts: Sequence[str]) -> list[Spans]:
    require_sequence(rationales, "rationales")
    rationales = as_list(rationales)
    if len(rationales) != len(texts):
        raise InputError(f"There are {len(texts)} texts and {len(rationales)} rationales; one a text is needed.")
    spans = []
    for i, (rationale, text) in enumerate(zip(rationales, texts, strict=True)):
        spans.append(parse(rationale, text, f"rationales[{i}]"))
    return spans
