"""Models of growing shares of the same rows, judged on rows that all of them leave out.

Shapes: S shares, from the smallest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from textcls.display.terminal.progress import Progress
from textcls.errors import InputError
from textcls.evaluation.comparison.figures import PairedFigures, figures_of
from textcls.evaluation.comparison.paired import Difference
from textcls.evaluation.comparison.sides import Labels
from textcls.jobs import HERE, Engine
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import part_of_rows
from textcls_training.pipeline.trials import Fold, Trial, Trials, judging_folds, results
from textcls_training.tuning.judging import answers, right_of

# Each share is twice the one before.
EIGHTHS: Final = (1, 2, 4, 8)
# A share with fewer rows says nothing.
LEAST_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Models of growing numbers of rows.

    Attributes:
        held_out: the number of rows that judge.
        rows: how many rows the models have learned from [S], averaged over the parts that are held out in turn.
        steps: each model compared with that of half its rows, which is the first side of the figures [S]; the first
            with itself.
    """

    held_out: int
    rows: Sequence[int]
    steps: Sequence[PairedFigures]

    def figures(self) -> dict[str, list[Difference]]:
        """Return the figures [S] by the names of measures, the first of which decides."""
        several = [] if self.steps[0].micro_f1 is None else [("micro-F1", "micro_f1")]
        named = [*several, ("accuracy", "accuracy"), ("macro-F1", "macro_f1")]
        return {name: [getattr(step, field) for step in self.steps] for name, field in named}

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        figures = {name.lower().replace("-", "_"): found for name, found in self.figures().items()}
        points = [
            {"rows": rows} | {name: found[i].as_json() for name, found in figures.items()}
            for i, rows in enumerate(self.rows)
        ]
        return {"held_out": self.held_out, "points": points}


def learning_curve(
    given: LabelledTexts, config: TrainConfig, progress: Progress, engine: Engine = HERE
) -> LearningCurve:
    """Return the quality of models of an eighth, a quarter, a half and all of the rows that are not held out.

    Args:
        given: rows with one label each, or several. Parts of them are held out in turn; with many rows, one part.
        config: how each model is trained.
        progress: notified of progress.
        engine: what trains; the result does not depend on it.

    Raises:
        InputError: the rows are too few, or a share of them cannot be trained on.
        SurroundingsError: a file cannot be written.
    """
    given.label_names()
    # A label with its own column need not be in each share.
    given = replace(given, names=())
    folds = judging_folds(given)
    shares = {
        count: [_share(given, fold, count) for fold in folds]
        for count in EIGHTHS
        if count * len(folds[0].train) >= EIGHTHS[-1] * LEAST_ROWS
    }
    if len(shares) < 2:
        raise InputError(f"{len(given.texts)} rows are too few to learn from half of them, and judge by others.")
    answered = _answers(given, shares, config, progress, engine)
    right = [label for fold in folds for label in right_of(given.only(fold.held_out.tolist()))]
    said = [[label for part in answered[count] for label in part] for count in shares]
    rows = [round(float(np.mean([len(fold.train) for fold in parts]))) for parts in shares.values()]
    return LearningCurve(len(right), rows, [figures_of(right, *two) for two in pairwise([said[0], *said])])


def _share(given: LabelledTexts, fold: Fold, count: int) -> Fold:
    """Return a fold that learns from this many eighths of the rows, including those of any smaller number."""
    part_R = part_of_rows(given.only(fold.train.tolist()), EIGHTHS[-1])
    return Fold(fold.train[part_R < count], fold.held_out)


def _answers(
    given: LabelledTexts, shares: Mapping[int, Sequence[Fold]], config: TrainConfig, progress: Progress, engine: Engine
) -> dict[int, list[Sequence[Labels]]]:
    """Return the answers of the models of each share for each held-out part."""
    folds = [fold for parts in shares.values() for fold in parts]
    keys = [(count, part) for count, parts in shares.items() for part in range(len(parts))]
    trials = [Trial(f"{count} of 8 parts, held out {part + 1}", config, i) for i, (count, part) in enumerate(keys)]
    found: dict[tuple[int, int], Sequence[Labels]] = {}
    progress.phase("Training", len(trials))
    with engine.hired(Trials(given, folds, answers), len(trials)) as crew:
        for trial, answered in results(crew, trials):
            found[keys[trial.fold]] = answered.labels
            progress.step()
    return {count: [found[count, part] for part in range(len(parts))] for count, parts in shares.items()}
