"""From labelled and unlabelled texts to a student, if held-out labelled rows prefer one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from textcls.errors import ConfigError, InputError
from textcls_training.config.resolve import ResolvedConfig, Trainers, default_epochs, one_vs_rest, resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.label_matrix import end_to_end
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import hashes_of
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.distillation import distil
from textcls_training.distillation.distil import Candidate, Fitted, Fold, Pool
from textcls_training.distillation.report import LABELS_ALONE, STUDENT, STUDENT_WITH_VECTORS, DistillationReport
from textcls_training.distillation.teachers import EncoderTeacher, GivenAnswers, SelfTeacher, Teacher
from textcls_training.fit.course import Course
from textcls_training.fit.device import device_type, on_gpu
from textcls_training.torch_parts import torch_part
from textcls_training.vectors import sentence_encoder
from textcls_training.vectors.sentence_encoder import SentenceEncoder
from textcls_training.vectors.word_vectors import WordVectors

# The weight of an unlabelled text, if held-out rows prefer using them; a labelled row has 1.
WEIGHT: Final = 1.0
# The least number of passes of the student of another teacher: an answer says more about a text than a label, so more
# passes are worth it with many texts.
LEAST_PASSES: Final = 3
# By how many standard errors held-out rows must prefer the labels alone to the student of another teacher, unless they
# also prefer them to that teacher by as many.
DOUBT: Final = 1.5


@dataclass(frozen=True, slots=True)
class DistillationOutcome:
    """The outcome of training with unlabelled texts.

    Attributes:
        fitted: the model to keep.
        report: the results on held-out rows; None if the training was stopped before.
        metadata: what the file says about the unlabelled texts; None if the model has not learned from them.
    """

    fitted: Fitted
    report: DistillationReport | None
    metadata: dict[str, Any] | None = None


class Distillation:
    """Unlabelled texts and their teacher: created before the work, so that anything missing is reported early."""

    def __init__(self, unlabelled: UnlabelledTexts, config: TrainConfig) -> None:
        """Check the input, and load the teacher if it is an encoder.

        Raises:
            ConfigError: both a teacher and probabilities are given.
            InputError: there are no texts, or no such teacher.
            MissingExtraError: sentence-transformers is not installed.
            SurroundingsError: the cache cannot be created.
        """
        if not unlabelled.texts:
            copies = ", only duplicates of labelled ones" if unlabelled.copies else " with a word or symbol"
            raise InputError(f"There are no unlabelled texts{copies}; give others, or train without them.")
        if config.teacher is not None and unlabelled.probability_UC is not None:
            raise ConfigError(
                "The unlabelled texts come with probabilities, so no teacher is needed; leave one of the two out."
            )
        self._unlabelled, self._config = unlabelled, config
        self._encoder = None
        if config.teacher is not None:
            sentence_encoder.require()
            self._encoder = SentenceEncoder(config.teacher, device_type(config.device))

    @property
    def answered(self) -> bool:
        """Return whether the teacher is not the model itself."""
        return self._encoder is not None or self._unlabelled.probability_UC is not None

    @property
    def teacher_sha256(self) -> str | None:
        """Return the hash of the encoder that is the teacher; None if the teacher is no encoder."""
        return None if self._encoder is None else self._encoder.fingerprint

    def run(
        self,
        given: LabelledTexts,
        valid: LabelledTexts | None,
        dataset: Dataset,
        part: Int64,
        alone: Fitted,
        course: Course,
    ) -> DistillationOutcome:
        """Ask the teacher, train the student, and keep the model that held-out rows prefer.

        Args:
            given: the labelled texts.
            valid: explicitly given validation rows.
            dataset: the labelled texts as a data set.
            part: the number of the split that holds out each of them.
            alone: the model trained on the labelled texts alone.
            course: how it runs; `alone` is kept if it is to end early.

        Raises:
            ConfigError: training diverged.
            SurroundingsError: the cache of sentence vectors cannot be written.
        """
        texts = [*given.texts, *(valid.texts if valid else ()), *self._unlabelled.texts]
        pool, hashes = self._pool(texts, given, valid, dataset, part, alone)
        teacher = self._teacher(texts, pool, hashes, alone.config, course)
        answers = None if course.stop.requested else distil.ask(teacher, pool, course)
        if answers is None:
            return DistillationOutcome(distil.interrupted(alone), None)
        weight = self._config.unlabelled_weight or WEIGHT
        students = []
        for name, resolved in self._ways(given, pool, alone):
            student = distil.fit_student(pool, answers, weight, resolved, course.within(f"the {name}"))
            if course.stop.requested:
                return DistillationOutcome(distil.interrupted(alone), None)
            students.append(Candidate(name, student))
        asked_for = self._config.unlabelled_weight is not None
        without = Candidate(LABELS_ALONE, alone)
        first, others = (students[0], students[1:]) if asked_for else (without, students)
        kept = distil.preferred(first, others, 0.0 if asked_for else self._doubt(answers, without))
        unlabelled = self._unlabelled
        report = DistillationReport(
            teacher=teacher.name,
            given=unlabelled.given,
            copies=unlabelled.copies,
            used=len(unlabelled.texts),
            weight=0.0 if kept.name == LABELS_ALONE else weight,
            rows=len(alone.selected.validation),
            scores=distil.scores(answers, [without, *students]),
            kept=kept.name,
        )
        return DistillationOutcome(kept.fitted, report, self._metadata(report) if report.weight else None)

    def _doubt(self, answers: distil.TeacherAnswers, alone: Candidate) -> float:
        """Return by how many standard errors the model of the labels alone must be better to be kept."""
        validation = alone.fitted.selected.validation
        if not self.answered or not len(validation):
            return 0.0
        if answers.held_out is None:
            return DOUBT
        losses = validation.losses(answers.held_out.astype(np.float64))
        return 0.0 if distil.worse_by(losses, alone.losses, DOUBT) else DOUBT

    def _ways(self, given: LabelledTexts, pool: Pool, alone: Fitted) -> Iterator[tuple[str, ResolvedConfig]]:
        """Yield the students that are tried, the simplest first.

        Vectors that were not asked for help some students of a teacher, and harm others.
        """
        vectors = alone.config.vectors
        if self.answered and self._config.vectors is None and vectors is not None:
            yield STUDENT, self._resolved(given, pool, alone, None)
            yield STUDENT_WITH_VECTORS, self._resolved(given, pool, alone, vectors)
        else:
            yield STUDENT, self._resolved(given, pool, alone, vectors)

    def _pool(
        self,
        texts: list[str],
        given: LabelledTexts,
        valid: LabelledTexts | None,
        dataset: Dataset,
        part: Int64,
        alone: Fitted,
    ) -> tuple[Pool, Int64]:
        """Return all texts as the pool, and their hashes."""
        hashes = hashes_of(texts)
        rows, with_valid = len(given.texts), len(given.texts) + (len(valid.texts) if valid else 0)
        names, labelled, corpus = given.label_names(), np.arange(rows), Corpus.of(texts, alone.config.max_tokens)
        # Their types have different numbers among those of all texts.
        known = dataset._replace(corpus=corpus.select(np.arange(with_valid)))
        if valid is None:
            folds = [Fold(labelled[part != i], labelled[part == i]) for i in range(alone.folds)]
        else:
            known = _with_targets_of(known, Dataset.of(valid, names, alone.config.max_tokens))
            folds = [Fold(labelled, np.arange(rows, with_valid))]
        pool = Pool(
            corpus=corpus,
            known=known,
            labelled=labelled,
            unlabelled=np.arange(with_valid, len(texts)),
            folds=folds,
            classes=len(names),
        )
        return pool, hashes

    def _teacher(
        self,
        texts: list[str],
        pool: Pool,
        hashes: Int64,
        config: ResolvedConfig,
        course: Course,
    ) -> Teacher:
        callback, stop = course.callback, course.stop
        if self._unlabelled.probability_UC is not None:
            return GivenAnswers(self._given(self._unlabelled.probability_UC, hashes, pool))
        if self._encoder is not None and self._config.tune_teacher:
            made: Teacher = torch_part("distillation.tuned_teacher").TunedTeacher(
                self._encoder, texts, hashes, pool.classes, self._config.seed, callback, lambda: stop.requested
            )
            return made
        if self._encoder is not None:
            vectors = self._encoder.encode(texts, callback, lambda: stop.requested)
            return EncoderTeacher(self._encoder.name, vectors, hashes, pool.classes, config.class_weight)
        return SelfTeacher(pool.corpus, hashes, pool.classes, config, course)

    def _given(self, probability_UC: Float32, hashes: Int64, pool: Pool) -> Float32:
        """Return the probabilities of all texts of the pool; NaN for labelled texts without given ones."""
        found_PC = np.full((len(hashes), pool.classes), np.nan, np.float32)
        found_PC[pool.unlabelled] = probability_UC
        for i, number in enumerate(hashes[: pool.unlabelled[0]].tolist()):
            if number in self._unlabelled.of_labelled:
                found_PC[i] = self._unlabelled.of_labelled[number]
        return found_PC

    def _resolved(self, given: LabelledTexts, pool: Pool, alone: Fitted, vectors: WordVectors | None) -> ResolvedConfig:
        """Decide by labelled and unlabelled texts together, but which features are read by labelled ones alone."""
        config = self._config
        if alone.config.model.embedding == "rows":
            config = replace(config, ngrams=alone.config.features.ngram_sizes)
        texts = [*given.texts, *self._unlabelled.texts]
        if self.answered and config.epochs is None and not pool.known.several:
            config = replace(config, epochs=max(LEAST_PASSES, default_epochs(len(texts), pool.classes)))
        tokens = int(pool.corpus.lengths()[np.concatenate([pool.labelled, pool.unlabelled])].sum())
        machines = alone.config.impl == "one-vs-rest"
        impl: Trainers = "compiled" if machines else alone.config.impl
        label_rows = None
        if pool.known.several:
            # As if each label were equally frequent in the unlabelled texts.
            of_labelled = np.median(pool.known.select(pool.labelled).label_mass(pool.classes))
            label_rows = float(of_labelled) * len(texts) / len(given.texts)
        found = resolve(
            config,
            texts,
            tokens,
            pool.classes,
            label_rows=label_rows,
            vectors=vectors,
            names=given.label_names(),
            impl=impl,
            on_gpu=on_gpu(impl, config.device),
        )
        found = replace(found, features=replace(found.features, trigrams=alone.config.features.trigrams))
        return one_vs_rest(found, config, pool.classes) if machines else replace(found, refit=True)

    def _metadata(self, report: DistillationReport) -> dict[str, Any]:
        """Return what the file says about the unlabelled texts that the model has learned from."""
        encoded = {} if self._encoder is None else {"teacher_sha256": self._encoder.fingerprint}
        return {
            "teacher": report.teacher,
            **encoded,
            "rows": report.used,
            "weight": report.weight,
            "data_sha256": self._unlabelled.sha256(),
        }


def _with_targets_of(known: Dataset, more: Dataset) -> Dataset:
    """Return the rows with the targets of the last ones replaced by those of `more`; those before stay as they are."""
    rationale = known.rationale
    if rationale is not None:
        rationale = np.concatenate([rationale, np.zeros(len(known.corpus.token) - len(rationale), np.bool_)])
    sets = end_to_end([known.label_matrix, more.label_matrix]) if known.several else None
    return known._replace(labels=np.concatenate([known.labels, more.labels]), rationale=rationale, sets=sets)
