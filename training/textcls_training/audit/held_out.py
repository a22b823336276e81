"""What models that have not seen a row say of it: cross-fitting by whole trainings.

Each part of the rows is answered by a model of the others, calibrated as any model is. Copies of a text are in one part
(`textcls_training.pipeline.trials.folds_of`), so that none of them is told what its copy says.

Shapes: R rows, C labels; H held-out rows and L labels of one model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from textcls.errors import InputError
from textcls.jobs import HERE, Engine
from textcls.model.classifier import Classifier
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Bools, Float64, Int64
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.trials import Trained, Trial, Trials, folds_of, results

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


class HeldOutProbabilities(NamedTuple):
    """What a model says of rows that it has not seen.

    Attributes:
        probability_HL: of its labels.
        labels: these.
        model: its file.
    """

    probability_HL: Float64
    labels: tuple[str, ...]
    model: bytes


def answers(trained: Trained) -> HeldOutProbabilities:
    """Let a model answer its held-out rows."""
    model = trained.classifier
    found = [one.probabilities for one in model.predict(trained.held_out.texts)]
    return HeldOutProbabilities(
        np.array(found, np.float64).reshape(-1, len(model.labels)), model.labels, trained.content
    )


def answer(
    given: LabelledTexts,
    names: Sequence[str],
    config: TrainConfig,
    *,
    weight_R: Float64 | None = None,
    step: Callable[[int], None] = lambda rows: None,
    engine: Engine = HERE,
) -> HeldOut:
    """Return the answers to all rows, each by a model of the other parts.

    Args:
        given: the rows, of one label each.
        names: their labels.
        config: of the trainings.
        weight_R: how much each row counts; None where each counts as `given` says.
        step: of how many rows were answered, a part at a time.
        engine: who trains.

    Raises:
        InputError: without the rows of a part, there are not two labels to learn.
    """
    number = {name: i for i, name in enumerate(names)}
    label_R = np.array([number[label] for label in given.labels], np.int64)
    folds, part_R = folds_of(given, PARTS), np.empty(len(label_R), np.int64)
    if any(len(np.unique(label_R[fold.train])) < 2 for fold in folds) and len(names) > 1:
        raise InputError(
            "Labels cannot be audited: each text is judged by a model of other texts, and without it and its copies "
            "fewer than two labels are left; add rows with other texts."
        )
    for part, fold in enumerate(folds):
        part_R[fold.held_out] = part
    trials = [Trial(f"part {part + 1} of {PARTS}", config, part) for part in range(PARTS)]
    probability_RC, judged_R = np.zeros((len(label_R), len(names))), np.zeros(len(label_R), np.bool_)
    models: dict[int, Classifier] = {}
    work = Trials(_weighted(given, weight_R), folds, answers)
    with engine.hired(work, len(trials)) as crew:
        for trial, found in results(crew, trials):
            which = folds[trial.fold].held_out
            columns = np.array([number[name] for name in found.labels])
            probability_RC[np.ix_(which, columns)] = found.probability_HL
            judged_R[which] = np.isin(label_R[which], columns)
            models[trial.fold] = Classifier.from_bytes(found.model, Path(f"{trial}.onnx"))
            step(len(which))
    return HeldOut(probability_RC, judged_R, part_R, [models[part] for part in range(PARTS)])


def _weighted(given: LabelledTexts, weight_R: Float64 | None) -> LabelledTexts:
    weights = given.weights
    if weight_R is not None:
        weights = (weight_R if weights is None else weight_R * np.asarray(weights)).tolist()
    return replace(given, weights=weights, rationales=None)
