"""A report on a model with one label per text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from textcls.evaluation import intervals, metrics
from textcls.evaluation.label_paths import PathEvaluation, evaluate_paths
from textcls.evaluation.metrics import ClassificationReport
from textcls.evaluation.reporting.abstention import Abstention, Costs, abstention
from textcls.evaluation.reporting.answers import AnsweredRows, RowSummary
from textcls.evaluation.reporting.errors import ErrorGroup, SureError, groups, surest
from textcls.evaluation.reporting.model_report import ModelFile, ModelReport
from textcls.evaluation.reporting.slices import slices
from textcls.evaluation.unknown_labels import unknown_labels
from textcls.model.label_paths import LabelPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class OneLabelModelReport(ModelReport):
    """Everything that labelled rows show about a model with one label per text.

    Attributes:
        scores: accuracy, F1 and calibration error over all rows, label by label, and the confusions.
        abstention: the effects of thresholds, and their cost.
        errors: wrong answers by the words behind them.
        surest_errors: the wrong answers of the highest confidence.
        paths: if labels are paths of a tree, how good the answers are at each level; None otherwise.

    Examples:
        >>> found = textcls.report(textcls.Classifier.load("tickets.onnx"), zip(*textcls.read("tickets.csv")))
        >>> found.accuracy.low < found.accuracy.value < found.accuracy.high
        True
    """

    scores: ClassificationReport
    abstention: Abstention
    errors: tuple[ErrorGroup, ...]
    surest_errors: tuple[SureError, ...]
    paths: PathEvaluation | None = None

    @property
    def confusions(self) -> tuple[tuple[str, str, int], ...]:
        """The right label, the answer, and the number of rows of each confusion; the most frequent first."""
        return self.scores.confusions

    def figures(self) -> dict[str, float]:
        """Return the figures by which runs are compared, by name."""
        loss = self.scores.cross_entropy
        return {
            "accuracy": self.accuracy.value,
            "accuracy_low": self.accuracy.low,
            "accuracy_high": self.accuracy.high,
            "macro_f1": self.macro_f1.value,
            "macro_f1_low": self.macro_f1.low,
            "macro_f1_high": self.macro_f1.high,
            "ece": self.scores.ece,
            "cost_per_row": self.abstention.costs.of(self.abstention.cheapest),
            "weak_slices": len(self.weak_slices),
        } | ({} if loss is None else {"cross_entropy": loss})

    def _own_json(self) -> dict[str, Any]:
        return {
            "accuracy_interval": [self.accuracy.low, self.accuracy.high],
            "abstention": self.abstention.as_json(),
            "errors": [_error_json(group) for group in self.errors],
            "surest_errors": [error._asdict() for error in self.surest_errors],
        } | ({} if self.paths is None else {"paths": self.paths.as_json()})


def _error_json(group: ErrorGroup) -> dict[str, Any]:
    return group._asdict() | {"of": dict(group.of), "examples": [asdict(example) for example in group.examples]}


def one_label_report(
    model: ModelFile, found: AnsweredRows[str, RowSummary], columns: Mapping[str, Sequence[object]], costs: Costs
) -> OneLabelModelReport:
    """Return the report.

    Args:
        model: the model file.
        found: the rows and its answers to them.
        columns: further columns of the rows, by whose values the model is evaluated as well.
        costs: the cost of a wrong answer, and of a row that is left to people.

    Raises:
        InputError: the model knows no label of the rows.
    """
    names, right, answers = model.info.labels, found.right, found.answers
    tree = LabelPaths.of(names, model.info.label_column)
    unknown = unknown_labels(right, names, len(right), tree=tree)
    number = {name: i for i, name in enumerate([*names, *unknown])}
    right_N = np.array([number[label] for label in right], np.int64)
    answer_N = np.array([number[answer.label] for answer in answers], np.int64)
    confidence, is_right = found.probabilities.max(1), right_N == answer_N
    macro_f1, label_f1 = intervals.f1_intervals(right_N, answer_N, len(number))
    return OneLabelModelReport(
        model=model,
        scores=metrics.report(found.probabilities, right_N, names, unknown),
        unknown_labels=unknown,
        accuracy=intervals.share(int(is_right.sum()), len(right)),
        macro_f1=macro_f1,
        label_f1=tuple(label_f1),
        abstention=abstention(confidence, is_right, costs, model.info.threshold),
        errors=groups(answers, right),
        surest_errors=surest(found.texts, answers, right, model.info.text_of),
        slices=slices([answer.read for answer in answers], is_right, columns),
        evidence=found.evidence,
        paths=None if tree is None else evaluate_paths(tree, found.probabilities, right, model.info.threshold),
    )
