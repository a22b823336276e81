"""Evaluate a model on labelled rows, as `textcls evaluate` and `textcls.evaluate` do."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from textcls._util.in_notebooks import InNotebooks
from textcls.data.given_labels import Labels, as_known, with_one_label
from textcls.errors import ConfigError
from textcls.evaluation import label_set_evaluation, metrics, selective_prediction
from textcls.evaluation.answers import answers
from textcls.evaluation.label_paths import PathEvaluation, evaluate_paths
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
from textcls.evaluation.label_thresholds import Goal
from textcls.evaluation.learned_rows import LearnedRows, unsuited_for_thresholds
from textcls.evaluation.metrics import ClassificationReport
from textcls.evaluation.selective_prediction import OperatingPoint
from textcls.evaluation.unknown_labels import unknown_labels
from textcls.model.classifier import Classifier, Text, require_classifier
from textcls.model.label_paths import LabelPaths
from textcls.model.prediction import checked_threshold


@dataclass(frozen=True, slots=True)
class Evaluation(InNotebooks):
    """The evaluation of a model on labelled rows.

    Attributes:
        report: the report on all rows, whether the model would abstain or not.
        unknown_labels: labels of the rows that the model does not know; each such row counts as an error.
        operating_point: how many rows are answered at the threshold, and how many of these correctly; None without one.
        target_precision: the precision that the threshold was chosen to reach on these rows; None if it was given.
        reached: whether it reaches it; if no threshold does, the one with the highest precision was chosen.
        paths: if labels are paths of a tree, how good the answers are at each level; None if that was not requested.
        learned: the approximate share of the rows that the model has learned from (`LearnedRows.share`).

    Examples:
        >>> found = textcls.evaluate(textcls.Classifier.load("tickets.onnx"), [("where is my parcel", "shipping")])
        >>> found.report.accuracy
        1.0
    """

    report: ClassificationReport
    unknown_labels: tuple[str, ...] = ()
    operating_point: OperatingPoint | None = None
    target_precision: float | None = None
    reached: bool = True
    paths: PathEvaluation | None = None
    learned: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as plain data."""
        found = self.report.as_json() | {"learned": self.learned}
        if self.paths is not None:
            found["paths"] = self.paths.as_json()
        if self.operating_point is not None:
            chosen = {"chosen": self.target_precision is not None, "reached": self.reached}
            found["abstaining"] = self.operating_point.as_json() | chosen
        return found


# A str is itself a collection of str; the first matching signature counts.
@overload
def evaluate(  # type: ignore[overload-overlap]
    classifier: Classifier,
    rows: Iterable[tuple[Text, str]],
    *,
    target_precision: float | None = None,
    target_recall: float | None = None,
    threshold: float | None = None,
    label_path: str | None = None,
) -> Evaluation: ...


@overload
def evaluate(
    classifier: Classifier,
    rows: Iterable[tuple[Text, Labels]],
    *,
    target_precision: float | None = None,
    target_recall: float | None = None,
    threshold: float | None = None,
) -> LabelSetEvaluation: ...


def evaluate(
    classifier: Classifier,
    rows: Iterable[tuple[Text, Any]],
    *,
    target_precision: float | None = None,
    target_recall: float | None = None,
    threshold: float | None = None,
    label_path: str | None = None,
) -> Evaluation | LabelSetEvaluation:
    """Evaluate `classifier` on texts and their expected labels: one each, or several if it may give several.

    Args:
        classifier: the model.
        rows: pairs of a text, or a row as `Classifier.predict` takes it, and its label, such as `zip(texts, labels)`;
            read once, and not kept. If the model may give several labels: pairs of a text and its labels, as a list, a
            set, or a mapping from labels to probabilities.
        target_precision: choose the lowest threshold at which this share of the answers is right; with several labels
            per text, the one of each label.
        target_recall: with several labels per text: choose for each label the highest threshold at which this share of
            its rows is found.
        threshold: evaluate the answers that are not below it; by default the model's own threshold, if it has one. With
            several labels per text: assign each from this probability on; by default from its own threshold on.
        label_path: the separator of the parts of labels that are paths of a tree, such as " > ": also report how good
            the answers are at each of its levels; by default that of the model's tree, if it has one.

    Raises:
        MissingExtraError: scikit-learn (with several labels per text) or SciPy (with a threshold) is not installed.
        ConfigError: a target and a threshold or two targets are given, or one that is not a share; or a target recall
            with one label per text; or a separator of paths, although labels are not paths or a text may have several.
        InputError: there are no rows, or they have several labels and the model gives one, or the reverse; or it knows
            no label of the rows.

    Examples:
        >>> rows = [("where is my parcel", "shipping"), ("my card was charged twice", "billing")]
        >>> textcls.evaluate(textcls.Classifier.load("tickets.onnx"), rows).report.accuracy
        1.0
    """
    require_classifier(classifier)
    if threshold is not None and (target_precision is not None or target_recall is not None):
        measure = "recall" if target_precision is None else "precision"
        raise ConfigError(f"A target {measure} chooses the threshold; give one of them, not both.")
    threshold = None if threshold is None else checked_threshold(threshold)
    if classifier.info.several:
        metrics.require()
        goal = Goal.of(target_precision, target_recall)
        if label_path is not None:
            raise ConfigError("Labels are read as paths where a text has one, and this model may give several.")
        of_sets = label_set_evaluation.evaluate(classifier, rows, goal=goal, threshold=threshold)
        _warn_of_promise(of_sets.learned, goal)
        return of_sets
    if target_recall is not None:
        raise ConfigError("A target recall is for models with several labels per text; this one gives one.")
    found = evaluate_labels(classifier, rows, target_precision, threshold, label_path)
    _warn_of_promise(found.learned, target_precision)
    return found


def _warn_of_promise(learned: float, target: object) -> None:
    """Warn if a threshold was chosen for a target on rows that the model has learned from."""
    if target is not None and (why := unsuited_for_thresholds(learned)) is not None:
        warnings.warn(why, stacklevel=3)


def evaluate_labels(
    classifier: Classifier,
    rows: Iterable[tuple[Text, Any]],
    target_precision: float | None,
    threshold: float | None,
    label_path: str | None,
) -> Evaluation:
    """Return the result of `evaluate` for a model with one label per text."""
    tree = classifier.tree if label_path is None else LabelPaths(classifier.labels, label_path)
    labelled = as_known(with_one_label(classifier.read_rows(rows)), classifier.info)
    return _evaluate_labels(classifier, labelled, target_precision, threshold, tree)


def _evaluate_labels(
    classifier: Classifier,
    rows: Iterable[tuple[str, str]],
    target_precision: float | None,
    threshold: float | None,
    tree: LabelPaths | None,
) -> Evaluation:
    names = classifier.labels
    learned = LearnedRows(classifier.info)
    probabilities, right = answers(classifier, learned.over(rows))
    unknown = unknown_labels(right, names, len(right), tree=tree)
    number = {name: i for i, name in enumerate([*names, *unknown])}
    labels = np.array([number[label] for label in right], np.int64)
    found = Evaluation(metrics.report(probabilities, labels, names, unknown), unknown, learned=learned.share)
    confidence, is_right = probabilities.max(1), probabilities.argmax(1) == labels
    threshold = classifier.info.threshold if threshold is None else threshold
    if target_precision is not None:
        point, reached = selective_prediction.choose(target_precision, confidence, is_right)
        found = replace(found, operating_point=point, target_precision=target_precision, reached=reached)
    elif threshold is not None:
        found = replace(found, operating_point=selective_prediction.at(threshold, confidence, is_right))
    if tree is None:
        return found
    return replace(found, paths=evaluate_paths(tree, probabilities, right, threshold, target_precision))
