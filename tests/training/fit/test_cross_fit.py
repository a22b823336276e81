"""Cross-fitting: validation rows are never trained on, and two threads give the same bytes as one."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from tests.training.helpers import Recorder, classes_of, dataset_of, fit_all, logits_of, resolved, same_weights
from textcls.errors import ConfigError
from textcls_torch.fit.trainer import Trainer
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.config.settings import Impl, ModelConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.dataset import Dataset, Split
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit import cross_fit, validation
from textcls_training.fit.any_trainer import AnyTrainer
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.course import Course
from textcls_training.fit.cross_fit import ValidatedFit
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.selection import end_to_end, select
from textcls_training.fit.threads import reproducible
from textcls_training.fit.validation import LabelValidation


@pytest.fixture(scope="module")
def dataset(sample: LabelledTexts) -> Dataset:
    return dataset_of(sample)


def validated(split: Split, classes: int, config: ResolvedConfig, callback: Callback = NOBODY) -> list[Float32]:
    """The logits of the validation rows after each epoch."""
    found = ValidatedFit(split, classes, config, Stop())
    found.run("choosing", callback)
    return found.logits


def test_validation_rows_are_scored_after_every_epoch_and_never_trained_on(dataset: Dataset) -> None:
    split = dataset.split(np.arange(150) % 5 == 0)
    config, callback = resolved(dataset), Recorder()
    with reproducible(0):
        logits = validated(split, classes_of(dataset), config, callback)
    assert callback.phases == [("choosing", 3 * 120)]
    expected = [LabelValidation(split.valid.labels).right(logits_VRC.mean(0)).share for logits_VRC in logits]
    assert [score for _, score in callback.epochs] == expected
    alone = fit_all(split.train, config)
    np.testing.assert_array_equal(logits[-1], logits_of(alone, split.valid.corpus))


def test_without_validation_rows_no_epoch_has_a_score(dataset: Dataset) -> None:
    split, callback = dataset.split(np.zeros(150, np.bool_)), Recorder()
    with reproducible(0):
        logits = validated(split, classes_of(dataset), resolved(dataset, epochs=2), callback)
    assert [logits_VRC.shape for logits_VRC in logits] == [(2, 0, classes_of(dataset))] * 2
    assert callback.epochs == [(1, None), (2, None)]


@pytest.mark.parametrize("number", [2, 3], ids=["an early epoch", "the last epoch"])
@pytest.mark.parametrize("dropout", [0.0, 0.2], ids=["no dropout", "dropout"])
def test_two_threads_give_the_same_bytes_as_one_fit_after_the_other(
    dataset: Dataset, number: int, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation.LabelValidation, "epoch", lambda *_: number)
    config, classes = resolved(dataset, model=ModelConfig(dim=8, dropout=dropout)), classes_of(dataset)
    fifth = np.arange(150) % 5
    splits = [dataset.split(fifth == i) for i in (0, 1, 2)]
    with reproducible(0):
        selected, model = cross_fit.cross_fit(dataset, splits, classes, config)
    with reproducible(0):
        labels = np.concatenate([split.valid.labels for split in splits])
        expected = select(LabelValidation(labels), end_to_end([validated(split, classes, config) for split in splits]))
        trainer = cross_fit.fit(dataset, classes, config, number)
    assert (selected.epochs, selected.calibration) == (number, expected.calibration)
    assert model.ensemble_weights == selected.calibration.ensemble_weights
    np.testing.assert_array_equal(selected.logits, expected.logits)
    assert same_weights(model, trainer.trained_model(model.ensemble_weights))


@pytest.mark.parametrize(
    ("count", "number", "dropout", "phases"),
    [
        (1, 3, 0.0, ["choosing"]),
        (4, 3, 0.0, ["choosing 1/4", "choosing 3/4"]),
        (3, 2, 0.0, ["choosing 1/3", "choosing 3/3", "training"]),
        (2, 3, 0.2, ["choosing 1/2", "choosing 2/2", "training"]),
    ],
    ids=["one split", "every other split", "an early epoch is fitted anew", "dropout: all in one thread"],
)
def test_a_callback_follows_what_the_main_thread_does(
    dataset: Dataset, count: int, number: int, dropout: float, phases: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation.LabelValidation, "epoch", lambda *_: number)
    config, callback = resolved(dataset, model=ModelConfig(dim=8, dropout=dropout)), Recorder()
    parts = np.arange(150) % (count + 1)
    splits = [dataset.split(parts == i) for i in range(count)]
    with reproducible(0):
        cross_fit.cross_fit(dataset, splits, classes_of(dataset), config, Course(callback))
    assert [name for name, _ in callback.phases] == phases
    assert sum(n for n, _ in callback.steps) == sum(n for _, n in callback.phases)


def test_when_validation_breaks_off_the_fit_beside_it_stops(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    trainers: list[Trainer] = []

    class Seen(Trainer):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            trainers.append(self)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt("in a fold")

    monkeypatch.setattr(cross_fit, "make_trainer", Seen)
    monkeypatch.setattr(ValidatedFit, "run", interrupted)
    splits = [dataset.split(np.arange(150) % 2 == i) for i in (0, 1)]
    with pytest.raises(KeyboardInterrupt, match="in a fold"), reproducible(0):
        cross_fit.cross_fit(dataset, splits, classes_of(dataset), resolved(dataset, epochs=500))
    (final,) = [trainer for trainer in trainers if len(trainer.dataset.labels) == 150]
    assert final.step_number < final.steps


def test_a_fit_that_diverges_in_the_second_thread_is_told(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverged(*_: object, **__: object) -> None:
        raise ConfigError("Training diverged.")

    monkeypatch.setattr(Trainer, "train", diverged)
    splits = [dataset.split(np.arange(150) % 5 == 0)]
    with pytest.raises(ConfigError, match=r"^Training diverged\.$"), reproducible(0):
        cross_fit.cross_fit(dataset, splits, classes_of(dataset), resolved(dataset))


@pytest.mark.parametrize("impl", ["compiled", "reference"])
def test_fits_that_are_over_leave_memory_at_once(dataset: Dataset, impl: Impl, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[AnyTrainer]] = []

    def remembered(*given: Any) -> AnyTrainer:
        trainer = make_trainer(*given)
        made.append(weakref.ref(trainer))
        return trainer

    make_trainer = cross_fit.make_trainer
    monkeypatch.setattr(cross_fit, "make_trainer", remembered)
    gc.disable()
    try:
        split = dataset.split(np.arange(150) % 5 == 0)
        cross_fit.cross_fit(dataset, [split], classes_of(dataset), resolved(dataset, impl=impl))
        left = [trainer() for trainer in made]
    finally:
        gc.enable()
    assert left == [None, None]
