"""From answers to a model, the texts to ask about next, and the results on held-out answers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from textcls.labelling.answers import Annotation
from textcls.labelling.learner import Learned
from textcls.labelling.suggest import Pool
from textcls.model.classifier import Classifier
from textcls_training.config.settings import TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.english import english_if_known
from textcls_training.data.label_names import words_of
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.label_set_calibration import assigned_by_others
from textcls_training.fit.validation import LabelSetValidation
from textcls_training.models.calibration import LabelSetCalibration
from textcls_training.pipeline import training as pipeline
from textcls_training.pretraining.label_names.nearest import similarities
from textcls_training.pretraining.mean_vectors import mean_vectors

# With fewer answers, or fewer than two labels with two answers, there is no model.
LEAST_ANSWERS: Final = 8
LEAST_OF_A_LABEL: Final = 2
# Texts that are chosen at a time: more than anyone answers before the next training.
CHOSEN: Final = 100
# The number of labels suggested as hints.
HINTS: Final = 3


class Learning:
    """What is kept from one training to the next."""

    def __init__(self, texts: Sequence[str], folder: Path, *, several: bool) -> None:
        """Start without a model.

        Args:
            texts: the texts to label.
            folder: where models are written.
            several: whether a text may have several labels.
        """
        self._texts, self._folder, self._several = texts, folder, several
        self._pool = Pool.of(texts)
        self._number = 0
        # The answers of each model for the pool, by the number of answers that it was trained on.
        self._said: dict[int, list[tuple[str, ...]]] = {}

    def learn(self, labels: Sequence[str], answers: Sequence[Annotation]) -> Learned:
        """Learn from answers as described in `Learner.learn`, with the same errors."""
        known = [answer.text for answer in answers]
        if not _enough(answers, several=self._several):
            order = self._pool.choose(CHOSEN, known)
            return Learned(len(answers), None, order, hints=self._hints(labels) if not self._number else {})
        self._number += 1
        path = self._folder / f"{self._number}.onnx"
        run = pipeline.run(self._rows(answers), path, TrainConfig())
        classifier = Classifier.load(path)
        (self._folder / f"{self._number - 2}.onnx").unlink(missing_ok=True)
        predictions = self._pool.ask(classifier)
        self._said[len(answers)] = [prediction.assigned for prediction in predictions]
        return Learned(
            len(answers),
            path,
            self._pool.choose(CHOSEN, known, predictions),
            _held_out(run, answers),
            self._changed(len(answers)),
        )

    def _rows(self, answers: Sequence[Annotation]) -> LabelledTexts:
        texts = [answer.text for answer in answers]
        if self._several:
            return LabelledTexts(texts=texts, label_sets=[dict.fromkeys(answer.labels, 1.0) for answer in answers])
        return LabelledTexts(texts=texts, labels=[answer.labels[0] for answer in answers])

    def _changed(self, answers: int) -> float | None:
        """Return the share of the pool that the model of half the answers answered differently."""
        # Too early to be half of these answers, or of more.
        for number in [number for number in self._said if number < answers / 4]:
            del self._said[number]
        half = max((number for number in self._said if number <= answers / 2), default=None)
        if half is None:
            return None
        pairs = zip(self._said[half], self._said[answers], strict=True)
        return sum(set(one) != set(other) for one, other in pairs) / max(1, len(self._pool.rows))

    def _hints(self, labels: Sequence[str]) -> dict[int, list[str]]:
        """Return the labels whose names are nearest to texts, if English vectors know both."""
        if len(labels) < 2:
            return {}
        corpus = Corpus.of([self._texts[row] for row in self._pool.rows], TrainConfig().max_tokens)
        words = english_if_known(corpus)
        if words is None:
            return {}
        name_CE = mean_vectors(Corpus.of([words_of(label) for label in labels], TrainConfig().max_tokens), words)
        if not name_CE.any(1).all():
            return {}
        text_RE = mean_vectors(corpus, words)
        order_RC = np.argsort(-similarities(text_RE, name_CE), axis=1, kind="stable")[:, :HINTS]
        which = np.flatnonzero(text_RE.any(1)).tolist()
        return {self._pool.rows[i]: [labels[c] for c in order_RC[i].tolist()] for i in which}


def _enough(answers: Sequence[Annotation], *, several: bool) -> bool:
    rows = Counter(label for answer in answers for label in answer.labels)
    learned = sum(count >= LEAST_OF_A_LABEL for count in rows.values())
    return len(answers) >= LEAST_ANSWERS and learned >= (1 if several else 2)


def _held_out(run: pipeline.TrainingRun, answers: Sequence[Annotation]) -> Mapping[int, bool]:
    """Return for each held-out text whether the model's answer is that of the person."""
    selected, validation = run.selected, run.selected.validation
    if isinstance(validation, LabelSetValidation):
        assert isinstance(selected.calibration, LabelSetCalibration)
        target_RC = validation.target_RC
        found = assigned_by_others(selected.logits, target_RC, selected.calibration, validation.goal)
        right_R = (found.assigned_RC == (target_RC >= 0.5)).all(1)
    else:
        right_R = selected.logits.argmax(1) == selected.labels
    pairs = zip(run.held_out_rows.tolist(), right_R.tolist(), strict=True)
    return {row: right for number, right in pairs if (row := answers[number].row) is not None}
