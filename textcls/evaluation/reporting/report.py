"""Make a report on a model from texts and their labels, as `textcls report` and `textcls.report` do."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, overload

from textcls.data.given_labels import Labels, as_known, label_set, present, with_one_label
from textcls.errors import ConfigError, InputError
from textcls.evaluation import metrics
from textcls.evaluation.learned_rows import LearnedRows
from textcls.evaluation.reporting.abstention import USUAL_COSTS, Costs
from textcls.evaluation.reporting.answers import AnsweredRows, RowSummary, answered
from textcls.evaluation.reporting.label_sets import LabelSetModelReport, label_set_report
from textcls.evaluation.reporting.model_report import ModelFile, ModelReport
from textcls.evaluation.reporting.one_label import OneLabelModelReport, one_label_report
from textcls.evaluation.reporting.set_answers import SetAnswers
from textcls.evaluation.reporting.slices import MISSING
from textcls.model.classifier import Classifier, Text, require_classifier
from textcls.model.columns import names_of_cells, unpack
from textcls.model.sequences import require_sequence


# A str is itself a collection of str; the first matching signature counts.
@overload
def report(  # type: ignore[overload-overlap]
    classifier: Classifier,
    rows: Iterable[tuple[Text, str]],
    *,
    columns: Mapping[str, Sequence[object]] | None = None,
    costs: Costs | None = None,
) -> OneLabelModelReport: ...


@overload
def report(
    classifier: Classifier,
    rows: Iterable[tuple[Text, Labels]],
    *,
    columns: Mapping[str, Sequence[object]] | None = None,
    costs: Costs | None = None,
) -> LabelSetModelReport: ...


def report(
    classifier: Classifier,
    rows: Iterable[tuple[Text, Any]],
    *,
    columns: Mapping[str, Sequence[object]] | None = None,
    costs: Costs | None = None,
) -> ModelReport:
    """Return all that labelled rows show about `classifier`: a `OneLabelModelReport`, or a `LabelSetModelReport` if it
    may give a text several labels.

    Args:
        classifier: the model.
        rows: pairs of a text, or a row as `Classifier.predict` takes it, and its label, such as `zip(texts, labels)`.
            If the model may give several labels: pairs of a text and its labels, as a list, a set, or a mapping from
            labels to probabilities; those from 1/2 on count.
        columns: further columns of the rows, such as their source, by whose values the model is evaluated as well.
        costs: the cost of a wrong answer, and of a row left to people; by default 10 and 1. Not with several labels.

    Raises:
        MissingExtraError: scikit-learn or SciPy is not installed.
        ConfigError: there are costs, and the model may give several labels per text.
        InputError: there are no rows, they have no label, or none that the model knows; a column has another length; or
            rows have several labels, and the model gives one, or the reverse.

    Examples:
        >>> rows = zip(*textcls.read("tickets.csv"))
        >>> found = textcls.report(textcls.Classifier.load("tickets.onnx"), rows)
        >>> found.rows
        875
    """
    metrics.require()
    require_classifier(classifier)
    if costs is not None and not isinstance(costs, Costs):
        raise ConfigError("costs are what textcls.Costs(error=10, abstention=1) makes.")
    if columns is not None and not isinstance(columns, Mapping):
        raise InputError(
            f"columns is a {type(columns).__name__}: pass a mapping from names to values, such as "
            "table[names].to_dict('list')."
        )
    model, learned = ModelFile.of(classifier), LearnedRows(classifier.info)
    if classifier.info.several:
        require_no_costs(costs)
        kept = SetAnswers(classifier.labels)
        whole = ((text, label_set(labels, i)) for i, (text, labels) in enumerate(classifier.read_rows(rows)))
        sets = ((text, present(labels)) for text, labels in learned.over(as_known(whole, classifier.info)))
        of_sets = _checked(answered(classifier, sets, lambda explanation, _: kept.add(explanation)), columns)
        found: ModelReport = label_set_report(classifier, model, of_sets, kept, _kinds(classifier, of_sets, columns))
    else:
        labelled = as_known(with_one_label(classifier.read_rows(rows)), classifier.info)
        of_labels = _checked(answered(classifier, learned.over(labelled), RowSummary.of), columns)
        kinds = _kinds(classifier, of_labels, columns)
        found = one_label_report(model, of_labels, kinds, USUAL_COSTS if costs is None else costs)
    return replace(found, learned=learned.share)


def require_no_costs(costs: object) -> None:
    """Refuse costs for a model that may give several labels per text.

    Raises:
        ConfigError: there are some.
    """
    if costs is not None:
        raise ConfigError(
            "Costs of an error and of abstaining are for models of one label per text, and this one may give several; "
            "leave them out."
        )


def _kinds(
    classifier: Classifier, found: AnsweredRows[Any, Any], columns: Mapping[str, Sequence[object]] | None
) -> dict[str, Sequence[object]]:
    """Return the columns whose values group the rows: those given, and the categories that the model reads."""
    beside = classifier.info.columns
    cells = [unpack(text, beside)[0] for text in found.texts] if beside else []
    names = names_of_cells(beside)
    own = {
        column.name: [row[names.index(column.name)] or MISSING for row in cells]
        for column in beside
        if column.kind == "category"
    }
    return {**own, **(columns or {})}


def _checked(found: AnsweredRows[Any, Any], columns: Mapping[str, Sequence[object]] | None) -> AnsweredRows[Any, Any]:
    for name, column in (columns or {}).items():
        require_sequence(column, f"values of {name!r}")
        if not isinstance(column, Sized):
            raise InputError(f"The values of {name!r} are a {type(column).__name__}, which is read once: pass a list.")
        if len(column) != len(found.texts):
            raise InputError(
                f"The column {name!r} has {len(column):,} values, and there are {len(found.texts):,} rows."
            )
    return found
