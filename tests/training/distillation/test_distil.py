"""Students: a teacher knows no held-out label, held-out rows decide, and what is not used leaves no trace."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.special import softmax

import textcls
from tests.training.helpers import Recorder, dataset_of
from textcls import Classifier
from textcls.errors import ConfigError, InputError
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import hashes_of, masks_of
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.distillation.distil import Candidate, Fold, Pool, TeacherAnswers, ask, preferred
from textcls_training.distillation.report import HeldOutScore
from textcls_training.distillation.run import DOUBT, Distillation
from textcls_training.distillation.teachers import GivenAnswers
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.course import Course
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.validation import LabelValidation
from textcls_training.pipeline.training import train
from textcls_training.pipeline.training_report import TrainReport

SMALL = TrainConfig(dim=8, ngrams=(), epochs=3, vectors="none", device="cpu")
WORDS = {
    "billing": ["card", "payment", "refund", "bill", "invoice", "charge"],
    "shipping": ["parcel", "courier", "delivery", "late", "track", "box"],
    "account": ["login", "password", "account", "email", "name", "user"],
}
NAMES = sorted(WORDS)
FILLER = [f"filler{i}" for i in range(60)]


def made(rows: int, seed: int) -> LabelledTexts:
    """Rows that name their label by one word, of which few rows have seen few."""
    rng = np.random.default_rng(seed)
    labels = [NAMES[i % 3] for i in range(rows)]
    texts = [" ".join(rng.permutation([rng.choice(WORDS[label]), *rng.choice(FILLER, 6)])) for label in labels]
    return LabelledTexts(texts=texts, labels=labels)


LABELLED, MORE, TEST = made(60, 0), made(400, 1), made(300, 2)


def answered(sure: float, labels: list[str]) -> UnlabelledTexts:
    """The texts of `MORE`, with answers that give `labels` a probability of `sure`."""
    rows = []
    for text, label in zip(MORE.texts, labels, strict=True):
        rows.append(UnlabelledText(text, [sure if name == label else (1 - sure) / 2 for name in NAMES]))
    return UnlabelledTexts.sample(rows, 10_000, LABELLED.texts)


def plain() -> UnlabelledTexts:
    return UnlabelledTexts.sample(map(UnlabelledText, MORE.texts), 10_000, LABELLED.texts)


def accuracy(path: Path) -> float:
    answers = Classifier.load(path).predict(TEST.texts)
    return float(np.mean([answer.label == label for answer, label in zip(answers, TEST.labels, strict=True)]))


def fit(path: Path, unlabelled: UnlabelledTexts | None, **options: Any) -> TrainReport:
    return train(LABELLED, path, replace(SMALL, **options), unlabelled=unlabelled)


def pool_of(given: LabelledTexts, more: Sequence[str]) -> Pool:
    texts = [*given.texts, *more]
    dataset = dataset_of(LabelledTexts(texts=texts, labels=[*given.labels, *[NAMES[0]] * len(more)]))
    labelled = np.arange(len(given.texts))
    known = dataset.select(labelled)
    masks = masks_of(hashes_of(given.texts), known.labels)
    folds = [Fold(labelled[~mask], labelled[mask]) for mask in masks]
    return Pool(dataset.corpus, known, labelled, np.arange(len(given.texts), len(texts)), folds, 3)


def test_where_texts_are_many_answers_are_worth_more_passes_than_labels(tmp_path: Path) -> None:
    config = replace(SMALL, epochs=None, dim=2)
    texts, rows = [f"card {i}" for i in range(12_000)], 48 + 12_000
    for answer, passes in (([0.8, 0.1, 0.1], 3), (None, 2)):
        told = Recorder()
        unlabelled = UnlabelledTexts.sample((UnlabelledText(text, answer) for text in texts), 20_000, LABELLED.texts)
        train(LABELLED, tmp_path / "m.onnx", config, unlabelled=unlabelled, callback=told)
        assert {given / rows for name, given in told.phases if name.startswith("choosing") and given > rows} == {passes}


class Witness:
    """A teacher who writes down what he is taught and asked."""

    name = "witness"

    def __init__(self) -> None:
        self.lessons: list[tuple[list[int], list[int], list[int]]] = []

    def answers(self, text_T: Int64, rows: Dataset, asked_A: Int64) -> Float32:
        self.lessons.append((text_T.tolist(), rows.labels.tolist(), asked_A.tolist()))
        return softmax(np.zeros((len(asked_A), 3)), axis=1).astype(np.float32)


def test_a_teacher_never_learns_from_the_rows_that_judge_him() -> None:
    pool, witness = pool_of(LABELLED, MORE.texts[:20]), Witness()
    found = ask(witness, pool, Course())
    assert isinstance(found, TeacherAnswers)
    assert len(witness.lessons) == 6
    for fold, (taught, labels, asked) in zip(pool.folds, witness.lessons, strict=False):
        assert not set(taught) & set(asked)
        assert asked == [*fold.valid, *pool.unlabelled]
        assert sorted([*taught, *fold.valid]) == [*range(60)]
        assert labels == pool.known.labels[fold.train].tolist()
    taught, _, asked = witness.lessons[-1]
    assert (taught, asked) == ([*range(60)], pool.unlabelled.tolist())
    assert found.held_out is not None
    assert found.held_out.shape == (60, 3)


def test_a_student_of_a_fold_never_learns_from_its_validation_rows() -> None:
    pool = pool_of(LABELLED, MORE.texts[:20])
    answer_UC = np.full((20, 3), 1 / 3, np.float32)
    for fold in pool.folds:
        lesson = pool.lesson(fold.train, answer_UC, 1.0)
        texts = {
            tuple(lesson.corpus.token[a:b]) for a, b in zip(lesson.corpus.start, lesson.corpus.start[1:], strict=False)
        }
        valid = pool.corpus.select(fold.valid)
        held = {tuple(valid.token[a:b]) for a, b in zip(valid.start, valid.start[1:], strict=False)}
        assert len(lesson.labels) == len(fold.train) + 20
        assert not texts & held


def test_a_lesson_is_sure_of_labels_and_as_sure_of_answers_as_the_teacher() -> None:
    pool = pool_of(LABELLED, MORE.texts[:2])
    answer_UC = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], np.float32)
    lesson = pool.lesson(np.array([4, 2]), answer_UC, 0.5)
    assert lesson.probability_RC is not None
    assert lesson.probability_RC[:2].tolist() == np.eye(3)[pool.known.labels[[4, 2]]].tolist()
    np.testing.assert_array_equal(lesson.probability_RC[2:], answer_UC)
    assert lesson.labels.tolist() == [*pool.known.labels[[4, 2]], 1, 2]
    assert lesson.weight_R is not None
    assert lesson.weight_R.tolist() == [1, 1, 0.5, 0.5]


def candidate(name: str, *right: float) -> Candidate:
    """A model that gives the right labels of held-out rows these probabilities."""
    fitted = SimpleNamespace(
        selected=SimpleNamespace(validation=LabelValidation(np.zeros(len(right), np.int64))),
        held_out=np.array([[one, 1 - one] for one in right]).reshape(-1, 2),
    )
    return Candidate(name, cast(Any, fitted))


@pytest.mark.parametrize(
    ("right", "kept"),
    [
        ([(0.5, 0.6), (0.7, 0.8), (0.6, 0.7)], "1"),
        ([(0.8, 0.8), (0.7, 0.7)], "0"),
        ([(0.5, 0.5), (0.8, 0.7), (0.8, 0.7)], "1"),
        ([(), ()], "0"),
    ],
)
def test_the_model_is_kept_that_held_out_rows_prefer_and_the_simpler_of_two_alike(
    right: list[tuple[float, ...]], kept: str
) -> None:
    first, *others = [candidate(str(i), *of_rows) for i, of_rows in enumerate(right)]
    assert preferred(first, others).name == kept


def test_a_student_is_kept_unless_held_out_rows_doubt_it_beyond_chance() -> None:
    alone = candidate("alone", 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
    # 0.4 standard errors worse, 1.9, and worse in every row alike.
    a_little = candidate("student", 0.9, 0.9, 0.9, 0.9, 0.2, 0.2, 0.2, 0.2)
    clearly = candidate("student", 0.6, 0.6, 0.3, 0.3, 0.3, 0.3, 0.4, 0.4)
    surely = candidate("student", *[0.4] * 8)
    for student, doubted, kept in ((a_little, 1.5, "student"), (a_little, 0.0, "alone"), (clearly, 1.5, "alone")):
        assert preferred(alone, [student], doubted).name == kept
    assert preferred(alone, [surely], 1.5).name == "alone"


@pytest.mark.parametrize(("teacher", "spread", "doubt"), [(0.9, 0.05, 1.5), (0.5, 0.1, 1.5), (0.1, 0.05, 0.0)])
def test_a_student_has_the_benefit_of_the_doubt_unless_his_teacher_is_doubted(
    teacher: float, spread: float, doubt: float
) -> None:
    alone = candidate("alone", 0.6, 0.5, 0.4, 0.6, 0.5, 0.4, 0.6, 0.5)
    shares = [teacher + (spread if i % 2 else -spread) for i in range(8)]
    held_out = candidate("teacher", *shares).fitted.held_out.astype(np.float32)
    distillation = Distillation(answered(0.9, list(MORE.labels)), TrainConfig())
    assert distillation._doubt(TeacherAnswers([], held_out, held_out), alone) == doubt
    assert distillation._doubt(TeacherAnswers([], held_out, None), alone) == DOUBT


def test_right_answers_help_and_are_used(tmp_path: Path) -> None:
    fit(tmp_path / "alone.onnx", None)
    report = fit(tmp_path / "student.onnx", answered(0.9, list(MORE.labels))).distillation
    assert report is not None
    assert (report.weight, report.teacher, report.given) == (1, "given probabilities", 400)
    assert accuracy(tmp_path / "student.onnx") > accuracy(tmp_path / "alone.onnx") + 0.2
    assert [score.name for score in report.scores] == ["labels alone", "student"]
    assert report.conclusion().startswith("The unlabelled texts changed the accuracy on held-out rows by +")
    told = Classifier.load(tmp_path / "student.onnx").info.training
    assert told["distillation"].keys() == {"teacher", "rows", "weight", "data_sha256"}
    assert (told["rows"], told["distillation"]["rows"]) == (60, report.used)


def test_wrong_answers_are_not_used_and_leave_no_trace(tmp_path: Path) -> None:
    turned = [NAMES[(NAMES.index(label) + 1) % 3] for label in MORE.labels]
    report = fit(tmp_path / "student.onnx", answered(0.9, turned)).distillation
    fit(tmp_path / "alone.onnx", None)
    assert report is not None
    assert report.weight == 0
    assert report.conclusion().startswith("The unlabelled texts did not help")
    assert (tmp_path / "student.onnx").read_bytes() == (tmp_path / "alone.onnx").read_bytes()


def test_a_weight_of_zero_is_a_training_without_unlabelled_texts(tmp_path: Path) -> None:
    report = fit(tmp_path / "zero.onnx", answered(0.9, list(MORE.labels)), unlabelled_weight=0)
    fit(tmp_path / "alone.onnx", None)
    assert report.distillation is None
    assert (tmp_path / "zero.onnx").read_bytes() == (tmp_path / "alone.onnx").read_bytes()


def test_a_weight_that_is_told_is_not_chosen(tmp_path: Path) -> None:
    turned = [NAMES[(NAMES.index(label) + 1) % 3] for label in MORE.labels]
    report = fit(tmp_path / "student.onnx", answered(0.9, turned), unlabelled_weight=0.5).distillation
    assert report is not None
    assert report.weight == 0.5
    student, alone = report.score("student"), report.score("labels alone")
    assert student is not None
    assert alone is not None
    assert student.cross_entropy > alone.cross_entropy


def test_the_model_teaches_itself_with_the_same_bytes_again(tmp_path: Path) -> None:
    report = fit(tmp_path / "one.onnx", plain(), unlabelled_weight=1).distillation
    fit(tmp_path / "two.onnx", plain(), unlabelled_weight=1)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()
    assert report is not None
    assert report.teacher == "itself"
    assert [score.name for score in report.scores] == ["teacher", "labels alone", "student"]
    assert {score.accuracy for score in report.scores} <= {i / 60 for i in range(61)}


def test_the_order_of_unlabelled_texts_does_not_count(tmp_path: Path) -> None:
    backwards = UnlabelledTexts.sample(map(UnlabelledText, MORE.texts[::-1]), 10_000, LABELLED.texts)
    for name, unlabelled in (("one", plain()), ("two", backwards)):
        fit(tmp_path / f"{name}.onnx", unlabelled, unlabelled_weight=1)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_validation_rows_that_are_given_judge_teacher_and_student(tmp_path: Path) -> None:
    report = train(LABELLED, tmp_path / "m.onnx", SMALL, valid=TEST, unlabelled=answered(0.9, list(MORE.labels)))
    assert report.distillation is not None
    assert (report.distillation.rows, report.distillation.weight, report.folds) == (300, 1, 1)


def test_rationales_of_labelled_rows_are_kept_beside_unlabelled_ones(tmp_path: Path) -> None:
    given = replace(LABELLED, rationales=[((0, 4),)] * 60)
    report = train(given, tmp_path / "m.onnx", SMALL, unlabelled=answered(0.9, list(MORE.labels)))
    assert report.distillation is not None
    assert report.distillation.weight == 1
    assert Classifier.load(tmp_path / "m.onnx").info.training["rationales"] == 60


def test_where_no_row_can_be_held_out_nothing_speaks_for_a_student(tmp_path: Path) -> None:
    three = LabelledTexts(texts=LABELLED.texts[:3], labels=LABELLED.labels[:3])
    unlabelled = answered(0.9, list(MORE.labels))
    report = train(three, tmp_path / "m.onnx", SMALL, unlabelled=unlabelled).distillation
    assert report is not None
    assert (report.rows, report.weight, [*report.scores]) == (0, 0, [])
    assert report.conclusion().startswith("No row could be held out, so whether the unlabelled texts help is unknown")
    told = train(three, tmp_path / "m.onnx", replace(SMALL, unlabelled_weight=1), unlabelled=unlabelled).distillation
    assert told is not None
    assert told.weight == 1
    assert told.conclusion().startswith("The unlabelled texts were used; whether they helped is unknown")
    assert accuracy(tmp_path / "m.onnx") > 0.8


class StopsAt(Callback):
    """Requests a stop when a phase begins for the n-th time."""

    def __init__(self, stop: Stop, name: str, time: int) -> None:
        self.stop, self.name, self.time = stop, name, time

    def phase(self, name: str, rows: int) -> None:
        self.time -= name == self.name
        self.stop.requested = self.time <= 0


@pytest.mark.parametrize(("phase", "time"), [("asking the teacher", 1), ("choosing 1/5", 2)])
def test_a_stop_while_the_texts_are_at_work_keeps_the_model_without_them(phase: str, time: int, tmp_path: Path) -> None:
    stop = Stop()
    callback = StopsAt(stop, phase, time)
    report = train(LABELLED, tmp_path / "m.onnx", SMALL, unlabelled=plain(), callback=callback, stop=stop)
    assert (report.interrupted, report.rows, report.distillation) == (True, 60, None)
    assert "distillation" not in Classifier.load(tmp_path / "m.onnx").info.training


@pytest.mark.parametrize(
    ("options", "unlabelled", "error", "said"),
    [
        (
            {"teacher": "x"},
            None,
            ConfigError,
            "^A teacher needs unlabelled texts to label, and there are none; give some, or",
        ),
        (
            {"teacher": "x"},
            answered(0.9, list(MORE.labels)),
            ConfigError,
            "^The unlabelled texts come with probabilities",
        ),
        (
            {},
            UnlabelledTexts.sample([], 9, []),
            InputError,
            "^There are no unlabelled texts with a word or symbol",
        ),
        (
            {},
            UnlabelledTexts.sample([UnlabelledText("a")], 9, ["a"]),
            InputError,
            "^There are no unlabelled texts, only duplicates of labelled ones; give others, or train without them",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_work(
    options: dict[str, Any], unlabelled: UnlabelledTexts | None, error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        fit(tmp_path / "m.onnx", unlabelled, **options)
    assert not [*tmp_path.iterdir()]


def test_given_answers_are_known_of_the_texts_that_were_answered() -> None:
    pool_PC = np.full((13, 3), np.nan, np.float32)
    pool_PC[10:] = np.eye(3)
    teacher = GivenAnswers(pool_PC)
    nothing = np.zeros(0, np.int64)
    rows = dataset_of(LABELLED).select(nothing)
    found = teacher.answers(nothing, rows, np.array([12, 10]))
    assert found is not None
    np.testing.assert_array_equal(found, np.eye(3, dtype=np.float32)[[2, 0]])
    assert teacher.answers(nothing, rows, np.array([9, 10])) is None


def test_hard_answers_become_as_sure_as_they_are_right_on_labelled_rows() -> None:
    rng = np.random.default_rng(0)
    label_R = rng.integers(0, 3, 400)
    said_R = np.where(np.arange(400) % 4 == 0, (label_R + 1) % 3, label_R)  # three of four are right
    teacher = GivenAnswers(np.eye(3, dtype=np.float32)[said_R])
    taught, asked = np.arange(300), np.arange(300, 400)
    rows = dataset_of(made(300, 0))._replace(labels=label_R[taught])
    found = teacher.answers(taught, rows, asked)
    assert found is not None
    assert found.argmax(1).tolist() == said_R[asked].tolist()
    assert found.max(1).mean() == pytest.approx(0.75, abs=0.02)


def test_a_file_that_answers_labelled_rows_as_well_is_judged_by_them(tmp_path: Path) -> None:
    both = LabelledTexts(texts=[*LABELLED.texts, *MORE.texts], labels=[*LABELLED.labels, *MORE.labels])
    rows = [
        UnlabelledText(text, [0.8 if name == label else 0.1 for name in NAMES])
        for text, label in zip(both.texts, both.labels, strict=True)
    ]
    # A tenth of the labelled rows are answered wrong.
    for i in range(0, 60, 10):
        told = rows[i].probabilities or ()
        rows[i] = UnlabelledText(rows[i].text, [*told[1:], told[0]])
    unlabelled = UnlabelledTexts.sample(rows, 10_000, LABELLED.texts)
    assert (len(unlabelled.texts), unlabelled.copies, len(unlabelled.of_labelled)) == (400, 60, 60)
    report = fit(tmp_path / "m.onnx", unlabelled).distillation
    assert report is not None
    assert [score.name for score in report.scores] == ["teacher", "labels alone", "student"]
    teacher = report.score("teacher")
    assert teacher is not None
    assert teacher.accuracy == pytest.approx(0.9)
    some = UnlabelledTexts.sample(rows[1:], 10_000, LABELLED.texts)
    assert some.sha256() != unlabelled.sha256()
    report = fit(tmp_path / "m.onnx", some).distillation
    assert report is not None
    assert [score.name for score in report.scores] == ["labels alone", "student"]


def with_sets(given: LabelledTexts) -> LabelledTexts:
    """Rows that name one of three labels, and a fourth one by their number; every tenth has none of the three."""
    sets = [
        {name: 1.0 for name, there in ((label, i % 10 > 0), ("odd", text.split()[0] > "filler3")) if there}
        for i, (text, label) in enumerate(zip(given.texts, given.labels, strict=True))
    ]
    return LabelledTexts(texts=given.texts, label_sets=sets)


SEVERAL_NAMES = sorted([*NAMES, "odd"])


def answered_sets(sure: float) -> UnlabelledTexts:
    """The texts of `MORE`, with answers that give what they mean a probability of `sure`, and the rest 0.01."""
    given = with_sets(MORE)
    assert given.label_sets is not None
    rows = [
        UnlabelledText(text, [sure if name in labels else 0.01 for name in SEVERAL_NAMES])
        for text, labels in zip(given.texts, given.label_sets, strict=True)
    ]
    return UnlabelledTexts.sample(rows, 10_000, LABELLED.texts)


def test_given_probabilities_of_several_labels_teach_a_student(tmp_path: Path) -> None:
    more, test = answered_sets(0.95), with_sets(TEST)
    report = train(with_sets(LABELLED), tmp_path / "student.onnx", replace(SMALL, epochs=10), unlabelled=more)
    train(with_sets(LABELLED), tmp_path / "alone.onnx", replace(SMALL, epochs=10))
    assert report.distillation is not None
    assert [score.name for score in report.distillation.scores] == ["labels alone", "student"]
    assert (report.distillation.kept, report.distillation.rows) == ("student", 60)
    models = [Classifier.load(tmp_path / f"{name}.onnx") for name in ("student", "alone")]
    rows = list(zip(test.texts, test.label_sets or (), strict=True))
    f1 = [textcls.evaluate(model, rows).report.micro_f1 for model in models]
    assert f1[0] > f1[1] + 0.1
    assert models[0].info.training["distillation"]["teacher"] == "given probabilities"


def test_a_model_of_several_labels_teaches_itself_and_is_kept_only_if_it_helps(tmp_path: Path) -> None:
    report = train(with_sets(LABELLED), tmp_path / "m.onnx", SMALL, unlabelled=plain())
    assert report.distillation is not None
    assert report.distillation.teacher == "itself"
    assert [score.name for score in report.distillation.scores] == ["teacher", "labels alone", "student"]


def test_a_lesson_of_several_labels_leaves_out_what_the_teacher_thinks_hardly_possible() -> None:
    given = with_sets(LABELLED)
    dataset = dataset_of(given)
    pool = Pool(dataset.corpus, dataset.select(np.arange(50)), np.arange(50), np.arange(50, 60), (), 4)
    answer_UC = np.tile(np.array([0.9, 0.004, 0.4, 0.0], np.float32), (10, 1))
    lesson = pool.lesson(np.arange(2), answer_UC, 1.0)
    assert lesson.probability_RC is None
    found = lesson.target(4)
    np.testing.assert_array_equal(found[:2], dataset.target(4)[:2])
    np.testing.assert_array_equal(found[2:], np.tile(np.array([0.9, 0, 0.4, 0], np.float32), (10, 1)))


def test_a_score_holds_accuracy_and_the_likelihood_of_right_labels() -> None:
    score = HeldOutScore.of("student", np.array([[0.9, 0.1], [0.8, 0.2]]), LabelValidation(np.array([0, 1])))
    assert score.accuracy == 0.5
    assert score.cross_entropy == pytest.approx(-(np.log(0.9) + np.log(0.2)) / 2, rel=1e-5)
