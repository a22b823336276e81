"""The compiled trainer against the reference: gradients, updates, whole trainings, and who trains what."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import torch

from tests.training.helpers import Recorder, classes_of, dataset_of, resolved
from textcls.data import read_labelled
from textcls.errors import ConfigError
from textcls_torch.fit.trainer import Trainer
from textcls_torch.fit.view_learner import ViewLearner
from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.hashed_embedding import HashedEmbedding
from textcls_training.config.resolve import MANY_LABELS, ResolvedConfig, chosen_impl
from textcls_training.config.settings import ModelConfig, OptimConfig, TrainConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.compiled.arrays import Dense
from textcls_training.fit.compiled.head import TOGETHER
from textcls_training.fit.compiled.learner import Learner
from textcls_training.fit.compiled.trainer import STEPS_AT_ONCE, CompiledTrainer
from textcls_training.fit.course import Course
from textcls_training.fit.cross_fit import ValidatedFit, cross_fit, make_trainer
from textcls_training.fit.threads import reproducible
from textcls_training.models.ensemble import HashedView
from textcls_training.models.linear_classifier import LinearClassifier
from textcls_training.vectors.word_vectors import WordVectors

TEXTS = ("one two three", "two two, three four!", "", "five", "one", "six five four three two one", "seven")
LABELS = np.array([0, 1, 2, 0, 1, 2, 0], np.int64)
SOFT = np.random.default_rng(0).dirichlet(np.ones(3), len(TEXTS)).astype(np.float32)
WEIGHTS = np.array([1, 2, 0, 0.5, 1, 3, 1], np.float32)
SETS = LabelMatrix.of([{"a": 1}, {"a": 1, "b": 0.5}, {}, {"c": 0.25}, {"b": 1, "c": 1}, {"a": 1}, {}], "abc")
WORDS = ("one", "three", "four", "seven", "eight")
ROWS = np.random.default_rng(2).normal(0, 0.2, (len(WORDS), 6)).astype(np.float32)
VECTORS = WordVectors(WORDS, ROWS, {}, "")


def dataset(**more: Any) -> Dataset:
    return Dataset(Corpus.of(TEXTS, 5), LABELS, **more)


HARD, SEVERAL = dataset(), dataset(sets=SETS)
CASES: dict[str, tuple[Dataset, dict[str, Any]]] = {
    "hard targets": (HARD, {}),
    "attention that begins even": (HARD, {"even": True}),
    "softmax attention": (HARD, {"model": ModelConfig(dim=8, attention="softmax")}),
    "two seeds": (HARD, {"model": ModelConfig(dim=8, seeds=2)}),
    "mixed values, which nothing mixes": (HARD, {"model": ModelConfig(dim=8, values="mixed")}),
    "soft targets and weights": (dataset(probability_RC=SOFT, weight_R=WEIGHTS), {}),
    "balanced labels": (HARD, {"class_weight": "balanced"}),
    "weights of labels": (dataset(probability_RC=SOFT), {"class_weight": (1.0, 2.0, 0.0)}),
    "several labels": (SEVERAL, {}),
    "several labels, balanced, with weights": (dataset(sets=SETS, weight_R=WEIGHTS), {"class_weight": "balanced"}),
    "words alone": (HARD, {"ngrams": (), "bigrams": False}),
    "trigrams": (HARD, {"trigrams": True}),
    "vectors of words": (HARD, {"word_vectors": VECTORS}),
}


def configuration(
    data: Dataset,
    *,
    even: bool = False,
    trigrams: bool = False,
    class_weight: Any = "none",
    word_vectors: WordVectors | None = None,
    **told: Any,
) -> ResolvedConfig:
    # Large rows: those of a fresh table say so little that a wrong gradient of the attention would hardly show.
    optim = OptimConfig(batch_size=7, table_std=1.0, table_accumulator=0.1, warmup=0.0)
    config = resolved(data, **{"optim": optim, "ngrams": (3,), "vectors": "none", **told})
    features = replace(config.features, trigrams=trigrams)
    return replace(
        config,
        features=features,
        even_attention=even,
        class_weight=class_weight,
        impl="compiled",
        vectors=word_vectors,
    )


def pair(data: Dataset, config: ResolvedConfig, classes: int = 3) -> tuple[CompiledTrainer, Trainer]:
    """Both trainers, with the same weights."""
    ours = CompiledTrainer(data, classes, config)
    reference = Trainer(data, classes, replace(config, impl="reference"))
    for learner, other in zip(ours.learners, reference.learners, strict=True):
        if isinstance(other.embedding, HashedEmbedding):
            other.embedding.table.row_VD[:] = learner.table.row_VD
        for weight, found in zip(dense_of(other), parts(learner.weights), strict=True):
            weight.data.copy_(torch.from_numpy(found))
    return ours, reference


def parts(dense: Dense) -> list[Float32]:
    """The weights but the empty ones."""
    return [part for part in dense[1:] if part.size]


def dense_of(learner: ViewLearner) -> list[torch.Tensor]:
    """The same weights of the reference, in the same order."""
    attention, head = learner.classifier.attention, learner.classifier.head
    if attention.plain_SD is not None:
        return [attention.plain_SD, head.bias, head.weight]
    return [attention.seed_SD, attention.forget_DD, attention.candidate_DD, head.bias, head.weight]


def shuffle_weights(learners: Sequence[Learner]) -> None:
    """Move weights that begin at zero away from where their neighbours have no gradients."""
    rng = np.random.default_rng(1)
    for learner in learners:
        learner.weights.flat[:] += rng.normal(0, 0.3, len(learner.weights.flat)).astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_gradients_and_updates_of_a_step_are_those_of_the_reference(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, told = CASES[case]
    monkeypatch.setattr(CompiledTrainer, "__init__", shuffled(CompiledTrainer.__init__))
    assert_same_step(data, configuration(data, **told), np.array([5, 0, 2, 1, 6, 3, 4]), 3)


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_with_many_labels_texts_that_go_through_the_head_together_learn_as_one_by_one(
    several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{c:03}" for c in range(MANY_LABELS + 1)]
    rng = np.random.default_rng(3)
    label_R = rng.integers(0, len(names), 2 * TOGETHER + 3)
    texts = [f"{TEXTS[i % len(TEXTS)]} {i % 5}" for i in range(len(label_R))]
    sets = LabelMatrix.of([{names[label]: 1, names[-1]: 0.5} for label in label_R], names) if several else None
    data = Dataset(Corpus.of(texts, 9), label_R, sets=sets)
    optim = OptimConfig(batch_size=len(texts), table_std=1.0, table_accumulator=0.1, warmup=0.0)
    monkeypatch.setattr(CompiledTrainer, "__init__", shuffled(CompiledTrainer.__init__))
    assert_same_step(data, configuration(data, optim=optim), rng.permutation(len(texts)), len(names))


def assert_same_step(data: Dataset, config: ResolvedConfig, text_B: Int64, classes: int) -> None:
    """Take one step by both trainers, and compare."""
    ours, reference = pair(data, config, classes)
    start = [learner.table.row_VD.copy() for learner in ours.learners]
    loss = ours._train([text_B])[0]
    wanted = float(reference._step(text_B)) / (reference.views * len(text_B))
    assert loss == pytest.approx(wanted, rel=1e-5)
    mean_of = {
        id(weight): mean for group in reference.dense for weight, mean in zip(group.params, group._mean, strict=True)
    }
    for learner, other, before in zip(ours.learners, reference.learners, start, strict=True):
        for weight, mean in zip(dense_of(other), parts(learner._moments[0]), strict=True):
            wanted_mean = mean_of[id(weight)].numpy()
            # AdamW's first mean is a tenth of the gradient.
            np.testing.assert_allclose(mean, wanted_mean, rtol=2e-4, atol=1e-5 * np.abs(wanted_mean).max())
        for weight, found in zip(dense_of(other), parts(learner.weights), strict=True):
            np.testing.assert_allclose(found, weight.detach().numpy(), atol=1e-4)
        if not isinstance(other.embedding, HashedEmbedding):
            np.testing.assert_array_equal(learner.table.row_VD, before)
            continue
        moved = other.embedding.table.row_VD - before
        assert np.abs(moved).max() > 0.01
        np.testing.assert_allclose(learner.table.row_VD - before, moved, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(learner.table.sum_V, other.embedding.table.sum_V, rtol=1e-4)
        assert not learner.table.number_V.any()
        assert not learner.table.row_VD[0].any()


def shuffled(init: Any) -> Any:
    def made(self: CompiledTrainer, *given: Any) -> None:
        init(self, *given)
        shuffle_weights(self.learners)

    return made


@pytest.fixture(scope="module")
def rows(sample_path: Path) -> Dataset:
    """All rows of the bundled table."""
    found = read_labelled(sample_path, ["text"], "label")
    return dataset_of(LabelledTexts(texts=found.texts, labels=found.labels))


def test_a_whole_training_answers_as_that_of_the_reference_from_the_same_start(rows: Dataset) -> None:
    split = rows.split(np.arange(len(rows.labels)) % 4 == 0)
    config = replace(resolved(split.train, epochs=4, dim=16, vectors="none"), impl="compiled")
    classes = classes_of(rows)
    logits, right = [], []
    for trainer in pair(split.train, config, classes):
        with reproducible(0):
            trainer.train(config.epochs)
            logits.append(trainer.predict(trainer.encode(split.valid.corpus)))
        right.append((logits[-1].sum(0).argmax(1) == split.valid.labels).mean())
    # They begin alike, and rounding grows with every step.
    np.testing.assert_allclose(logits[0], logits[1], atol=0.05 * np.abs(logits[1]).max())
    assert right[0] == pytest.approx(right[1], abs=0.015)
    assert right[0] > 0.5


@pytest.mark.parametrize("case", ["hard targets", "several labels", "vectors of words"])
def test_a_trained_model_says_what_its_trainer_predicts(case: str) -> None:
    data, told = CASES[case]
    trainer = CompiledTrainer(data, 3, configuration(data, **told))
    trainer.train(2)
    logits_VRC = trainer.predict(trainer.encode(data.corpus))
    views = trainer.trained_model((1.0,) * trainer.views).table_views
    reference = Trainer(data, 3, configuration(data, **told))
    for view, other, logits_RC in zip(views, reference.learners, logits_VRC, strict=True):
        assert isinstance(view.classifier, LinearClassifier)
        module = ViewClassifier.of(view.classifier)
        if isinstance(view, HashedView):
            assert isinstance(other.embedding, HashedEmbedding)
            other.embedding.table.row_VD[:] = view.table_VD
        given = other.read(other.embedding.encode(data.corpus), np.arange(len(TEXTS)))
        with torch.no_grad():
            np.testing.assert_allclose(module(*given.tensors(other.device)), logits_RC, rtol=1e-4, atol=1e-5)
            folded_VSY = module.fold(torch.from_numpy(view.table_VD)).numpy()
        np.testing.assert_allclose(view.classifier.folded(view.table_VD), folded_VSY, rtol=1e-4, atol=1e-5)
        assert (module.foldable, module.labels) == (view.classifier.foldable, view.classifier.labels)
        assert view.classifier.numbers == other.classifier.numbers


def test_training_twice_gives_the_same_bytes_and_another_seed_gives_others(rows: Dataset) -> None:
    found = []
    for seed in (0, 0, 1):
        trainer = make_trainer(rows, classes_of(rows), replace(resolved(rows, seed=seed), impl="compiled"))
        trainer.train(1)
        found.append(trainer.predict(trainer.encode(rows.corpus)).tobytes())
    assert found[0] == found[1] != found[2]


def test_a_view_learns_the_same_whether_or_not_another_learns_beside_it(rows: Dataset) -> None:
    tables = []
    for ngrams in ((), (3,)):
        trainer = CompiledTrainer(rows, classes_of(rows), replace(resolved(rows, ngrams=ngrams), impl="compiled"))
        trainer.train(1)
        tables.append(trainer.learners[0].table.row_VD)
    np.testing.assert_array_equal(tables[0], tables[1])


def test_a_callback_is_told_of_every_row_and_every_epoch(rows: Dataset) -> None:
    callback = Recorder()
    config = replace(resolved(rows), impl="compiled")
    trainer = CompiledTrainer(rows, classes_of(rows), config)
    trainer.train(3, callback)
    assert sum(number for number, _ in callback.steps) == 3 * len(rows.labels)
    assert (trainer.step_number, trainer.epochs) == (trainer.steps, 3)
    assert callback.epochs == [(1, None), (2, None), (3, None)]
    losses = np.array_split([loss for _, loss in callback.steps], 3)
    assert losses[0].mean() > losses[2].mean()
    assert losses[0][0] == pytest.approx(np.log(classes_of(rows)), rel=0.2)


def test_a_stop_is_noticed_within_an_epoch(rows: Dataset) -> None:
    config = replace(resolved(rows, optim=OptimConfig(batch_size=2)), impl="compiled")
    trainer = CompiledTrainer(rows, classes_of(rows), config)

    class Stopping(Recorder):
        def step(self, rows: int, loss: float | None = None) -> None:
            trainer.stop.requested = True

    trainer.train(3, Stopping())
    assert trainer.epochs == 0
    assert trainer.step_number == STEPS_AT_ONCE < trainer.steps // 3


@pytest.mark.parametrize("told", [{"rate": 1e30}, {"table_rate": 1e38}], ids=str)
def test_a_training_that_diverges_ends_with_advice(told: dict[str, Any], rows: Dataset) -> None:
    config = replace(resolved(rows, optim=OptimConfig(**told)), impl="compiled")
    trainer = CompiledTrainer(rows, classes_of(rows), config)

    def train() -> None:
        trainer.train(2)
        trainer.predict(trainer.encode(rows.corpus))

    with pytest.raises(ConfigError, match=r"^Training diverged.*not finite; lower the learning rate\.$"):
        train()


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({"mixing": "gmlp"}, "mixing 'gmlp'"),
        ({"attention": "cosine"}, "attention 'cosine'"),
        ({"attention": "metric"}, "attention 'metric'"),
        ({"embedding": "bits"}, "embedding 'bits'"),
        ({"device": "cuda"}, "a GPU"),
        ({"model": ModelConfig(dropout=0.1)}, "dropout"),
        ({"model": ModelConfig(metric=True)}, "metric scores"),
    ],
)
def test_what_the_compiled_loops_do_not_know_is_for_the_reference(told: dict[str, Any], what: str) -> None:
    assert chosen_impl(TrainConfig(**told)) == "reference"
    with pytest.raises(ConfigError, match=f"^The compiled trainer does not support {what}; choose impl reference"):
        chosen_impl(TrainConfig(**told, impl="compiled"))


def test_the_default_model_is_for_the_compiled_loops_unless_the_reference_is_wanted() -> None:
    assert chosen_impl(TrainConfig()) == chosen_impl(TrainConfig(impl="compiled")) == "compiled"
    assert chosen_impl(TrainConfig(attention="softmax", device="cpu")) == "compiled"
    assert chosen_impl(TrainConfig(impl="reference")) == "reference"
    assert chosen_impl(TrainConfig(), rationales=True) == "reference"


def test_the_default_model_is_trained_and_saved_without_pytorch(sample_path: Path, tmp_path: Path) -> None:
    code = """
import sys
from textcls.cli import main
main(["train", sys.argv[1], "--output", sys.argv[2], "--epochs", "1", "--quiet"], standalone_mode=False)
print(*{name.partition(".")[0] for name in sys.modules})
"""
    output = tmp_path / "model.onnx"
    done = subprocess.run(
        [sys.executable, "-c", code, str(sample_path), str(output)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert output.exists()
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "numba" in loaded
    assert not {"torch", "sklearn"} & loaded


def test_a_training_says_that_it_compiles_once_and_only_if_it_does(
    rows: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = rows.split(np.arange(len(rows.labels)) % 5 == 0)
    config = replace(resolved(rows, epochs=1), impl="compiled")

    def notes() -> list[str]:
        callback = Recorder()
        cross_fit(rows, [split], classes_of(rows), config, Course(callback))
        return [note for note in callback.notes if "Compiling" in note]

    def run(fit: ValidatedFit, *given: Any, **more: Any) -> None:
        for number in range(2):
            numba.njit(lambda x: x + number)(1)  # noqa: B023 - not kept, or a second run of the tests would find it
        validated(fit, *given, **more)

    validated = ValidatedFit.run
    notes()  # Whoever is first compiles.
    assert notes() == []
    monkeypatch.setattr(ValidatedFit, "run", run)
    assert notes() == [
        "Compiling the training loops for this machine; this happens once and takes up to half a minute."
    ]
