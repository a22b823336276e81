"""What a student's file owes to who asks it, and what keeps rows apart that must not meet."""

from pathlib import Path

import numpy as np
import pytest

from faithfulness.benchmark import explain_benchmark
from faithfulness.results import BenchmarkResult
from tests.training.distillation.test_distil import (
    FILLER,
    LABELLED,
    MORE,
    NAMES,
    WORDS,
    Witness,
    answered,
    fit,
    made,
    pool_of,
)
from textcls import Classifier
from textcls.model.tokenizer import tokenize
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.distillation.distil import ask
from textcls_training.fit.course import Course

TEXTS = ("", "refund", "zzqqxx", "card parcel login", "filler1 invoicee filler2 payment!", "box box box")


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Classifier:
    path = tmp_path_factory.mktemp("student") / "m.onnx"
    report = fit(path, answered(0.9, list(MORE.labels)), ngrams=(3,), epochs=10).distillation
    assert report is not None
    assert report.weight == 1
    return Classifier.load(path)


@pytest.mark.parametrize("text", TEXTS)
def test_contributions_of_a_student_and_their_parts_add_up_to_the_logits(student: Classifier, text: str) -> None:
    found = student.predict(text, explain=True).explanation
    assert found is not None
    logits = np.array([*found.logits.values()])
    scale = 1e-4 * (1 + np.abs(logits).max())
    np.testing.assert_allclose(student.info.bias + found.contributions.sum(0), logits, atol=scale)
    parts = [[*part.contributions.values()] for part in student.parts(text)]
    total = np.sum(parts, 0) if parts else np.zeros(len(student.labels))
    np.testing.assert_allclose(total, found.contributions.sum(0), atol=scale)


def test_a_student_answers_otherwise_without_what_its_contributions_name(student: Classifier) -> None:
    texts = made(30, 3).texts
    names = ("contributions", "leave_one_out", "random")
    found = explain_benchmark(student, texts, methods=names, removals=["delete"])
    ours, theirs, chance = (_delete(found, name) for name in names)
    assert ours["loo_tau"] > 0.5
    assert ours["comprehensiveness"] > 0.95 * theirs["comprehensiveness"]
    assert ours["comprehensiveness"] > 2 * chance["comprehensiveness"]
    assert ours["sufficiency"] < chance["sufficiency"]


def _delete(found: BenchmarkResult, name: str) -> dict[str, float]:
    """Return the figures of a method where removed tokens are deleted."""
    (method,) = (method for method in found.methods if method.name == name)
    return {
        figure: estimate.value for figure, estimate in method.figures["delete"].items() if estimate.value is not None
    }


def test_a_student_names_the_word_that_stands_for_the_label(student: Classifier) -> None:
    words = {name: [word for word in WORDS[name] if any(word in text.split() for text in MORE.texts)] for name in NAMES}
    for name in NAMES:
        found = student.predict(" ".join([*FILLER[:3], words[name][0], *FILLER[3:6]]), explain=True)
        assert found.label == name
        assert found.explanation is not None
        assert int(found.explanation.contributions[:, NAMES.index(name)].argmax()) == 3


def test_copies_of_a_text_are_on_one_side_of_a_split_and_among_no_unlabelled_texts() -> None:
    again = [f"  {text.upper()}  " for text in LABELLED.texts[:20]]
    # Half of the copies have another label.
    labels = [*LABELLED.labels, *LABELLED.labels[:10], *[NAMES[0]] * 10]
    given = LabelledTexts(texts=[*LABELLED.texts, *again], labels=labels)
    mixed = [*MORE.texts[:30], *LABELLED.texts, *again, *MORE.texts[:5]]
    unlabelled = UnlabelledTexts.sample(map(UnlabelledText, mixed), 10_000, given.texts)
    assert (len(unlabelled.texts), unlabelled.copies) == (30, 80)
    texts = [" ".join(tokenize(text)) for text in (*given.texts, *unlabelled.texts)]
    pool, witness = pool_of(given, unlabelled.texts), Witness()
    ask(witness, pool, Course())
    assert len(witness.lessons) == 6
    for fold, (taught, _, asked) in zip(pool.folds, witness.lessons, strict=False):
        held = {texts[i] for i in fold.valid}
        assert held
        assert not held & {texts[i] for i in taught}
        assert not held & {texts[i] for i in pool.unlabelled}
        assert sorted([*taught, *asked]) == [*range(len(texts))]


def test_unlabelled_texts_that_are_copies_of_labelled_ones_change_no_byte(tmp_path: Path) -> None:
    rows = [UnlabelledText(text) for text in MORE.texts[:50]]
    copies = [UnlabelledText(f" {text.upper()}") for text in LABELLED.texts]
    for name, given in (("one", rows), ("two", [*copies, *rows, *copies, *rows])):
        unlabelled = UnlabelledTexts.sample(given, 10_000, LABELLED.texts)
        fit(tmp_path / f"{name}.onnx", unlabelled, unlabelled_weight=1)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()
