"""Training without the rows whose label is probably wrong, and what that does to accuracy.

Whether it helps hangs on the rows: of clean ones it drops those that teach most. So it is tried out: a part of the rows
is held out, the others are audited alone, and two models of them, one without their suspects, answer the part, in turn
for each part. An audit of all rows would not do: which rows it drops hangs on the labels of those that judge. Labels as
they are given are the measure, wrong ones as well: wrong at random, they cost both sides alike. What the training then
says of its own held-out rows is of the rows that are left, and flatters.

Shapes: R rows, N rows that judge.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from textcls.evaluation.comparison.paired import Bootstrap, Difference, numbered
from textcls.jobs import HERE
from textcls_training.audit import suspects
from textcls_training.audit.run import answered_twice
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Bools
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.pipeline.training_report import DroppedSuspects
from textcls_training.pipeline.trials import Fold, Trial, Trials, answered_labels, judging_folds, results

_BOTH: Final = ("with", "without")


def drop_suspects(
    given: LabelledTexts, config: TrainConfig, callback: Callback = NOBODY
) -> tuple[LabelledTexts, DroppedSuspects]:
    """Return the rows of `given` without those whose label is probably wrong, and what that does.

    A label all of whose rows are suspects keeps them.

    Args:
        given: rows of one label each.
        config: of the trainings.
        callback: told of progress.

    Raises:
        ConfigError: rows have several labels.
        InputError: nothing can be learned from the rows, or too little to judge.
    """
    config = replace(config, teacher=None)
    kept_R = _kept(given, config, callback)
    accuracy = _judged(given, config, callback)
    report = DroppedSuspects(rows=len(kept_R), dropped=int((~kept_R).sum()), accuracy=accuracy)
    return given.only(np.flatnonzero(kept_R).tolist()), report


def _kept(given: LabelledTexts, config: TrainConfig, callback: Callback) -> Bools:
    """Return which rows are no suspects, or all that their label has [R]."""
    answered = answered_twice(given, config, callback)
    label_R, found = answered.label_R, answered.both
    kept_R = np.ones(len(label_R), np.bool_)
    kept_R[suspects.find(found.probability_RC, label_R, found.judged_R).row_S] = False
    kept_C = np.bincount(label_R[kept_R], minlength=len(answered.names))
    return np.asarray(kept_R | (kept_C[label_R] == 0))


def _judged(given: LabelledTexts, config: TrainConfig, callback: Callback) -> Difference:
    """Return the accuracy of models with the suspects and without, on rows that neither they nor the audits know."""
    outer, folds, trials = judging_folds(given), list[Fold](), list[Trial]()
    for part, fold in enumerate(outer, 1):
        kept_R = _kept(given.only(fold.train.tolist()), config, callback)
        folds += [fold, Fold(fold.train[kept_R], fold.held_out)]
        trials += [Trial(f"{how} suspects, part {part}", config, len(trials) + i) for i, how in enumerate(_BOTH)]
    callback.phase("judging", sum(len(fold.held_out) for fold in folds))
    answered: dict[int, list[str]] = {}
    with HERE.hired(Trials(given, folds, answered_labels), len(trials)) as crew:
        for trial, labels in results(crew, trials):
            answered[trial.fold] = labels
            callback.step(len(labels))
    right = [given.labels[i] for fold in outer for i in fold.held_out.tolist()]
    before, after = ([label for i in range(side, len(folds), 2) for label in answered[i]] for side in range(2))
    names, (right_N, before_N, after_N) = numbered(right, before, after)
    return Bootstrap(right_N, before_N, after_N, len(names)).accuracy()
