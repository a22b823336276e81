"""The linear head of a teacher: it separates what can be separated, and is as sure as held-out rows allow."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from tests.training.helpers import dataset_of
from textcls_training.data.arrays import Float64, Int64
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.distillation import linear_head


def clusters(rows: int, noise: float, seed: int = 0) -> tuple[Float64, Int64]:
    rng = np.random.default_rng(seed)
    label_R = np.arange(rows) % 3
    x_RD = np.eye(8)[label_R] + noise * rng.standard_normal((rows, 8))
    return x_RD / np.linalg.norm(x_RD, axis=1, keepdims=True), label_R


def rows_of(label_R: Int64) -> Dataset:
    """Rows of these labels; a head does not look at their texts."""
    return dataset_of(LabelledTexts(texts=["a"] * len(label_R), labels=[str(label) for label in label_R]))


def fifths(rows: int) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    part = np.arange(rows) // 3 % 5
    return [part == i for i in range(5)]


def test_it_tells_clusters_apart() -> None:
    x_RD, label_R = clusters(150, 0.2)
    head = linear_head.fit(x_RD, rows_of(label_R), 3, fifths(150))
    others_RD, right_R = clusters(300, 0.2, seed=1)
    probability_RC = head.probabilities(others_RD)
    assert (probability_RC.argmax(1) == right_R).mean() > 0.95
    np.testing.assert_allclose(probability_RC.sum(1), 1, rtol=1e-5)


def test_it_is_as_sure_as_it_is_right_on_rows_that_it_has_not_seen() -> None:
    x_RD, label_R = clusters(300, 0.7)
    head = linear_head.fit(x_RD, rows_of(label_R), 3, fifths(300))
    others_RD, right_R = clusters(3000, 0.7, seed=1)
    probability_RC = head.probabilities(others_RD)
    assert probability_RC.max(1).mean() == pytest.approx((probability_RC.argmax(1) == right_R).mean(), abs=0.04)


def test_fine_but_sure_differences_get_a_stronger_head_than_noise() -> None:
    _, label_R = clusters(150, 0)
    noise_RD = np.random.default_rng(0).standard_normal((150, 60))
    # The fine differences are sure, and beside them stand larger ones that are not.
    fine_RD = np.concatenate([np.eye(3)[label_R] + 0.5 * noise_RD[:, :3], 0.1 * np.eye(3)[label_R]], axis=1)
    noisy_RD = np.eye(60)[label_R] + 0.5 * noise_RD
    fine, noisy = (linear_head.fit(x_RD, rows_of(label_R), 3, fifths(150)) for x_RD in (fine_RD, noisy_RD))
    assert fine.strength > noisy.strength


@pytest.mark.parametrize("weight_C", [(1.0, 1.0, 1.0), (0.5, 3.0, 1.0)])
def test_it_agrees_with_logistic_regression_of_scikit_learn(weight_C: tuple[float, ...]) -> None:
    from sklearn.linear_model import LogisticRegression

    x_RD, label_R = clusters(150, 0.5)
    head = linear_head.fit(x_RD, rows_of(label_R), 3, [], weight_C)
    assert head.calibration.temperature == 1
    weights = dict(enumerate(weight_C))
    theirs = LogisticRegression(C=head.strength, class_weight=weights, max_iter=1000, tol=1e-8).fit(x_RD, label_R)
    np.testing.assert_allclose(head.probabilities(x_RD), theirs.predict_proba(x_RD), atol=2e-3)


def test_where_a_fit_starts_does_not_matter() -> None:
    from sklearn.linear_model import LogisticRegression

    for noise in (0.3, 1.5):
        x_RD, label_R = clusters(60, noise)
        head = linear_head.fit(x_RD, rows_of(label_R), 3, fifths(60))
        theirs = LogisticRegression(C=head.strength, max_iter=1000, tol=1e-8).fit(x_RD, label_R)
        logits_RC = theirs.decision_function(x_RD) / head.calibration.temperature
        np.testing.assert_allclose(head.probabilities(x_RD), softmax(logits_RC, axis=1), atol=5e-3)


def test_fewer_rows_than_numbers_in_a_vector_and_equal_rows_are_fitted() -> None:
    x_RD = np.repeat(np.eye(40)[:3], 5, axis=0)
    label_R = np.repeat(np.arange(3), 5)
    mask = np.arange(15) % 5 == 0
    head = linear_head.fit(x_RD, rows_of(label_R), 3, [mask])
    assert head.probabilities(x_RD).argmax(1).tolist() == label_R.tolist()
    same = linear_head.fit(np.ones((6, 4)) / 2, rows_of(np.array([0, 0, 0, 0, 1, 1])), 2, [])
    np.testing.assert_allclose(same.probabilities(np.ones((1, 4)) / 2), [[2 / 3, 1 / 3]], atol=1e-2)


def test_of_several_labels_it_agrees_with_a_logistic_regression_a_label() -> None:
    from sklearn.linear_model import LogisticRegression

    x_RD, label_R = clusters(150, 0.5)
    has_RC = np.stack([label_R == 0, label_R > 0, np.arange(150) % 2 == 0], 1)
    sets = [{name: 1.0 for name, has in zip("abc", row, strict=True) if has} for row in has_RC]
    rows = dataset_of(LabelledTexts(texts=["a"] * 150, label_sets=sets))
    head = linear_head.fit(x_RD, rows, 3, [])
    for label in range(3):
        theirs = LogisticRegression(C=head.strength, max_iter=1000, tol=1e-8).fit(x_RD, has_RC[:, label])
        np.testing.assert_allclose(head.probabilities(x_RD)[:, label], theirs.predict_proba(x_RD)[:, 1], atol=5e-3)


def test_of_several_labels_it_is_as_sure_as_it_is_right_and_its_calibration_folds_into_weights() -> None:
    x_RD, label_R = clusters(300, 0.7)
    sets = [{"abc"[label]: 1.0} for label in label_R]
    head = linear_head.fit(x_RD, dataset_of(LabelledTexts(texts=["a"] * 300, label_sets=sets)), 3, fifths(300))
    others_RD, right_R = clusters(3000, 0.7, seed=1)
    probability_RC = head.probabilities(others_RD)
    assert probability_RC.mean(0) == pytest.approx(np.eye(3)[right_R].mean(0), abs=0.03)
    weight_DC, bias_C = head.calibrated()
    np.testing.assert_allclose(expit(others_RD @ weight_DC + bias_C), probability_RC, atol=1e-6)
