"""How validation rows score logits."""

import math

import numpy as np
import pytest

from textcls.evaluation.label_thresholds import Goal
from textcls_training.data.arrays import Float32
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.fit.validation import LabelSetValidation, LabelValidation, validation_of

# Three labels apply in all; of the three largest logits 3 and 2 are theirs, and 1 is not.
LOGITS = np.array([[2, -1], [1, 0], [-2, 3]], np.float32)
TARGET = np.array([[1, 0], [0, 1], [0, 1]], np.float32)


def share(logits: Float32, target: Float32) -> float:
    return LabelSetValidation(LabelMatrix.of_dense(target)).right(logits).share


def test_the_break_even_point_is_the_precision_of_as_many_answers_as_there_are_labels() -> None:
    assert share(LOGITS, TARGET) == pytest.approx(2 / 3)
    assert share(LOGITS, (LOGITS > 0.5).astype(np.float32)) == 1
    assert share(-LOGITS, (LOGITS > 0.5).astype(np.float32)) == 0
    assert share(LOGITS, np.zeros((3, 2), np.float32)) == 0


def test_a_label_counts_that_is_more_probable_than_not() -> None:
    assert share(LOGITS, TARGET * 0.5) == pytest.approx(2 / 3)
    assert share(LOGITS, TARGET * 0.4) == 0


def test_the_loss_is_the_cross_entropy_of_a_row_summed_over_its_labels() -> None:
    chance = 1 / (1 + np.exp(-LOGITS.astype(np.float64)))
    by_hand = -sum(
        math.log(p if there else 1 - p)
        for row, target in zip(chance, TARGET, strict=True)
        for p, there in zip(row, target, strict=True)
    )
    sets = LabelMatrix.of([{"a": 1.0}, {"b": 1.0}, {"b": 1.0}], ["a", "b"])
    np.testing.assert_array_equal(LabelSetValidation(sets).target_RC, TARGET)
    assert LabelSetValidation(sets).losses(chance).mean() == pytest.approx(by_hand / 3)


def test_rows_of_several_splits_are_validated_end_to_end_and_with_the_goal_of_their_thresholds() -> None:
    sets = [LabelMatrix.of([{"a": 1.0}], ["a", "b"]), LabelMatrix.of([{"b": 1.0}, {}], ["a", "b"])]
    parts = [Dataset(Corpus.of(["x"] * len(one), 9), one.rarest(), sets=one) for one in sets]
    found = validation_of(parts, Goal("recall", 0.5))
    assert isinstance(found, LabelSetValidation)
    assert found.target_RC.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert (len(found), found.goal) == (3, Goal("recall", 0.5))
    single = validation_of([Dataset(Corpus.of(["x"], 9), np.array([1]))])
    assert isinstance(single, LabelValidation)
