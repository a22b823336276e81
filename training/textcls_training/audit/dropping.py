"""Training without the rows whose label is probably wrong, and what that does to accuracy.

Whether it helps hangs on the rows: of clean ones it drops those that teach most. So models that have learned without
the suspects answer all rows, suspects or not, each a part that it has not seen, and are compared with those that have
learned from all. Labels as they are given are the measure, wrong ones as well: wrong at random, they cost both sides
alike. What the training itself then says of its held-out rows is of the rows that are left, and flatters.

Shapes: R rows, C labels.
"""

from dataclasses import replace

import numpy as np

from textcls.comparison.paired import Bootstrap
from textcls_training.audit import held_out, suspects
from textcls_training.audit.run import AnsweredTwice, answered_twice
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Bools
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.training_report import DroppedSuspects


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
        InputError: nothing can be learned from the rows.
    """
    config = replace(config, teacher=None)
    answered = answered_twice(given, config, callback)
    kept_R = _kept(answered)
    callback.phase("without suspects", len(kept_R))
    without = held_out.answer(given, answered.names, config, learned_R=kept_R, told=callback.step)
    before_R, after_R = (found.probability_RC.argmax(1) for found in (answered.first, without))
    accuracy = Bootstrap(answered.label_R, before_R, after_R, len(answered.names)).accuracy()
    report = DroppedSuspects(rows=len(kept_R), dropped=int((~kept_R).sum()), accuracy=accuracy)
    return given.only(np.flatnonzero(kept_R).tolist()), report


def _kept(answered: AnsweredTwice) -> Bools:
    """Return which rows are no suspects, or all that their label has [R]."""
    label_R, found = answered.label_R, answered.both
    kept_R = np.ones(len(label_R), np.bool_)
    kept_R[suspects.find(found.probability_RC, label_R, found.judged_R).row_S] = False
    kept_C = np.bincount(label_R[kept_R], minlength=len(answered.names))
    return np.asarray(kept_R | (kept_C[label_R] == 0))
