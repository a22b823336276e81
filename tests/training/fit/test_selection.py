"""What validation rows choose: the epoch, the ensemble weights and the temperature."""

import numpy as np
import pytest

from tests.training.helpers import classes_of, dataset_of
from textcls_training.data.arrays import Float32
from textcls_training.data.dataset import Dataset, Split
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.selection import end_to_end, select
from textcls_training.fit.validation import LabelSetValidation, LabelValidation
from textcls_training.models.calibration import Calibration


@pytest.fixture(scope="module")
def dataset(sample: LabelledTexts) -> Dataset:
    return dataset_of(sample)


def sure_of(right: int, sure: int, rows: int = 100) -> Float32:
    """Return logits [1, rows, 2] that answer the first rows right, label 0, and are twice as sure of the very first."""
    row_R = np.arange(rows)
    margin_R = np.where(row_R < right, 1.0, -1.0) * np.where(row_R < sure, 2.0, 1.0)
    return np.stack([margin_R, -margin_R], 1)[None].astype(np.float32)


@pytest.mark.parametrize(
    ("by_epoch", "number"),
    [
        ([sure_of(50, 0), sure_of(90, 0), sure_of(80, 0)], 2),
        ([sure_of(82, 0), sure_of(80, 0)], 2),
        ([sure_of(80, 0), sure_of(80, 0)], 2),
        ([sure_of(80, 60), sure_of(80, 0)], 1),
        ([sure_of(6, 0, 8), sure_of(5, 0, 8)], 2),
        ([sure_of(70, 0)], 1),
    ],
    ids=[
        "clearly better",
        "by more than one standard error",
        "the same",
        "as many right, and more honest",
        "few rows prove little",
        "one epoch",
    ],
)
def test_the_last_epoch_is_kept_unless_another_is_clearly_better(by_epoch: list[Float32], number: int) -> None:
    labels = np.zeros(by_epoch[0].shape[1], np.int64)
    assert LabelValidation(labels).epoch(by_epoch) == number


def test_of_many_labels_the_last_epoch_is_kept_whatever_another_says() -> None:
    few, many = (np.pad(np.concatenate([sure_of(90, 0), sure_of(50, 0)]), ((0, 0), (0, 0), (0, n))) for n in (253, 254))
    labels = np.zeros(few.shape[1], np.int64)
    assert LabelValidation(labels).epoch([one[None] for one in few]) == 1
    assert LabelValidation(labels).epoch([one[None] for one in many]) == 2


def test_of_several_labels_the_last_epoch_is_kept_whatever_frequent_ones_say() -> None:
    sets = [{"often": 1.0} if i % 2 else {"rare": 1.0} if i == 0 else {} for i in range(60)]
    validation = LabelSetValidation(LabelMatrix.of(sets, ["often", "rare"]))
    right_RC = np.where(validation.target_RC > 0, 3, -3).astype(np.float32)
    found = select(validation, [right_RC[None], -right_RC[None]])
    assert found.epochs == 2
    np.testing.assert_array_equal(found.logits, -right_RC)


def test_an_epoch_is_shown_by_its_accuracy_and_chosen_by_its_loss() -> None:
    logits, labels = np.log(np.array([[3, 1], [1, 1], [1, 3]], np.float32)), np.array([0, 1, 1])
    assert LabelValidation(labels).right(logits).share == pytest.approx(2 / 3)
    losses_R = LabelValidation(labels).losses(np.exp(logits.astype(np.float64)) / [[4], [2], [4]])
    assert -losses_R.mean() == pytest.approx((2 * np.log(3 / 4) + np.log(1 / 2)) / 3)


def test_the_validation_rows_of_all_splits_choose_together(dataset: Dataset) -> None:
    third = np.arange(150) % 3
    splits = [dataset.split(third == i) for i in range(3)]
    right = np.eye(classes_of(dataset), dtype=np.float32)

    def by_epoch(split: Split) -> list[Float32]:
        """All right, all wrong, and one label for all."""
        predicted = (split.valid.labels, (split.valid.labels + 1) % len(right), 0 * split.valid.labels)
        return [np.stack([right[labels], right[labels]]) for labels in predicted]

    labels = np.concatenate([split.valid.labels for split in splits])
    selected = select(LabelValidation(labels), end_to_end([by_epoch(split) for split in splits]))
    assert selected.epochs == 1
    assert selected.labels.tolist() == labels.tolist()
    np.testing.assert_allclose(selected.logits, right[labels], rtol=1e-6)


def test_each_epoch_is_scored_as_the_ensemble_that_suits_it(dataset: Dataset) -> None:
    classes, number = classes_of(dataset), np.arange(150)[:, None]
    right_RC = np.eye(classes, dtype=np.float32)[dataset.labels]
    # First a quiet view that is right of four in five beside loud noise; then two views that are right of every other.
    noise_RC = np.random.default_rng(0).normal(0, 5, (150, classes)).astype(np.float32)
    first_VRC, last_VRC = np.stack([right_RC * (number % 5 > 0), noise_RC]), np.stack([right_RC * (number % 2)] * 2)
    selected = select(LabelValidation(dataset.labels), [first_VRC, last_VRC])
    assert selected.epochs == 1
    assert selected.calibration.ensemble_weights[0] > 0.9
    np.testing.assert_array_equal(selected.logits, selected.calibration.combine(first_VRC))


def test_without_validation_rows_the_last_epoch_is_kept_uncalibrated() -> None:
    nothing_VRC = np.zeros((2, 0, 3), np.float32)
    selected = select(LabelValidation(np.zeros(0, np.int64)), [nothing_VRC, nothing_VRC])
    assert (selected.epochs, selected.logits.shape, len(selected.labels)) == (2, (0, 3), 0)
    assert selected.calibration == Calibration((0.5, 0.5), 1.0)
