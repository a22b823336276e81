"""One fit: what it learns, how its rates move, and that the same start gives the same end."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.training.helpers import (
    Recorder,
    classes_of,
    dataset_of,
    fit_all,
    logits_of,
    module_of,
    resolved,
    same_weights,
)
from textcls import Classifier
from textcls.errors import ConfigError
from textcls_torch.fit.pending_losses import PendingLosses
from textcls_torch.fit.trainer import Trainer
from textcls_torch.models.hashed_embedding import HashedEmbedding
from textcls_training.config.settings import ModelConfig, OptimConfig, TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.rationales import parse
from textcls_training.fit import cross_fit
from textcls_training.fit.threads import reproducible
from textcls_training.pipeline.training import train


@pytest.fixture(scope="module")
def dataset(sample: LabelledTexts) -> Dataset:
    return dataset_of(sample)


@pytest.mark.parametrize(("ngram_sizes", "views"), [((), 1), ((3,), 2)], ids=["words", "words and pieces"])
def test_each_view_learns_what_rows_share(ngram_sizes: tuple[int, ...], views: int) -> None:
    queues = ("card payment refund bill", "parcel courier delivery late", "login password account email")
    rng = np.random.default_rng(0)
    texts = [
        " ".join([*rng.choice(queues[i % 3].split(), 2), *rng.choice(["please", "my", "the", "help"], 4)])
        for i in range(120)
    ]
    every = Dataset(Corpus.of(texts, 48), np.arange(120, dtype=np.int64) % 3)
    split = every.split(np.arange(120) >= 90)
    learned = fit_all(split.train, resolved(split.train, epochs=6, ngrams=ngram_sizes))
    logits_VRC = logits_of(learned, split.valid.corpus)
    assert logits_VRC.shape == (views, 30, 3)
    assert ((logits_VRC.argmax(2) == split.valid.labels).mean(1) > 0.95).all()


def test_a_view_learns_the_same_whether_or_not_another_learns_beside_it(dataset: Dataset) -> None:
    alone, both = fit_all(dataset, resolved(dataset, ngrams=())), fit_all(dataset, resolved(dataset))
    one, two = (trainer.trained_model((0.5, 0.5)).hashed_views[0].table_VD for trainer in (alone, both))
    np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)


def test_training_twice_gives_the_same_weights_and_another_seed_gives_others(dataset: Dataset) -> None:
    one, two, other = (fit_all(dataset, resolved(dataset, seed=seed)).trained_model((0.5, 0.5)) for seed in (0, 0, 1))
    assert same_weights(one, two)
    for a, b in zip(one.hashed_views, other.hashed_views, strict=True):
        assert not np.array_equal(a.table_VD, b.table_VD)
        assert not torch.equal(module_of(a).head.weight, module_of(b).head.weight)


def test_a_trained_model_has_the_weights_of_its_trainer_and_the_ensemble_weights_given(dataset: Dataset) -> None:
    trainer = fit_all(dataset, resolved(dataset))
    model = trainer.trained_model((0.25, 0.75))
    assert (model.types, model.ensemble_weights) == (dataset.corpus.types, (0.25, 0.75))
    for view, learner in zip(model.hashed_views, trainer.learners, strict=True):
        assert isinstance(learner.embedding, HashedEmbedding)
        assert view.space == learner.embedding.space
        weights, learned = module_of(view).state_dict(), learner.classifier.state_dict()
        assert all(torch.equal(weights[name], learned[name]) for name in learned)
        assert not module_of(view).training
        np.testing.assert_array_equal(view.table_VD, learner.embedding.table.row_VD)
    words, pieces = (view.space.config for view in model.hashed_views)
    assert (words.bigrams, words.ngram_sizes) == (True, ())
    assert (pieces.bigrams, pieces.ngram_sizes) == (False, (3,))


def test_a_callback_is_told_of_every_row_and_every_epoch(dataset: Dataset) -> None:
    callback = Recorder()
    config = resolved(dataset)
    fit_all(dataset, config, callback)
    assert callback.phases == [("training", 3 * 150)]
    assert sum(n for n, _ in callback.steps) == 3 * 150
    assert callback.epochs == [(1, None), (2, None), (3, None)]
    losses = np.array_split([loss for _, loss in callback.steps], 3)
    assert losses[0].mean() > losses[2].mean()
    assert losses[0][0] == pytest.approx(np.log(classes_of(dataset)), rel=0.2)


def test_rates_rise_for_a_moment_and_then_fall_to_zero(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    config = resolved(dataset, optim=OptimConfig(batch_size=15, warmup=0.2))
    trainer = Trainer(dataset, classes_of(dataset), config)
    factors: list[list[float]] = [[] for _ in trainer.dense]
    for group, found in zip(trainer.dense, factors, strict=True):
        monkeypatch.setattr(group, "step", found.append)
    for number in (1, 2, 3):
        trainer.train_epoch(number)
    factor = np.array(factors[0])
    assert len(factor) == 30
    assert all(found == factors[0] for found in factors)
    np.testing.assert_allclose(factor[:6], np.arange(1, 7) / 6)
    np.testing.assert_allclose(np.diff(factor[6:]), -1 / 24)
    assert factor[-1] == pytest.approx(1 / 24)


def test_every_weight_has_its_rate_and_the_heads_alone_decay(dataset: Dataset) -> None:
    config = resolved(dataset, model=ModelConfig(dim=8, mixing="lambda"))
    trainer = Trainer(dataset, classes_of(dataset), config)
    models, groups = [learner.classifier for learner in trainer.learners], trainer.dense

    def names(parameters: Sequence[torch.Tensor]) -> set[tuple[int, str]]:
        wanted = {id(p) for p in parameters}
        return {(i, name) for i, model in enumerate(models) for name, p in model.named_parameters() if id(p) in wanted}

    every = [p for model in models for p in model.parameters()]
    assert sorted(id(p) for group in groups for p in group.params) == sorted(map(id, every))
    decaying = [p for group in groups if group.weight_decay for p in group.params]
    assert names(decaying) == {(0, "head.weight"), (1, "head.weight")}
    slow = [p for group in groups if group.full_rate == config.optim.mixing_rate for p in group.params]
    assert names(slow) == {(i, name) for i, name in names(every) if name.startswith("mixing.")}
    assert {i for i, _ in names(slow)} == {0, 1}


def test_attention_of_few_rows_begins_even_and_does_not_stay_so(dataset: Dataset) -> None:
    config = resolved(dataset, epochs=10)
    assert config.even_attention
    trainer = Trainer(dataset, classes_of(dataset), config)
    attentions = [learner.classifier.attention for learner in trainer.learners]
    assert [attention.seeds().any() for attention in attentions] == [False, False]
    trainer.train(10)
    assert all(attention.seeds().abs().max() > 0.01 for attention in attentions)


def test_embeddings_have_the_buckets_that_the_configuration_wants(dataset: Dataset) -> None:
    config = replace(resolved(dataset), least_buckets=2**17)
    for learner in Trainer(dataset, classes_of(dataset), config).learners:
        assert isinstance(learner.embedding, HashedEmbedding)
        assert learner.embedding.space.buckets == 2**17


def test_balanced_class_weights_raise_the_recall_of_a_rare_label() -> None:
    rng = np.random.default_rng(0)
    label = (rng.random(400) < 0.08).astype(np.int64)
    # Both labels use all words; the rare one prefers the second half of them.
    vocabulary = np.array([f"w{i}" for i in range(20)])
    odds = np.where(np.arange(20) < 10, 1.6, 1.0) / 26
    texts = [" ".join(rng.choice(vocabulary, 6, p=odds[::-1] if y else odds)) for y in label]
    every = Dataset(Corpus.of(texts, 48), label)
    split = every.split(np.arange(400) >= 200)
    rare = split.valid.labels == 1
    recall = {}
    for kind in ("none", "balanced"):
        learned = fit_all(split.train, resolved(split.train, epochs=4, class_weight=kind, bigrams=False, ngrams=()))
        recall[kind] = (logits_of(learned, split.valid.corpus)[0].argmax(1)[rare] == 1).mean()
    assert recall["balanced"] > recall["none"] + 0.2


def test_predictions_do_not_depend_on_their_batches(dataset: Dataset) -> None:
    trainer = fit_all(dataset, resolved(dataset, epochs=8))
    encoded = trainer.encode(dataset.corpus)
    at_once = trainer.predict(encoded)
    np.testing.assert_allclose(trainer.predict(encoded, batch_size=7), at_once, rtol=1e-4, atol=1e-5)
    assert ((at_once.argmax(2) == dataset.labels).mean(1) > 0.8).all()


def test_stopping_early_is_the_same_training_cut_short(dataset: Dataset) -> None:
    config, classes = resolved(dataset), classes_of(dataset)
    with reproducible(0):
        cut = cross_fit.fit(dataset, classes, config, 2)
        trainer = Trainer(dataset, classes, config)
        trainer.train_epoch(1)
        trainer.train_epoch(2)
    assert same_weights(cut.trained_model((0.5, 0.5)), trainer.trained_model((0.5, 0.5)))


@pytest.mark.parametrize(
    "told",
    [
        {"mixing_rate": 1e30, "model": ModelConfig(dim=8, mixing="lambda")},
        {"optim": OptimConfig(rate=1e30)},
        {"optim": OptimConfig(table_rate=1e38)},
    ],
    ids=["mixing_rate", "rate", "table_rate"],
)
def test_a_training_that_diverges_ends_with_advice(told: dict[str, Any], dataset: Dataset) -> None:
    config = resolved(dataset, **told)
    with pytest.raises(
        ConfigError, match=r"^Training diverged at step \d+: the loss is not finite; lower the learning"
    ):
        fit_all(dataset, config)


def test_predictions_that_are_not_finite_are_an_error(dataset: Dataset) -> None:
    trainer = Trainer(dataset, classes_of(dataset), resolved(dataset))
    with torch.no_grad():
        trainer.learners[1].classifier.head.bias[0] = torch.inf
    with pytest.raises(ConfigError, match=r"^Training diverged: answers are not finite; lower the learning rate\.$"):
        logits_of(trainer, dataset.corpus)


@pytest.mark.parametrize("at_once", [3, 1000], ids=["in lots that do not fit the epoch", "all at its end"])
def test_losses_that_are_read_together_are_told_of_every_step_as_if_each_were_read(
    at_once: int, dataset: Dataset
) -> None:
    told = []
    for number in (1, at_once):
        callback = Recorder()
        with reproducible(0):
            trainer = Trainer(dataset, classes_of(dataset), resolved(dataset))
            assert trainer.losses_at_once == 1
            trainer.losses_at_once = number
            trainer.train_epoch(1, callback)
        told.append(callback.steps)
    assert told[0] == told[1]
    assert len(told[0]) % 3


def test_losses_that_wait_are_told_when_a_stop_is_requested(dataset: Dataset) -> None:
    callback = Recorder()
    with reproducible(0):
        trainer = Trainer(dataset, classes_of(dataset), resolved(dataset))
        trainer.losses_at_once = 1000

        def stop_after_two() -> None:
            trainer.stop.requested = trainer.step_number == 2

        trainer.keep = stop_after_two
        trainer.train_epoch(1, callback)
    assert len(callback.steps) == trainer.step_number == 2


def test_of_losses_that_are_read_together_the_first_that_is_not_finite_is_named() -> None:
    callback = Recorder()
    losses = PendingLosses(callback, 4)
    for step, loss in enumerate((6.0, 12.0, float("nan")), 5):
        losses.add(step, 3, torch.tensor(loss), 6)
    assert callback.steps == []
    with pytest.raises(ConfigError, match=r"^Training diverged at step 7: the loss is not finite; lower the learning"):
        losses.add(8, 3, torch.tensor(float("inf")), 6)
    assert callback.steps == [(3, 1.0), (3, 2.0)]


def test_attention_learns_to_rest_on_human_rationales(tmp_path: Path) -> None:
    # Two words tell the labels apart equally well; people mark one of them.
    generator = np.random.default_rng(0)
    filler = [f"w{i}" for i in range(30)]
    texts, labels, rationales = [], [], []
    for i in range(200):
        label = i % 2
        words = [*generator.choice(filler, 6), f"sign{label}", f"clue{label}"]
        generator.shuffle(words)
        texts.append(" ".join(words))
        labels.append(str(label))
        rationales.append(parse(f'["clue{label}"]', texts[-1], ""))
    config = TrainConfig(dim=8, ngrams=(), epochs=8, device="cpu")

    def attention_on_clue(given: LabelledTexts) -> float:
        train(given, tmp_path / "model.onnx", config)
        explanation = Classifier.load(tmp_path / "model.onnx").predict("w1 sign1 w2 clue1 w3", explain=True).explanation
        assert explanation is not None
        return float(explanation.attention[3])

    plain = attention_on_clue(LabelledTexts(texts=texts, labels=labels))
    taught = attention_on_clue(LabelledTexts(texts=texts, labels=labels, rationales=rationales))
    assert plain < 0.5 < taught
