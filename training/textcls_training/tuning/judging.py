"""The answers of a model for its held-out rows and their quality, with one label per row or several."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from textcls.api.tuning import Measure
from textcls.data.given_labels import present
from textcls.errors import ConfigError
from textcls.evaluation import metrics
from textcls.evaluation.comparison.paired import numbered
from textcls.evaluation.comparison.sides import Labels
from textcls.evaluation.label_set_evaluation import which_of
from textcls.evaluation.label_set_intervals import label_set_figures
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.trials import Trained, answered_labels, answered_sets


class HeldOutAnswers(NamedTuple):
    """The answers of a model for its held-out rows: the predicted labels, and their scores by measure."""

    labels: Sequence[Labels]
    figures: dict[str, float]


def measure_of(given: LabelledTexts, asked: Measure | None) -> Measure:
    """Return the measure to optimise: as asked for, by default accuracy, or micro-F1 with several labels per row.

    Raises:
        ConfigError: it is micro-F1, but each row has one label.
    """
    if asked == "micro_f1" and given.label_sets is None:
        raise ConfigError("Micro-F1 is for rows with several labels; of one label a row it is the accuracy.")
    return asked or ("accuracy" if given.label_sets is None else "micro_f1")


def right_of(given: LabelledTexts) -> Sequence[Labels]:
    """Return the label of each row, or its sorted labels: those with a probability of a half or more."""
    if given.label_sets is None:
        return given.labels
    return [tuple(sorted(present(labels))) for labels in given.label_sets]


def answers(trained: Trained) -> HeldOutAnswers:
    """Return the answers of a model for its held-out rows."""
    right = right_of(trained.held_out)
    if trained.held_out.label_sets is None:
        labels = answered_labels(trained)
        names, (found_N, right_N) = numbered(labels, trained.held_out.labels)
        report = metrics.report(np.eye(len(names))[found_N], right_N, names)
        return HeldOutAnswers(labels, {"accuracy": report.accuracy, "macro_f1": report.macro_f1})
    found = answered_sets(trained)
    every = sorted(set(chain(*right, *found)))
    figures = label_set_figures(which_of(right, every), which_of(found, every))
    exact, macro_f1, micro_f1 = (float(of[0]) for of in (figures.exact, figures.macro_f1, figures.micro_f1))
    return HeldOutAnswers(found, {"accuracy": exact, "macro_f1": macro_f1, "micro_f1": micro_f1})
