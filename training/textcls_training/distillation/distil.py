"""Students: fits on labelled rows and a teacher's answers together; held-out labelled rows select one or none.

Shapes: R held-out rows, U unlabelled texts, C labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset, Split
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.distillation.report import TEACHER, HeldOutScore
from textcls_training.distillation.teachers import Teacher
from textcls_training.fit.course import Course
from textcls_training.fit.cross_fit import cross_fit
from textcls_training.fit.paired_gain import PairedGain
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.threads import reproducible
from textcls_training.models.ensemble import TrainedModel

# With several labels, one that a teacher considers less probable than this is taken as absent: of thousands most are.
LEAST_ANSWER: Final = 0.005


@dataclass(frozen=True, slots=True)
class Fitted:
    """A cross-fitted model.

    Attributes:
        selected: what validation rows selected, and their logits.
        model: the model.
        learned: the rows it has learned from.
        config: how it was trained.
        folds: how many train-valid splits there were.
    """

    selected: SelectionResult
    model: TrainedModel
    learned: Dataset
    config: ResolvedConfig
    folds: int

    @property
    def held_out(self) -> Float64:
        """Return the calibrated probabilities [R, C] of the validation rows."""
        return self.selected.calibration.probabilities(self.selected.logits)


class Fold(NamedTuple):
    """A train-valid split of labelled texts, as their numbers in the pool."""

    train: Int64
    valid: Int64


@dataclass(frozen=True, slots=True)
class Pool:
    """All texts of a run: labelled ones, then explicitly given validation rows, then unlabelled ones.

    Attributes:
        corpus: the tokens of all texts.
        known: labelled texts and validation rows, with their targets.
        labelled: the labelled texts.
        unlabelled: the unlabelled ones.
        folds: the train-valid splits of the labelled texts.
        classes: how many labels there are.
    """

    corpus: Corpus
    known: Dataset
    labelled: Int64
    unlabelled: Int64
    folds: Sequence[Fold]
    classes: int

    def lesson(self, text_T: Int64, answer_UC: Float32, weight: float) -> Dataset:
        """Return the labelled texts `text_T`, with hard labels, and all unlabelled ones with their answers."""
        rows = self.known.select(text_T)
        corpus = self.corpus.select(np.concatenate([text_T, self.unlabelled]))
        labels = np.concatenate([rows.labels, answer_UC.argmax(1)])
        weight_R = np.repeat(np.array([1, weight], np.float32), [len(text_T), len(self.unlabelled)])
        rationale = rows.rationale
        if rationale is not None:
            rationale = np.concatenate([rationale, np.zeros(len(corpus.token) - len(rationale), np.bool_)])
        lesson = Dataset(corpus, labels, rationale, weight_R=None if weight == 1 else weight_R)
        target_RC = np.concatenate([rows.target(self.classes), answer_UC])
        if not rows.several:
            return lesson._replace(probability_RC=target_RC)
        target_RC[target_RC < LEAST_ANSWER] = 0
        return lesson._replace(sets=LabelMatrix.of_dense(target_RC))


@dataclass(frozen=True, slots=True)
class TeacherAnswers:
    """The answers of a teacher.

    Attributes:
        of_fold: answers [U, C] for each fold, learned only from its training rows.
        of_all: likewise, learned from all labelled rows.
        held_out: likewise, for each fold's validation rows, concatenated [R, C]; None if they are not known.
    """

    of_fold: Sequence[Float32]
    of_all: Float32
    held_out: Float32 | None


def ask(teacher: Teacher, pool: Pool, course: Course) -> TeacherAnswers | None:
    """Ask a teacher once for each fold, knowing only the labels of its training rows, and once for all.

    None if a stop is requested meanwhile.
    """
    last = Fold(pool.labelled, pool.labelled[:0])
    # Separately given validation rows take none of the labelled texts away.
    whole = len(pool.folds[-1].train) == len(pool.labelled)
    lessons = pool.folds if whole else [*pool.folds, last]
    course.callback.phase("asking the teacher", len(lessons) * len(pool.unlabelled))
    found = []
    for train, valid in lessons:
        answers = _answers(teacher, pool, train, valid)
        if answers is None or course.stop.requested:
            return None
        found.append(answers)
        course.callback.step(len(pool.unlabelled), None)
    of_folds = found[: len(pool.folds)]
    known = [held_out for _, held_out in of_folds if held_out is not None]
    scored = np.concatenate(known) if len(known) == len(of_folds) else None
    return TeacherAnswers([answer_UC for answer_UC, _ in of_folds], found[-1][0], scored)


def _answers(teacher: Teacher, pool: Pool, train: Int64, valid: Int64) -> tuple[Float32, Float32 | None] | None:
    """Return the answers for the unlabelled texts, and those for validation rows, if the teacher can give them."""
    asked = np.concatenate([valid, pool.unlabelled])
    rows = pool.known.select(train)
    found = teacher.answers(train, rows, asked)
    if found is not None:
        return found[len(valid) :], found[: len(valid)]
    found = teacher.answers(train, rows, pool.unlabelled)
    return None if found is None else (found, None)


def fit_student(
    pool: Pool,
    answers: TeacherAnswers,
    weight: float,
    config: ResolvedConfig,
    course: Course,
) -> Fitted:
    """Cross-fit a student: per fold, on its training rows and the answers of a teacher of these alone."""
    splits = []
    for fold, answer_UC in zip(pool.folds, answers.of_fold, strict=True):
        splits.append(Split(pool.lesson(fold.train, answer_UC, weight), pool.known.select(fold.valid)))
    learned = pool.lesson(pool.labelled, answers.of_all, weight)
    with reproducible(config.seed, config.impl, pool.classes):
        selected, model = cross_fit(learned, splits, pool.classes, config, course)
    return Fitted(selected, model, learned, config, len(splits))


class Candidate(NamedTuple):
    """A model that may be the one to keep, and its name."""

    name: str
    fitted: Fitted

    @property
    def losses(self) -> Float64:
        """Return the cross-entropy of each held-out row."""
        return self.fitted.selected.validation.losses(self.fitted.held_out)


def preferred(first: Candidate, others: Sequence[Candidate], doubt: float = 0.0) -> Candidate:
    """Return the candidate with the least cross-entropy on the same held-out rows; the first without such rows.

    Args:
        first: the candidate that is kept if the best of the others is no better.
        others: candidates that may be kept in its place.
        doubt: the best of the others is also kept if it is worse by less than this many standard errors. A few rows
            underrate it compared with later rows: see training/README.md.
    """
    if not others or not len(first.losses):
        return first
    best = min(others, key=lambda candidate: candidate.losses.mean())
    return first if worse_by(best.losses, first.losses, doubt) else best


def worse_by(losses_R: Float64, than_R: Float64, errors: float) -> bool:
    """Return whether losses exceed others on the same rows by at least `errors` standard errors of their difference."""
    return not PairedGain.of(losses_R, than_R).beyond(-errors)


def scores(answers: TeacherAnswers, candidates: Sequence[Candidate]) -> list[HeldOutScore]:
    """Return the scores, on the same rows, of the teacher, if it has answered held-out rows, and of all candidates."""
    validation = candidates[0].fitted.selected.validation
    if not len(validation):
        return []
    found = [HeldOutScore.of(name, fitted.held_out, validation) for name, fitted in candidates]
    if answers.held_out is None:
        return found
    return [HeldOutScore.of(TEACHER, answers.held_out.astype(np.float64), validation), *found]


def interrupted(fitted: Fitted) -> Fitted:
    """Return a complete fit marked as one whose successor was stopped early."""
    return replace(fitted, selected=replace(fitted.selected, interrupted=True))
