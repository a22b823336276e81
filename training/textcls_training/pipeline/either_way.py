"""With several labels per text, fit one-vs-rest support vector machines or the gradient-trained model, whichever
answers held-out rows better.

Support vector machines rank labels with few rows better, and those of long texts; if rows are many and short, the
gradient-trained model is ahead (training/README.md). Machines train in a fraction of the time, so all rows are held out
in turn, as thresholds of rare labels require; gradient training is tried only on the first split, unless rows are few,
and is kept if its rows prefer it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from textcls_training.config.resolve import FEW_ROWS, ResolvedConfig
from textcls_training.data.dataset import Dataset, Split
from textcls_training.distillation.distil import Fitted
from textcls_training.fit.course import Course
from textcls_training.fit.cross_fit import cross_fit, fit
from textcls_training.fit.selection import better

STOPPED: Final = "Stopped: what is saved are the machines, which are complete; gradient steps were not tried."


def fit_either_way(
    dataset: Dataset,
    splits: Sequence[Split],
    classes: int,
    machines: ResolvedConfig,
    gradient: ResolvedConfig | None,
    course: Course,
    every_part: bool,
) -> Fitted:
    """Cross-fit support vector machines, and the gradient-trained model; return the one that held-out rows prefer.

    Args:
        dataset: all rows.
        splits: the train-valid splits.
        classes: number of labels.
        machines: the configuration of the support vector machines.
        gradient: the configuration of the gradient training; None if only machines are wanted.
        course: how the training runs; once there are machines, these are kept if it is to end early.
        every_part: whether the gradient training, too, is to hold out all rows in turn, however many there are.
    """
    selected, model = cross_fit(dataset, splits, classes, machines, course.within("one-vs-rest"))
    if selected.interrupted:
        return Fitted(selected, model, splits[0].train, machines, 1)
    kept = Fitted(selected, model, dataset, machines, len(splits))
    if gradient is None or not len(selected.validation):
        return kept
    course.stop.possible = True
    other = _by_gradient(kept, splits, classes, gradient, course, every_part)
    if course.stop.requested:
        course.callback.note(
            "Stopped: what is saved are the machines, which are complete; gradient steps were not tried."
        )
        return kept
    return kept if other is None else other


def _by_gradient(
    kept: Fitted,
    splits: Sequence[Split],
    classes: int,
    gradient: ResolvedConfig,
    course: Course,
    every_part: bool,
) -> Fitted | None:
    """Return the gradient-trained model, None if held-out rows do not prefer it, or a stop was requested."""
    dataset, first = kept.learned, splits[:1]
    if every_part or len(dataset.labels) < FEW_ROWS:
        selected, model = cross_fit(dataset, splits, classes, gradient, course)
        other = Fitted(
            selected, model, dataset, gradient.after_trial(has_vectors=model.vector_view is not None), len(splits)
        )
        return other if not course.stop.requested and better(selected, kept.selected) else None
    alone = replace(gradient, refit=False)
    selected, tried = cross_fit(dataset, first, classes, alone, course)
    if course.stop.requested or not better(selected, kept.selected):
        return None
    gradient = gradient.after_trial(has_vectors=tried.vector_view is not None)
    trainer = fit(dataset, classes, gradient, selected.epochs, course)
    return Fitted(selected, trainer.trained_model(selected.calibration.ensemble_weights), dataset, gradient, 1)
