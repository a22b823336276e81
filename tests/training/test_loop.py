"""The training loop: what it learns, what it chooses, and that the same start gives the same end."""

import mmh3
import numpy as np
import pytest
import torch

from textcls_training import loop
from textcls_training.config import OptimConfig, Plan, TrainConfig, resolve
from textcls_training.encoding import Corpus
from textcls_training.loop import EpochScore, Fitted, Fold, Rows, best_epoch
from textcls_training.model import ModelConfig
from textcls_training.run import Source

TINY = ModelConfig(dim=8)


class Recorder:
    """A watcher that writes everything down."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int]] = []
        self.steps: list[tuple[int, float]] = []
        self.epochs: list[tuple[int, EpochScore | None]] = []

    def phase(self, name: str, rows: int) -> None:
        self.phases.append((name, rows))

    def step(self, rows: int, loss: float) -> None:
        self.steps.append((rows, loss))

    def epoch(self, number: int, score: EpochScore | None) -> None:
        self.epochs.append((number, score))


def rows_of(source: Source) -> Rows:
    names = sorted(set(source.labels))
    return Rows(Corpus.of(source.texts, 48), np.array([names.index(label) for label in source.labels], np.int64))


def plan_of(rows: Rows, **fields: object) -> Plan:
    config = TrainConfig(**{"model": TINY, "epochs": 3, "ngram_sizes": (), "device": "cpu", **fields})  # type: ignore[arg-type]
    return resolve(config, [""] * len(rows.labels), int(rows.labels.max()) + 1)


def fit(rows: Rows, plan: Plan, watcher: Recorder | None = None) -> Fitted:
    with loop.reproducible(plan.seed):
        return loop.fit(rows, int(rows.labels.max()) + 1, plan, plan.epochs, watcher)


def weights(fitted: Fitted) -> list[torch.Tensor]:
    return [fitted.embedding.table_VD, *fitted.model.state_dict().values()]


def logits_of(fitted: Fitted, corpus: Corpus) -> np.ndarray:
    return loop.predict_logits(fitted, fitted.space.encode(corpus))


@pytest.fixture(scope="module")
def rows(sample: Source) -> Rows:
    return rows_of(sample)


@pytest.fixture(scope="module")
def fitted(rows: Rows) -> Fitted:
    """A model of the sample without n-grams."""
    return fit(rows, plan_of(rows, epochs=8))


def test_training_learns_its_rows_and_what_they_share() -> None:
    queues = ("card payment refund bill", "parcel courier delivery late", "login password account email")
    rng = np.random.default_rng(0)
    texts = [
        " ".join([*rng.choice(queues[i % 3].split(), 2), *rng.choice(["please", "my", "the", "help"], 4)])
        for i in range(120)
    ]
    every = Rows(Corpus.of(texts, 48), np.arange(120, dtype=np.int64) % 3)
    fold = every.split(np.arange(120) >= 90)
    learned = fit(fold.train, plan_of(fold.train, epochs=6))
    assert (logits_of(learned, fold.judges.corpus).argmax(1) == fold.judges.labels).mean() > 0.95


def test_training_twice_gives_the_same_weights_and_another_seed_gives_others(rows: Rows) -> None:
    one, two, other = (weights(fit(rows, plan_of(rows, seed=seed))) for seed in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert not torch.equal(one[0], other[0])
    assert not torch.equal(one[1], other[1])


def test_the_caller_keeps_its_threads_and_its_generator() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    torch.set_num_threads(2)
    try:
        with loop.reproducible(0):
            assert torch.get_num_threads() == 1
            torch.rand(7)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.rand(1) == expected


def test_a_watcher_is_told_of_every_row_and_every_epoch(rows: Rows) -> None:
    watcher = Recorder()
    plan = plan_of(rows)
    fit(rows, plan, watcher)
    assert watcher.phases == [("training", 3 * 150)]
    assert sum(n for n, _ in watcher.steps) == 3 * 150
    assert watcher.epochs == [(1, None), (2, None), (3, None)]
    losses = np.array_split([loss for _, loss in watcher.steps], 3)
    assert losses[0].mean() > losses[2].mean()
    assert losses[0][0] == pytest.approx(np.log(rows.labels.max() + 1), rel=0.2)


def test_rates_rise_for_a_moment_and_then_fall_to_zero(rows: Rows) -> None:
    plan = plan_of(rows, optim=OptimConfig(batch_size=15, warmup=0.2))
    trainer = loop.Trainer(rows, int(rows.labels.max()) + 1, plan)
    rates: list[list[float]] = []

    class RateRecorder(Recorder):
        def step(self, rows: int, loss: float) -> None:
            rates.append([group["lr"] / group["full_rate"] for group in trainer.dense.param_groups])

    for number in (1, 2, 3):
        trainer.train_epoch(number, RateRecorder())
    assert len(rates) == 30
    np.testing.assert_allclose(np.ptp(rates, axis=1), 0, atol=1e-12)
    factor = np.array(rates)[:, 0]
    np.testing.assert_allclose(factor[:6], np.arange(1, 7) / 6)
    np.testing.assert_allclose(np.diff(factor[6:]), -1 / 24)
    assert factor[-1] == pytest.approx(1 / 24)


def test_every_weight_has_its_rate_and_the_head_alone_decays(rows: Rows) -> None:
    plan = plan_of(rows)
    trainer = loop.Trainer(rows, int(rows.labels.max()) + 1, plan)
    model = trainer.fitted.model
    groups = trainer.dense.param_groups
    assert sorted(id(p) for group in groups for p in group["params"]) == sorted(id(p) for p in model.parameters())
    assert [p for group in groups if group["weight_decay"] for p in group["params"]] == [model.head.weight]
    assert model.mixing is not None
    slow = [group for group in groups if group["full_rate"] == plan.optim.mixing_rate]
    assert [id(p) for group in slow for p in group["params"]] == [id(p) for p in model.mixing.parameters()]


def test_balanced_class_weights_raise_the_recall_of_a_rare_label() -> None:
    rng = np.random.default_rng(0)
    label = (rng.random(400) < 0.08).astype(np.int64)
    # Both labels use all words; the rare one prefers the second half of them.
    vocabulary = np.array([f"w{i}" for i in range(20)])
    odds = np.where(np.arange(20) < 10, 1.6, 1.0) / 26
    texts = [" ".join(rng.choice(vocabulary, 6, p=odds[::-1] if y else odds)) for y in label]
    every = Rows(Corpus.of(texts, 48), label)
    fold = every.split(np.arange(400) >= 200)
    rare = fold.judges.labels == 1
    recall = {}
    for kind in ("none", "balanced"):
        learned = fit(fold.train, plan_of(fold.train, epochs=4, class_weight=kind, bigrams=False))
        recall[kind] = (logits_of(learned, fold.judges.corpus).argmax(1)[rare] == 1).mean()
    assert recall["balanced"] > recall["none"] + 0.2


def test_answers_do_not_depend_on_the_batches_of_an_evaluation(fitted: Fitted, rows: Rows) -> None:
    encoded = fitted.space.encode(rows.corpus)
    at_once = loop.predict_logits(fitted, encoded)
    np.testing.assert_allclose(loop.predict_logits(fitted, encoded, batch_size=7), at_once, rtol=1e-4, atol=1e-5)
    assert (at_once.argmax(1) == rows.labels).mean() > 0.8


def test_a_large_table_forgets_the_rows_seen_once_and_answers_much_alike(fitted: Fitted, rows: Rows) -> None:
    less = fitted.compact(10)
    once = fitted.space.count == 1
    assert once.mean() > 0.5
    assert (less.space.count[1:] > 1).all()
    assert len(less.embedding.table_VD) == len(less.embedding.weight_V) == len(less.space.count)
    assert 0.9 * (~once).sum() < len(less.space.count) <= (~once).sum()
    same = logits_of(less, rows.corpus).argmax(1) == logits_of(fitted, rows.corpus).argmax(1)
    assert same.mean() > 0.7


def test_a_small_table_keeps_all_rows_but_the_few_that_fall_together(fitted: Fitted, rows: Rows) -> None:
    less = fitted.compact(len(fitted.space.count))
    assert 0.9 * len(fitted.space.count) < len(less.space.count) <= len(fitted.space.count)
    same = logits_of(less, rows.corpus).argmax(1) == logits_of(fitted, rows.corpus).argmax(1)
    assert same.mean() > 0.97


def test_a_row_that_is_kept_stays_the_row_of_its_feature(fitted: Fitted) -> None:
    # One word the most frequent of its bucket, so it is kept: its vector and energy are the same.
    hashes = np.array([mmh3.hash("my", 0, signed=False)], np.uint32)
    less = fitted.compact(10)
    (old,), (new,) = fitted.space.rows(hashes), less.space.rows(hashes)
    assert old
    assert new
    assert torch.equal(less.embedding.table_VD[new], fitted.embedding.table_VD[old])
    assert less.embedding.weight_V[new] == fitted.embedding.weight_V[old]


@pytest.mark.parametrize(
    ("accuracies", "rows", "number"),
    [
        ([0.5, 0.9, 0.8], 100, 2),
        ([0.5, 0.82, 0.8], 100, 3),
        ([0.9, 0.9, 0.1], 100, 2),
        ([0.5, 0.9, 0.8], 8, 3),
        ([0.7], 100, 1),
    ],
    ids=[
        "clearly better",
        "within a standard error",
        "ties go to the lower loss",
        "few rows prove little",
        "one epoch",
    ],
)
def test_the_last_epoch_is_kept_unless_another_is_clearly_better(
    accuracies: list[float], rows: int, number: int
) -> None:
    scores = [EpochScore(accuracy, negative_loss=float(i)) for i, accuracy in enumerate(accuracies)]
    assert best_epoch(scores, rows) == number


def test_the_score_of_an_epoch_is_its_accuracy_and_then_its_loss() -> None:
    logits = np.log(np.array([[3, 1], [1, 1], [1, 3]], np.float32))
    score = EpochScore.of(logits, np.array([0, 1, 1]))
    assert score.accuracy == pytest.approx(2 / 3)
    assert score.negative_loss == pytest.approx((2 * np.log(3 / 4) + np.log(1 / 2)) / 3)


def test_the_judging_rows_of_all_folds_choose_together(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    third = np.arange(150) % 3
    folds = [rows.split(third == i) for i in range(3)]
    right = np.eye(int(rows.labels.max()) + 1, dtype=np.float32)
    watched: list[str] = []

    def judge(fold: Fold, classes: int, plan: Plan, watcher: object, name: str) -> list[np.ndarray]:
        watched.append(name)
        return [right[fold.judges.labels], right[(fold.judges.labels + 1) % classes], right[0 * fold.judges.labels]]

    monkeypatch.setattr(loop, "judge", judge)
    chosen = loop.choose(folds, len(right), plan_of(rows), None)
    assert chosen.epochs == 1
    assert chosen.labels.tolist() == np.concatenate([fold.judges.labels for fold in folds]).tolist()
    np.testing.assert_array_equal(chosen.logits, right[chosen.labels])
    assert len(set(watched)) == 3


def test_judges_are_scored_after_every_epoch_and_never_trained_on(rows: Rows) -> None:
    fold = rows.split(np.arange(150) % 5 == 0)
    plan, watcher = plan_of(rows), Recorder()
    with loop.reproducible(0):
        logits = loop.judge(fold, int(rows.labels.max()) + 1, plan, watcher, "choosing")
    assert watcher.phases == [("choosing", 3 * 120)]
    assert [score for _, score in watcher.epochs] == [EpochScore.of(found, fold.judges.labels) for found in logits]
    alone = fit(fold.train, plan)
    np.testing.assert_array_equal(logits[-1], logits_of(alone, fold.judges.corpus))


def test_without_judges_the_last_epoch_is_kept_uncalibrated(rows: Rows) -> None:
    fold = rows.split(np.zeros(150, np.bool_))
    with loop.reproducible(0):
        chosen = loop.choose([fold], int(rows.labels.max()) + 1, plan_of(rows, epochs=2), Recorder())
    assert (chosen.epochs, chosen.temperature, len(chosen.labels)) == (2, 1.0, 0)


def test_stopping_early_is_the_same_training_cut_short(rows: Rows) -> None:
    plan, classes = plan_of(rows), int(rows.labels.max()) + 1
    with loop.reproducible(0):
        cut = loop.fit(rows, classes, plan, 2, None)
        trainer = loop.Trainer(rows, classes, plan)
        trainer.train_epoch(1, None)
        trainer.train_epoch(2, None)
    assert all(torch.equal(a, b) for a, b in zip(weights(cut), weights(trainer.fitted), strict=True))
