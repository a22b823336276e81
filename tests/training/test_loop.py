"""The training loop: what it learns, what it chooses, and that the same start gives the same end."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from textcls.errors import ConfigError
from textcls_training import loop
from textcls_training.arrays import Float32
from textcls_training.calibration import Calibration
from textcls_training.config import OptimConfig, Plan, TrainConfig, resolve
from textcls_training.encoding import Corpus
from textcls_training.loop import best_epoch
from textcls_training.model import ModelConfig
from textcls_training.rows import Fold, Rows
from textcls_training.run import Source
from textcls_training.table import RowEmbedding
from textcls_training.trainer import Trainer
from textcls_training.views import Fitted
from textcls_training.watching import EpochScore

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


def plan_of(rows: Rows, **fields: Any) -> Plan:
    config = TrainConfig(**{"model": TINY, "epochs": 3, "ngram_sizes": (3,), "device": "cpu", **fields})
    return resolve(config, [""] * len(rows.labels), len(rows.corpus.token), classes_of(rows))


def classes_of(rows: Rows) -> int:
    return int(rows.labels.max()) + 1


def fit(rows: Rows, plan: Plan, watcher: Recorder | None = None) -> Trainer:
    with loop.reproducible(plan.seed):
        return loop.fit(rows, classes_of(rows), plan, plan.epochs, watcher)


def weights(fitted: Fitted) -> list[torch.Tensor]:
    return [tensor for view in fitted.row_views for tensor in (view.table_VD, *view.classifier.state_dict().values())]


def same_weights(one: Fitted, other: Fitted) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def logits_of(trainer: Trainer, corpus: Corpus) -> Float32:
    """The logits [V, rows, C]."""
    return trainer.predict(trainer.encode(corpus))


@pytest.fixture(scope="module")
def rows(sample: Source) -> Rows:
    return rows_of(sample)


@pytest.mark.parametrize(("ngram_sizes", "views"), [((), 1), ((3,), 2)], ids=["words", "words and pieces"])
def test_each_view_learns_what_rows_share(ngram_sizes: tuple[int, ...], views: int) -> None:
    queues = ("card payment refund bill", "parcel courier delivery late", "login password account email")
    rng = np.random.default_rng(0)
    texts = [
        " ".join([*rng.choice(queues[i % 3].split(), 2), *rng.choice(["please", "my", "the", "help"], 4)])
        for i in range(120)
    ]
    every = Rows(Corpus.of(texts, 48), np.arange(120, dtype=np.int64) % 3)
    fold = every.split(np.arange(120) >= 90)
    learned = fit(fold.train, plan_of(fold.train, epochs=6, ngram_sizes=ngram_sizes))
    logits_VRC = logits_of(learned, fold.judges.corpus)
    assert logits_VRC.shape == (views, 30, 3)
    assert ((logits_VRC.argmax(2) == fold.judges.labels).mean(1) > 0.95).all()


def test_a_view_learns_the_same_whether_or_not_another_learns_beside_it(rows: Rows) -> None:
    alone, both = fit(rows, plan_of(rows, ngram_sizes=())), fit(rows, plan_of(rows))
    shares = (0.5, 0.5)
    torch.testing.assert_close(both.fitted(shares).row_views[0].table_VD, alone.fitted(shares).row_views[0].table_VD)


def test_training_twice_gives_the_same_weights_and_another_seed_gives_others(rows: Rows) -> None:
    one, two, other = (fit(rows, plan_of(rows, seed=seed)).fitted((0.5, 0.5)) for seed in (0, 0, 1))
    assert same_weights(one, two)
    for a, b in zip(one.row_views, other.row_views, strict=True):
        assert not torch.equal(a.table_VD, b.table_VD)
        assert not torch.equal(a.classifier.head.weight, b.classifier.head.weight)


def test_what_was_fitted_are_the_weights_of_the_trainer_with_the_shares_given(rows: Rows) -> None:
    trainer = fit(rows, plan_of(rows))
    fitted = trainer.fitted((0.25, 0.75))
    assert (fitted.types, fitted.shares) == (rows.corpus.types, (0.25, 0.75))
    for view, learner in zip(fitted.row_views, trainer.learners, strict=True):
        assert isinstance(learner.embedding, RowEmbedding)
        assert (view.space, view.classifier) == (learner.embedding.space, learner.classifier)
        assert not view.classifier.training
        np.testing.assert_array_equal(view.table_VD, learner.embedding.table.row_VD)
    words, pieces = (view.space.config for view in fitted.row_views)
    assert (words.bigrams, words.ngram_sizes) == (True, ())
    assert (pieces.bigrams, pieces.ngram_sizes) == (False, (3,))


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
    assert losses[0][0] == pytest.approx(np.log(classes_of(rows)), rel=0.2)


def test_rates_rise_for_a_moment_and_then_fall_to_zero(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(rows, optim=OptimConfig(batch_size=15, warmup=0.2))
    trainer = Trainer(rows, classes_of(rows), plan)
    factors: list[list[float]] = [[] for _ in trainer.dense]
    for group, found in zip(trainer.dense, factors, strict=True):
        monkeypatch.setattr(group, "step", found.append)
    for number in (1, 2, 3):
        trainer.train_epoch(number, None)
    factor = np.array(factors[0])
    assert len(factor) == 30
    assert all(found == factors[0] for found in factors)
    np.testing.assert_allclose(factor[:6], np.arange(1, 7) / 6)
    np.testing.assert_allclose(np.diff(factor[6:]), -1 / 24)
    assert factor[-1] == pytest.approx(1 / 24)


def test_every_weight_has_its_rate_and_the_heads_alone_decay(rows: Rows) -> None:
    plan = plan_of(rows, model=ModelConfig(dim=8, mixing="lambda"))
    trainer = Trainer(rows, classes_of(rows), plan)
    models, groups = [learner.classifier for learner in trainer.learners], trainer.dense

    def names(parameters: Sequence[torch.Tensor]) -> set[tuple[int, str]]:
        wanted = {id(p) for p in parameters}
        return {(i, name) for i, model in enumerate(models) for name, p in model.named_parameters() if id(p) in wanted}

    every = [p for model in models for p in model.parameters()]
    assert sorted(id(p) for group in groups for p in group.params) == sorted(map(id, every))
    decaying = [p for group in groups if group.weight_decay for p in group.params]
    assert names(decaying) == {(0, "head.weight"), (1, "head.weight")}
    slow = [p for group in groups if group.full_rate == plan.optim.mixing_rate for p in group.params]
    assert names(slow) == {(i, name) for i, name in names(every) if name.startswith("mixing.")}
    assert {i for i, _ in names(slow)} == {0, 1}


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
        learned = fit(fold.train, plan_of(fold.train, epochs=4, class_weight=kind, bigrams=False, ngram_sizes=()))
        recall[kind] = (logits_of(learned, fold.judges.corpus)[0].argmax(1)[rare] == 1).mean()
    assert recall["balanced"] > recall["none"] + 0.2


def test_answers_do_not_depend_on_the_batches_of_an_evaluation(rows: Rows) -> None:
    trainer = fit(rows, plan_of(rows, epochs=8))
    encoded = trainer.encode(rows.corpus)
    at_once = trainer.predict(encoded)
    np.testing.assert_allclose(trainer.predict(encoded, batch_size=7), at_once, rtol=1e-4, atol=1e-5)
    assert ((at_once.argmax(2) == rows.labels).mean(1) > 0.8).all()


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


def test_the_judging_rows_of_all_folds_choose_together(rows: Rows) -> None:
    third = np.arange(150) % 3
    folds = [rows.split(third == i) for i in range(3)]
    right = np.eye(classes_of(rows), dtype=np.float32)

    def judged(fold: Fold) -> list[Float32]:
        said = (fold.judges.labels, (fold.judges.labels + 1) % len(right), 0 * fold.judges.labels)
        return [np.stack([right[labels], right[labels]]) for labels in said]

    chosen = loop.choose(folds, [judged(fold) for fold in folds])
    assert chosen.epochs == 1
    assert chosen.labels.tolist() == np.concatenate([fold.judges.labels for fold in folds]).tolist()
    np.testing.assert_allclose(chosen.logits, right[chosen.labels], rtol=1e-6)


def test_each_epoch_is_judged_by_its_views_weighed_by_how_right_they_are(rows: Rows) -> None:
    fold, classes, number = rows.split(np.ones(150, np.bool_)), classes_of(rows), np.arange(150)[:, None]
    right_RC = np.eye(classes, dtype=np.float32)[rows.labels]
    # First a quiet view that is right of four in five beside loud noise; then two views that are right of every other.
    noise_RC = np.random.default_rng(0).normal(0, 5, (150, classes)).astype(np.float32)
    first_VRC, last_VRC = np.stack([right_RC * (number % 5 > 0), noise_RC]), np.stack([right_RC * (number % 2)] * 2)
    chosen = loop.choose([fold], [[first_VRC, last_VRC]])
    assert chosen.epochs == 1
    assert chosen.calibration.shares[0] > 0.9
    np.testing.assert_array_equal(chosen.logits, chosen.calibration.combine(first_VRC))


def test_judges_are_scored_after_every_epoch_and_never_trained_on(rows: Rows) -> None:
    fold = rows.split(np.arange(150) % 5 == 0)
    plan, watcher = plan_of(rows), Recorder()
    with loop.reproducible(0):
        logits = loop.judge(fold, classes_of(rows), plan, watcher, "choosing")
    assert watcher.phases == [("choosing", 3 * 120)]
    assert [score for _, score in watcher.epochs] == [EpochScore.of(V.mean(0), fold.judges.labels) for V in logits]
    alone = fit(fold.train, plan)
    np.testing.assert_array_equal(logits[-1], logits_of(alone, fold.judges.corpus))


def test_without_judges_the_last_epoch_is_kept_uncalibrated(rows: Rows) -> None:
    fold = rows.split(np.zeros(150, np.bool_))
    with loop.reproducible(0):
        logits = loop.judge(fold, classes_of(rows), plan_of(rows, epochs=2), Recorder(), "choosing")
    chosen = loop.choose([fold], [logits])
    assert (chosen.epochs, chosen.logits.shape, len(chosen.labels)) == (2, (0, classes_of(rows)), 0)
    assert chosen.calibration == Calibration((0.5, 0.5), 1.0)


def test_stopping_early_is_the_same_training_cut_short(rows: Rows) -> None:
    plan, classes = plan_of(rows), classes_of(rows)
    with loop.reproducible(0):
        cut = loop.fit(rows, classes, plan, 2, None)
        trainer = Trainer(rows, classes, plan)
        trainer.train_epoch(1, None)
        trainer.train_epoch(2, None)
    assert same_weights(cut.fitted((0.5, 0.5)), trainer.fitted((0.5, 0.5)))


@pytest.mark.parametrize("number", [2, 3], ids=["an early epoch", "the last epoch"])
@pytest.mark.parametrize("dropout", [0.0, 0.2], ids=["no dropout", "dropout"])
def test_choosing_and_fitting_at_once_gives_the_same_bytes_as_one_after_the_other(
    rows: Rows, number: int, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "best_epoch", lambda *_: number)
    plan, classes = plan_of(rows, model=ModelConfig(dim=8, dropout=dropout)), classes_of(rows)
    fifth = np.arange(150) % 5
    folds = [rows.split(fifth == i) for i in (0, 1, 2)]
    with loop.reproducible(0):
        chosen, fitted = loop.choose_and_fit(rows, folds, classes, plan, None)
    with loop.reproducible(0):
        expected = loop.choose(folds, [loop.judge(fold, classes, plan, None, "") for fold in folds])
        trainer = loop.fit(rows, classes, plan, number, None)
    assert (chosen.epochs, chosen.calibration) == (number, expected.calibration)
    assert fitted.shares == chosen.calibration.shares
    np.testing.assert_array_equal(chosen.logits, expected.logits)
    assert same_weights(fitted, trainer.fitted(fitted.shares))


@pytest.mark.parametrize(
    ("count", "number", "dropout", "phases"),
    [
        (1, 3, 0.0, ["choosing"]),
        (4, 3, 0.0, ["choosing 1/4", "choosing 3/4"]),
        (3, 2, 0.0, ["choosing 1/3", "choosing 3/3", "training"]),
        (2, 3, 0.2, ["choosing 1/2", "choosing 2/2", "training"]),
    ],
    ids=["one fold", "every other fold", "an early epoch is fitted anew", "dropout: all in one thread"],
)
def test_a_watcher_follows_what_the_main_thread_does(
    rows: Rows, count: int, number: int, dropout: float, phases: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "best_epoch", lambda *_: number)
    plan, watcher = plan_of(rows, model=ModelConfig(dim=8, dropout=dropout)), Recorder()
    parts = np.arange(150) % (count + 1)
    folds = [rows.split(parts == i) for i in range(count)]
    with loop.reproducible(0):
        loop.choose_and_fit(rows, folds, classes_of(rows), plan, watcher)
    assert [name for name, _ in watcher.phases] == phases
    assert sum(n for n, _ in watcher.steps) == sum(n for _, n in watcher.phases)


@pytest.mark.parametrize(
    "told",
    [
        {"mixing_rate": 1e30, "model": ModelConfig(dim=8, mixing="lambda")},
        {"optim": OptimConfig(rate=1e30)},
        {"optim": OptimConfig(table_rate=1e38)},
    ],
    ids=["mixing_rate", "rate", "table_rate"],
)
def test_a_training_that_diverges_ends_with_advice(told: dict[str, Any], rows: Rows) -> None:
    plan = plan_of(rows, **told)
    with pytest.raises(
        ConfigError, match=r"^Training diverged at step \d+: the loss is not finite; lower the learning"
    ):
        fit(rows, plan)


def test_answers_that_are_not_finite_are_no_judgement(rows: Rows) -> None:
    trainer = Trainer(rows, classes_of(rows), plan_of(rows))
    with torch.no_grad():
        trainer.learners[1].classifier.head.bias[0] = torch.inf
    with pytest.raises(ConfigError, match=r"^Training diverged: answers are not finite; lower the learning rate\.$"):
        logits_of(trainer, rows.corpus)


def test_when_choosing_breaks_off_fitting_beside_it_stops(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    trainers: list[Trainer] = []

    class Seen(Trainer):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            trainers.append(self)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "Trainer", Seen)
    monkeypatch.setattr(loop, "judge", interrupted)
    folds = [rows.split(np.arange(150) % 2 == i) for i in (0, 1)]
    with pytest.raises(KeyboardInterrupt), loop.reproducible(0):
        loop.choose_and_fit(rows, folds, classes_of(rows), plan_of(rows, epochs=500), None)
    (trainer,) = trainers
    assert trainer.step_number < trainer.steps
