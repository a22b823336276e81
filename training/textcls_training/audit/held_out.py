"""What models that have not seen a row say of it: cross-fitting by whole trainings.

Each part of the rows is answered by a model of the others, calibrated as any model is. Copies of a text are in one part
(`textcls_training.data.split`), so that none of them is told what its copy says.

Shapes: R rows, C labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from textcls.classifier import Classifier
from textcls_training import pipeline
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Bools, Float64, Int64
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import hashes_of, parts_of

PARTS: Final = 5


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Answers to all rows.

    Attributes:
        probability_RC: of each label.
        judged_R: whether the row was answered by a model that knows its label; the last row of a label is not.
        part_R: the part of each row.
        models: of each part the model that has not seen it.
    """

    probability_RC: Float64
    judged_R: Bools
    part_R: Int64
    models: Sequence[Classifier]


def answer(
    given: LabelledTexts,
    names: Sequence[str],
    config: TrainConfig,
    folder: Path,
    *,
    weight_R: Float64 | None = None,
    told: Callable[[int], None] = lambda rows: None,
) -> HeldOut:
    """Return the answers to all rows, each by a model of the other parts.

    Args:
        given: the rows, of one label each.
        names: their labels.
        config: of the trainings.
        folder: where models are written, a file each.
        weight_R: how much each row counts; None where each counts as `given` says.
        told: of how many rows were answered, a part at a time.
    """
    number = {name: i for i, name in enumerate(names)}
    label_R = np.array([number[label] for label in given.labels], np.int64)
    part_R = parts_of(hashes_of(given.texts), label_R, PARTS)
    probability_RC, judged_R = np.zeros((len(label_R), len(names))), np.zeros(len(label_R), np.bool_)
    models = []
    for part in range(PARTS):
        held_R = part_R == part
        path = folder / f"{part}.onnx"
        pipeline.train(_rows(given, np.flatnonzero(~held_R), weight_R), path, config)
        model = Classifier.load(path)
        which = np.flatnonzero(held_R)
        found = np.array(
            [one.probabilities for one in model.predict([given.texts[i] for i in which.tolist()])], np.float64
        )
        columns = np.array([number[name] for name in model.labels])
        if len(which):
            probability_RC[np.ix_(which, columns)] = found
        judged_R[which] = np.isin(label_R[which], columns)
        models.append(model)
        told(len(which))
    return HeldOut(probability_RC, judged_R, part_R, models)


def _rows(given: LabelledTexts, which: Int64, weight_R: Float64 | None) -> LabelledTexts:
    weights = given.weights
    if weight_R is not None:
        weights = (weight_R if weights is None else weight_R * np.asarray(weights)).tolist()
    return replace(
        given,
        texts=[given.texts[i] for i in which.tolist()],
        labels=[given.labels[i] for i in which.tolist()],
        weights=None if weights is None else [weights[i] for i in which.tolist()],
        rationales=None,
    )
