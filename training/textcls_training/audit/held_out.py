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
        known_PC: whether the model of each part knows each label; that of a label's last row does not.
        part_R: the part of each row.
        models: of each part the model that has not seen it.
    """

    probability_RC: Float64
    known_PC: Bools
    part_R: Int64
    models: Sequence[Classifier]

    def model_of(self, row: int) -> Classifier:
        """Return the model that has not seen a row."""
        return self.models[int(self.part_R[row])]

    def known(self) -> Bools:
        """Return whether each row was answered by a model that knows each label [R, C]."""
        return np.asarray(self.known_PC[self.part_R])


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
        given: the rows.
        names: their labels.
        config: of the trainings.
        weight_R: how much each row counts; None where each counts as `given` says.
        step: of how many rows were answered, a part at a time.
        engine: who trains.

    Raises:
        InputError: without the rows of a part, there are not two labels to learn; or none of several.
    """
    folds, part_R = folds_of(given, PARTS), np.empty(len(given.texts), np.int64)
    least = 1 if given.label_sets is not None else 2
    if len(names) >= least and any(len(given.only(fold.train.tolist()).labels_in_use()) < least for fold in folds):
        raise InputError(
            "Labels cannot be audited: each text is judged by a model of other texts, and without it and its copies "
            f"{'no labels' if least == 1 else 'fewer than two labels'} are left; add rows with other texts."
        )
    for part, fold in enumerate(folds):
        part_R[fold.held_out] = part
    number = {name: i for i, name in enumerate(names)}
    trials = [Trial(f"part {part + 1} of {PARTS}", config, part) for part in range(PARTS)]
    probability_RC, known_PC = np.zeros((len(part_R), len(names))), np.zeros((PARTS, len(names)), np.bool_)
    models: dict[int, Classifier] = {}
    work = Trials(_weighted(given, weight_R), folds, answers)
    with engine.hired(work, len(trials)) as crew:
        for trial, found in results(crew, trials):
            which = folds[trial.fold].held_out
            columns = np.array([number[name] for name in found.labels])
            probability_RC[np.ix_(which, columns)] = found.probability_HL
            known_PC[trial.fold, columns] = True
            models[trial.fold] = Classifier.from_bytes(found.model, Path(f"{trial}.onnx"))
            step(len(which))
    return HeldOut(probability_RC, known_PC, part_R, [models[part] for part in range(PARTS)])


def _weighted(given: LabelledTexts, weight_R: Float64 | None) -> LabelledTexts:
    weights = given.weights
    if weight_R is not None:
        weights = (weight_R if weights is None else weight_R * np.asarray(weights)).tolist()
    return replace(given, weights=weights, rationales=None, names=())
