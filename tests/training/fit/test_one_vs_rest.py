"""Machines of one label against the rest: their features, their solver, and when a training keeps them."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from tests.command_line import succeed
from tests.training.helpers import dataset_of
from textcls import Classifier
from textcls.errors import ConfigError
from textcls.model.label_sets import LabelSet
from textcls_training.config.resolve import ResolvedConfig, one_vs_rest, resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Float32, Float64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.one_vs_rest.features import Features
from textcls_training.fit.one_vs_rest.solver import descend
from textcls_training.fit.one_vs_rest.trainer import OneVsRestTrainer
from textcls_training.pipeline import either_way
from textcls_training.pipeline.training import run, train
from textcls_training.state import folder as state_folder
from textcls_training.state.checkpoints import FitState
from textcls_training.state.folder import FileCheckpoint

WORDS = [f"word{i}" for i in range(40)]
LABELS = ["billing", "returns", "shipping"]


def rows(number: int, seed: int = 0, sure: float = 1.0) -> LabelledTexts:
    """Texts of words by chance, some twice; a label is there where its word or another of its words is."""
    rng = np.random.default_rng(seed)
    texts, sets = [], []
    for _ in range(number):
        words = rng.choice(WORDS, rng.integers(2, 9))
        found = {label: sure for i, label in enumerate(LABELS) if {WORDS[i], WORDS[i + 5]} & set(words)}
        texts.append(" ".join(words))
        sets.append(found)
    return LabelledTexts(texts=texts, label_sets=sets, names=LABELS)


def configured(dataset: Dataset, passes: int = 6, **options: object) -> ResolvedConfig:
    config = TrainConfig(ngrams=(3,), epochs=passes, **options)  # type: ignore[arg-type]
    rows, tokens = [""] * len(dataset.labels), len(dataset.corpus.token)
    found = resolve(config, rows, tokens, len(LABELS), label_rows=20.0, names=LABELS, impl="compiled")
    return one_vs_rest(found, config, len(LABELS))


def fitted(given: LabelledTexts, passes: int = 6, **options: object) -> OneVsRestTrainer:
    dataset = dataset_of(given)
    trainer = OneVsRestTrainer(dataset, len(LABELS), configured(dataset, passes, **options))
    trainer.train(passes)
    return trainer


def dense(features: Features, columns: int) -> Float64:
    found = np.zeros((len(features.start) - 1, columns))
    for i in range(len(found)):
        part = slice(features.start[i], features.start[i + 1])
        found[i, features.feature[part]] = features.value[part]
    return found


def margins(trainer: OneVsRestTrainer, texts: LabelledTexts) -> Float64:
    return np.asarray(trainer.predict(trainer.encode(dataset_of(texts).corpus)), np.float64)


def test_features_are_those_of_the_formula() -> None:
    given = rows(30)
    trainer = fitted(given, 1)
    view = trainer.machines[0]
    weight_F = view.space.weight.astype(np.float64)
    found = dense(view.features, len(weight_F))
    types = trainer.dataset.corpus.types
    row_of = dict(zip(types, view.space.word_rows(types).tolist(), strict=True))
    for text, found_F in zip(given.texts, found, strict=True):
        words = text.split()
        times = Counter(words)
        pairs = view.space.encode(Corpus.of([text], 48))
        expected, square = np.zeros(len(weight_F)), 0.0
        for t, word in enumerate(words):
            owned = [*row_of[word], *pairs.sequence_row[0, t : t + 2].tolist()]
            for row in owned:
                expected[row] += weight_F[row] / times[word]
                square += (weight_F[row] / times[word]) ** 2
        np.testing.assert_allclose(found_F, expected / math.sqrt(square), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("cost", [{}, {"class_weight": {"billing": 3.0}}])
def test_machines_are_those_of_liblinear(cost: dict[str, object]) -> None:
    trainer = fitted(rows(200), 200, **cost)
    target = trainer.dataset.target(len(LABELS)) >= 0.5
    for view in trainer.machines:
        features = dense(view.features, len(view.space.weight))
        for c in range(len(LABELS)):
            weight = {1: 3.0} if cost and c == 0 else None
            peer = LinearSVC(C=1.0, tol=1e-7, max_iter=100_000, class_weight=weight).fit(features, target[:, c])
            np.testing.assert_allclose(view.weight_FC[:, c], peer.coef_[0], atol=2e-3)
            assert view.bias_C[c] == pytest.approx(peer.intercept_[0], abs=2e-3)


def test_any_seed_gives_the_same_machines() -> None:
    one, other = (margins(fitted(rows(150), 60, seed=seed), rows(50, 1)) for seed in (0, 12345))
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_a_mistake_that_costs_twice_as_much_counts_as_two_rows() -> None:
    rng = np.random.default_rng(0)
    target_NC = np.where(rng.random((40, 2)) < 0.4, 1, -1).astype(np.float32)
    values = rng.normal(0, 0.5, (40, 5)).astype(np.float32)

    def machines(which: list[int], cost: Float32) -> Float32:
        start, feature = np.arange(len(which) + 1) * 5, np.tile(np.arange(5, dtype=np.int32), len(which))
        features = Features(start, feature, values[which].ravel())
        cost_NC, dual_NC = target_NC[which] * cost[:, None], np.zeros((len(which), 2), np.float32)
        weight_FC, bias_C = np.zeros((5, 2), np.float32), np.zeros(2, np.float32)
        for _ in range(5000):
            descend(features, np.arange(len(which)), cost_NC, dual_NC, weight_FC, bias_C)
        return weight_FC

    every = list(range(40))
    heavy = machines(every, np.where(np.arange(40) < 10, 2, 1).astype(np.float32))
    np.testing.assert_allclose(heavy, machines([*every, *range(10)], np.ones(50, np.float32)), atol=1e-3)


def test_a_target_of_one_half_says_nothing_and_an_uncertain_one_less() -> None:
    sets: list[LabelSet] = [{"billing": 0.5, "returns": 0.9}, {"shipping": 1.0}]
    given = LabelledTexts(texts=["word1 word2", "word3"], label_sets=sets, names=LABELS)
    expected = np.array([[0, 0.8, -1], [-1, -1, 1]], np.float32)
    np.testing.assert_allclose(fitted(given, 1)._cost_NC, expected, atol=1e-6)


def test_a_file_counts_each_distinct_token_once_in_every_text_of_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    train(rows(120), path, TrainConfig(impl="one-vs-rest", bigrams=False, ngrams=(3,)))
    classifier = Classifier.load(path)
    assert classifier.info.format_version == 3
    texts = [
        "word1 word7",
        "word1 word1 word7 word1",
        "word7 word1 word7",
        "strange word1 strange",
        "strange word1",
        "",
    ]
    one, repeated, turned, odd, odd_once, _ = (answer.probabilities for answer in classifier.predict(texts))
    np.testing.assert_allclose(repeated, one, atol=1e-6)
    np.testing.assert_allclose(turned, one, atol=1e-6)
    np.testing.assert_allclose(odd, odd_once, atol=1e-6)
    for text, answer in zip(texts, classifier.predict(texts), strict=True):
        np.testing.assert_allclose(classifier.predict([text])[0].probabilities, answer.probabilities, atol=1e-6)


@pytest.mark.parametrize(("prefers", "version"), [(True, 2), (False, 3)])
def test_held_out_rows_choose_between_machines_and_gradient_steps(
    prefers: bool, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(either_way, "better", lambda *_: prefers)
    path = tmp_path / "model.onnx"
    trained = run(rows(120), path, TrainConfig(ngrams=(3,)))
    assert Classifier.load(path).info.format_version == version
    assert any(trained.model.distinct) != prefers
    assert trained.report.trainer == ("compiled" if prefers else "one-vs-rest")
    assert ("one linear machine per label" in succeed("inspect", path)) != prefers
    assert len(trained.selected.validation) == 120


def test_options_of_gradient_steps_leave_machines_out(tmp_path: Path) -> None:
    assert not any(run(rows(120), tmp_path / "model.onnx", TrainConfig(ngrams=(3,), dim=8, epochs=2)).model.distinct)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"dim": 8}, "dim"),
        ({"vectors": "english"}, "vectors"),
        ({"mixing": "pool"}, "mixing"),
        ({"device": "cuda"}, "device cuda"),
    ],
)
def test_machines_that_cannot_be_had_are_refused_in_a_sentence(
    options: dict[str, object], what: str, tmp_path: Path
) -> None:
    config = TrainConfig(impl="one-vs-rest", **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=what):
        train(rows(60), tmp_path / "model.onnx", config)
    one_label = LabelledTexts(texts=["one", "two"] * 5, labels=["a", "b"] * 5)
    with pytest.raises(ConfigError, match="is for texts with several labels, and these have one each; leave it out"):
        train(one_label, tmp_path / "model.onnx", TrainConfig(impl="one-vs-rest"))


def test_machines_keep_no_state_of_a_sample_of_their_rows(tmp_path: Path) -> None:
    config = TrainConfig(impl="one-vs-rest", ngrams=(3,), rehearsal_rows=10)
    with pytest.raises(ConfigError, match="needs a state that holds all rows; raise rehearsal_rows"):
        train(rows(60), tmp_path / "model.onnx", config, state=tmp_path / "state")
    tried = run(rows(60), tmp_path / "model.onnx", replace(config, impl="auto"), state=tmp_path / "state")
    assert not any(tried.model.distinct)


class _Killed(BaseException):
    """The process ends here."""


def test_machines_that_are_killed_after_a_pass_go_on_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, path, config = rows(120), tmp_path / "model.onnx", TrainConfig(impl="one-vs-rest", ngrams=(3,))
    train(given, path, config)
    whole, kept, write = path.read_bytes(), list[int](), FileCheckpoint._write
    monkeypatch.setattr(state_folder, "EVERY_SECONDS", 0)
    monkeypatch.setattr(state_folder, "WRITING_SHARE", 0)

    def write_and_die(checkpoint: FileCheckpoint, state: FitState) -> None:
        write(checkpoint, state)
        kept.append(1)
        if len(kept) == 3:
            raise _Killed

    with monkeypatch.context() as until_then:
        until_then.setattr(FileCheckpoint, "_write", write_and_die)
        with pytest.raises(_Killed):
            train(given, path, config, state=tmp_path / "state")
    train(given, path, config, state=tmp_path / "state")
    assert path.read_bytes() == whole


class _StopsAt(Callback):
    """A callback that asks for a stop when a phase begins."""

    def __init__(self, stop: Stop, phase: str) -> None:
        self.stop, self.at, self.seen, self.notes = stop, phase, list[str](), list[str]()

    def phase(self, name: str, rows: int) -> None:
        self.seen.append(name)
        # The first of that name is the one of the machines.
        self.stop.requested = self.stop.requested or self.seen.count(self.at) == 2

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_stop_while_gradient_steps_are_tried_keeps_the_machines(tmp_path: Path) -> None:
    stop = Stop()
    callback = _StopsAt(stop, "choosing 1/5")
    found = run(rows(120), tmp_path / "model.onnx", TrainConfig(ngrams=(3,)), callback=callback, stop=stop)
    assert callback.seen.count("choosing 1/5") == 2
    assert all(found.model.distinct)
    assert not found.selected.interrupted
    assert any("gradient steps were not tried" in note for note in callback.notes)
