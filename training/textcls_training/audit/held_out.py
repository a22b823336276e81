"""The answers for each row of models that have not seen it: a training on all rows that holds out each row once.

That is the cross-fit by which a training chooses and calibrates (`textcls_training.fit.cross_fit`), with every part of
the rows held out. Copies of a text are in one part, so that none of them is predicted from its copies, unless texts
recur (`textcls_training.data.split`); a row whose label no other row teaches is never held out.

Shapes: R rows, C labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from textcls.errors import InputError
from textcls.model.classifier import Classifier
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Bools, Float64
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.pipeline import training as pipeline


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The answers for the rows that were held out.

    Attributes:
        probability_RC: the probability of each label; zeros for rows without an answer.
        judged_R: which rows were held out, and answered.
        model: the model of all rows.
    """

    probability_RC: Float64
    judged_R: Bools
    model: Classifier


def answer(
    given: LabelledTexts,
    names: Sequence[str],
    config: TrainConfig,
    *,
    weight_R: Float64 | None = None,
    callback: Callback = NOBODY,
) -> HeldOut:
    """Return the answers for all rows, each by a model trained on the other parts.

    Args:
        given: the rows.
        names: their labels.
        config: the configuration of the training.
        weight_R: the weight of each row; None for the weights in `given`.
        callback: notified of progress.

    Raises:
        InputError: no row can be held out.
    """
    weights = given.weights
    if weight_R is not None:
        weights = (weight_R if weights is None else weight_R * np.asarray(weights)).tolist()
    rows = replace(given, weights=weights, rationales=None, names=())
    with TemporaryDirectory(prefix="textcls-audit-") as folder:
        path = Path(folder) / "model.onnx"
        run = pipeline.run(rows, path, config, callback=callback, every_part=True, new_labels=False)
        model = Classifier.load(path)
    which, selected = run.held_out_rows, run.selected
    if not len(which):
        raise InputError(
            "Labels cannot be audited: each text is judged by a model of other texts, and without it and its copies "
            "nothing is left to learn its label from; add rows with other texts."
        )
    probability_RC = np.zeros((len(given.texts), len(names)))
    probability_RC[which] = selected.calibration.probabilities(selected.logits)
    return HeldOut(probability_RC, np.isin(np.arange(len(given.texts)), which), model)
