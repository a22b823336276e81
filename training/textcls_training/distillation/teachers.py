"""Teachers, which label unlabelled texts: a sentence encoder under a linear head, the model itself, or given answers.

All texts of a run, labelled ones, validation rows and unlabelled ones, are in one pool and referred to by their numbers
there. A teacher has no labels of its own; each time it is asked it learns anew from those it is given.

Shapes: T texts to learn from, A texts that are asked, C labels.
"""

from dataclasses import replace
from typing import Final, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from textcls_training.config.resolve import LabelWeights, ResolvedConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.split import masks_of
from textcls_training.distillation import linear_head
from textcls_training.fit import calibration
from textcls_training.fit.callbacks import NOBODY
from textcls_training.fit.course import Course
from textcls_training.fit.cross_fit import CrossFit
from textcls_training.fit.threads import reproducible
from textcls_training.fit.validation import validation_of
from textcls_training.vectors.sentence_encoder import Float16, as_float64

_LEAST: Final = np.float32(1e-4)


class Teacher(Protocol):
    """A teacher for unlabelled texts.

    Attributes:
        name: for people, and for the metadata of the file.
    """

    name: str

    def answers(self, text_T: Int64, rows: Dataset, asked_A: Int64) -> Float32 | None:
        """Learn only from the texts `text_T`, and return calibrated probabilities [A, C] of the texts `asked_A`.

        `rows` are the former with their targets. None if an answer is not known, or if a stop was requested.
        """


class EncoderTeacher:
    """A linear head on sentence vectors."""

    def __init__(
        self, name: str, vectors: Float16, hashes: Int64, classes: int, class_weight: LabelWeights = "tempered"
    ) -> None:
        """Store the vectors and hashes of all texts of the pool, and how labels weigh."""
        self.name, self._vectors, self._hashes, self._classes = name, vectors, hashes, classes
        self._class_weight = class_weight

    def answers(self, text_T: Int64, rows: Dataset, asked_A: Int64) -> Float32:
        """Fit a head on `text_T`, and return its answers."""
        # Sums of products depend on the number of threads that share them.
        with threadpool_limits(1):
            masks = list(masks_of(self._hashes[text_T], rows.labels))
            vectors = as_float64(self._vectors[text_T])
            head = linear_head.fit(vectors, rows, self._classes, masks, self._class_weight)
            return head.probabilities(as_float64(self._vectors[asked_A]))


class SelfTeacher:
    """The model itself, trained on labelled rows alone: self-training."""

    name = "itself"

    def __init__(
        self,
        pool: Corpus,
        hashes: Int64,
        classes: int,
        config: ResolvedConfig,
        course: Course,
    ) -> None:
        """Store the tokens and hashes of all texts, and how the model is trained, which nobody is told of."""
        self._course, self._asked = replace(course, callback=NOBODY), 0
        self._pool, self._hashes, self._classes, self._config = pool, hashes, classes, config

    def answers(self, text_T: Int64, rows: Dataset, asked_A: Int64) -> Float32 | None:
        """Cross-fit the model on `text_T`, which calibrates it, and return the answers of the model of all of them."""
        rows = rows._replace(rationale=None)
        splits = [rows.split(mask) for mask in masks_of(self._hashes[text_T], rows.labels)]
        self._asked += 1
        course = self._course.within(f"teacher {self._asked}")
        with reproducible(self._config.seed, self._config.impl, self._classes):
            selected, trainer = CrossFit(rows, splits, self._classes, self._config, course).run()
            if course.stop.requested:
                return None
            found = selected.calibration
            logits_AC = found.combine(trainer.predict(trainer.encode(self._pool.select(asked_A))))
            return found.probabilities(logits_AC).astype(np.float32)


class GivenAnswers:
    """Given probabilities, calibrated by those given for labelled texts.

    Hard answers, 1 for a label and 0 for the others, become probabilities that are right as often as their source is.
    """

    name = "given probabilities"

    def __init__(self, probability_PC: Float32) -> None:
        """Store the probabilities of all texts of the pool; a row of NaN for texts without an answer."""
        self._probability_PC = probability_PC

    def answers(self, text_T: Int64, rows: Dataset, asked_A: Int64) -> Float32 | None:
        """Return the given probabilities, calibrated by those of `text_T`; None if a text has none."""
        asked_AC = self._probability_PC[asked_A]
        if np.isnan(asked_AC).any():
            return None
        told_TC = self._probability_PC[text_T]
        known_T = ~np.isnan(told_TC).any(axis=1)
        if known_T.sum() < calibration.MIN_ROWS:
            return asked_AC
        told = validation_of([rows.select(np.flatnonzero(known_T))])
        found = told.calibrate(_logits(told_TC[known_T], several=rows.several)[None])
        return found.probabilities(_logits(asked_AC, several=rows.several)).astype(np.float32)


def _logits(probability_RC: Float32, *, several: bool) -> Float32:
    """Return logits of probabilities clipped to at least one in ten thousand; with several labels on both sides."""
    log_RC = np.log(np.maximum(probability_RC, _LEAST))
    return log_RC - np.log(np.maximum(1 - probability_RC, _LEAST)) if several else log_RC
