"""Evaluate a model that may give several labels on labelled rows."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls._util.in_notebooks import InNotebooks
from textcls.data.given_labels import Labels, as_known, label_set, present
from textcls.errors import InputError
from textcls.evaluation import label_set_metrics
from textcls.evaluation.answers import answers
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.label_thresholds import EXPECTED_ROWS, Goal, counted, reaching
from textcls.evaluation.learned_rows import LearnedRows
from textcls.evaluation.unknown_labels import names_of, unknown_labels
from textcls.model.classifier import Classifier, Text

# If fewer rows have a label, what a threshold reaches on them is a matter of luck.
FEW_ROWS: Final = 20


class ChosenThresholds(NamedTuple):
    """Thresholds that were chosen on labelled rows.

    Attributes:
        thresholds: the thresholds of each label.
        few: numbers of the labels that fewer than `FEW_ROWS` rows have, for which probabilities count as well.
        unreached: numbers of the labels for which no threshold reaches the goal; probabilities alone decide on them.
    """

    thresholds: tuple[float, ...]
    few: tuple[int, ...]
    unreached: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LabelSetEvaluation(InNotebooks):
    """The evaluation of a model that may give several labels.

    Attributes:
        report: the report on all rows, at the requested or chosen thresholds, or else those of the model.
        unknown_labels: labels of the rows that the model does not know, and never assigns.
        goal: what the thresholds were chosen to reach on these rows; None if they were not chosen.
        few: labels that fewer than `FEW_ROWS` rows have: their thresholds rely on their probabilities as well.
        unreached: labels for which no threshold reaches the goal: they are assigned from the probability that promises
            it.
        learned: the approximate share of the rows that the model has learned from (`LearnedRows.share`).

    Examples:
        >>> rows = [("my card was charged twice", ["billing"]), ("hello", [])]
        >>> found = textcls.evaluate(textcls.Classifier.load("tags.onnx"), rows)
        >>> found.as_json()["rows"]
        2
    """

    report: LabelSetReport
    unknown_labels: tuple[str, ...] = ()
    goal: Goal | None = None
    few: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    learned: float = 0.0

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold of each label that the model knows, in its order."""
        known = len(self.report.labels) - len(self.unknown_labels)
        return tuple(label.threshold for label in self.report.labels[:known])

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as plain data."""
        found = self.report.as_json() | {"unknown_labels": list(self.unknown_labels), "learned": self.learned}
        if self.goal is not None:
            asked = {"measure": self.goal.measure, "share": self.goal.share}
            found["thresholds"] = asked | {"few_rows": list(self.few), "unreached": list(self.unreached)}
        return found


def evaluate(
    classifier: Classifier,
    rows: Iterable[tuple[Text, Labels]],
    *,
    goal: Goal | None = None,
    threshold: float | None = None,
) -> LabelSetEvaluation:
    """Evaluate `classifier` on texts and the labels that they should get.

    Args:
        classifier: a model that may give several labels.
        rows: pairs of a text and its labels, names or a mapping from names to probabilities; those from 1/2 on count.
        goal: choose the threshold of each label that reaches it on these rows.
        threshold: assign each label from this probability on; by default the model's own thresholds are used.

    Raises:
        InputError: there are no rows; or one has a string in the place of labels, or labels that are not strings; or
            the model knows none of them.
    """
    learned = LearnedRows(classifier.info)
    sets = ((text, label_set(labels, i)) for i, (text, labels) in enumerate(classifier.read_rows(rows)))
    probabilities, found = answers(classifier, learned.over(as_known(sets, classifier.info)))
    names = classifier.labels
    gold, unknown = indicators(list(map(present, found)), names)
    chosen = None
    thresholds: Sequence[float] = classifier.info.thresholds or ()
    if threshold is not None:
        thresholds = (threshold,) * len(names)
    elif goal is not None:
        chosen = choose(goal, probabilities, gold[:, : len(names)])
        thresholds = chosen.thresholds
    report = label_set_metrics.report(probabilities, gold, thresholds, names, unknown)
    if chosen is None:
        return LabelSetEvaluation(report, unknown, learned=learned.share)
    few, unreached = (tuple(names[i] for i in numbers) for numbers in (chosen.few, chosen.unreached))
    return LabelSetEvaluation(report, unknown, goal, few, unreached, learned.share)


def choose(goal: Goal, probabilities: NDArray[np.floating[Any]], gold: NDArray[np.bool_]) -> ChosenThresholds:
    """Return the threshold of each label that reaches a goal on rows.

    A label of n rows, fewer than `FEW_ROWS`, partly counts as its probabilities expect, with weight `EXPECTED_ROWS` /
    (`EXPECTED_ROWS` + n). If no threshold reaches the goal, the probability that promises it is the threshold.

    Args:
        goal: what is to be reached.
        probabilities: calibrated probabilities [rows, labels].
        gold: which labels each row has [rows, labels].
    """
    thresholds, few, unreached = [], [], []
    for i, rows in enumerate(gold.sum(0).tolist()):
        expected = EXPECTED_ROWS / (EXPECTED_ROWS + rows) if rows < FEW_ROWS else 0.0
        found = reaching(goal, probabilities[:, i], counted(probabilities[:, i], gold[:, i], expected))
        thresholds.append(goal.promised if found is None else found)
        few += [i] * (rows < FEW_ROWS)
        unreached += [i] * (found is None)
    return ChosenThresholds(tuple(thresholds), tuple(few), tuple(unreached))


def few_rows_sentence(few: Sequence[str]) -> str:
    """State which labels have fewer than `FEW_ROWS` rows, if thresholds were chosen."""
    return f"Under {FEW_ROWS} rows have {names_of(few)}: there the threshold rests on the probabilities as well."


def indicators(sets: Sequence[Collection[str]], names: Sequence[str]) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Return which labels each row has [rows, labels], the model's and then those it does not know, and the latter.

    Args:
        sets: the labels of each row.
        names: the model's.

    Raises:
        InputError: there are no labels, or the model knows none of them.
    """
    if not any(sets):
        none = "The row has no label" if len(sets) == 1 else f"None of the {len(sets):,} rows has a label"
        raise InputError(f"{none}: is that the column of the labels?")
    unknown = unknown_labels(set().union(*sets), names, len(sets))
    return which_of(sets, [*names, *unknown]), unknown


def which_of(sets: Sequence[Collection[str]], names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which of the names each row has [rows, names]; other labels are ignored."""
    number = {name: i for i, name in enumerate(names)}
    found = np.zeros((len(sets), len(number)), np.bool_)
    for row, labels in enumerate(sets):
        found[row, [number[name] for name in labels if name in number]] = True
    return found
