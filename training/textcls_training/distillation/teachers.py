"""Who answers unlabelled texts: a sentence encoder under a linear head, the model itself, or somebody elsewhere.

All texts of a run, labelled ones, validation rows and unlabelled ones, stand in one pool and are named by their numbers
there. A teacher has no labels of its own; each time it is asked it learns anew from those that it is given.

Shapes: T texts to learn from, A texts that are asked, C labels.
"""

from typing import Protocol

import numpy as np
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.split import masks_of
from textcls_training.distillation import linear_head
from textcls_training.distillation.encoder import Float16, as_float64
from textcls_training.fit.callbacks import NOBODY
from textcls_training.fit.cross_fit import CrossFit
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible


class Teacher(Protocol):
    """Who answers unlabelled texts.

    Attributes:
        name: for people, and for the metadata of the file.
    """

    name: str

    def answers(self, text_T: Int64, label_T: Int64, asked_A: Int64) -> Float32 | None:
        """Learn from the texts `text_T` alone, and return calibrated probabilities [A, C] of the texts `asked_A`.

        None if one of them is not known, or if a stop was requested.
        """


class EncoderTeacher:
    """A linear head on sentence vectors."""

    def __init__(self, name: str, vectors: Float16, hashes: Int64, classes: int) -> None:
        """Take the vectors and hashes of all texts of the pool."""
        self.name, self._vectors, self._hashes, self._classes = name, vectors, hashes, classes

    def answers(self, text_T: Int64, label_T: Int64, asked_A: Int64) -> Float32:
        """Fit a head on `text_T`, and let it answer."""
        # Sums of products depend on how many threads share them.
        with threadpool_limits(1):
            masks = list(masks_of(self._hashes[text_T], label_T))
            head = linear_head.fit(as_float64(self._vectors[text_T]), label_T, self._classes, masks)
            return head.probabilities(as_float64(self._vectors[asked_A]))


class SelfTeacher:
    """The model itself, trained on labelled rows alone: self-training."""

    name = "itself"

    def __init__(self, pool: Corpus, hashes: Int64, classes: int, config: ResolvedConfig, stop: Stop) -> None:
        """Take the tokens and hashes of all texts of the pool, and how the model is trained."""
        self._pool, self._hashes, self._classes, self._config, self._stop = pool, hashes, classes, config, stop

    def answers(self, text_T: Int64, label_T: Int64, asked_A: Int64) -> Float32 | None:
        """Cross-fit the model on `text_T`, which calibrates it, and let that of all of them answer."""
        rows = Dataset(self._pool.select(text_T), label_T)
        splits = [rows.split(mask) for mask in masks_of(self._hashes[text_T], label_T)]
        with reproducible(self._config.seed):
            selected, trainer = CrossFit(rows, splits, self._classes, self._config, self._stop).run(NOBODY)
            if self._stop.requested:
                return None
            found = selected.calibration
            logits_AC = found.combine(trainer.predict(trainer.encode(self._pool.select(asked_A))))
            return softmax(logits_AC.astype(np.float64) / found.temperature, axis=1).astype(np.float32)


class GivenAnswers:
    """Somebody's probabilities of the unlabelled texts, which are the last ones of the pool."""

    def __init__(self, name: str, probability_UC: Float32, first: int) -> None:
        """Take the probabilities, and the number of the first unlabelled text."""
        self.name, self._probability_UC, self._first = name, probability_UC, first

    def answers(self, _text_T: Int64, _label_T: Int64, asked_A: Int64) -> Float32 | None:
        """Return what was given; None if a text is asked that is not an unlabelled one."""
        if len(asked_A) and asked_A.min() < self._first:
            return None
        return self._probability_UC[asked_A - self._first]
