"""What validation rows with several labels fit: lines to log-odds, and thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from textcls.evaluation.label_thresholds import (
    Goal,
    Measure,
    SharedThreshold,
    drawn,
)
from textcls_training.data.arrays import Float32, Float64
from textcls_training.fit import label_set_calibration as calibration
from textcls_training.fit.calibration import MIN_ROWS
from textcls_training.models.calibration import LabelSetCalibration

SCALE, SHIFT = np.array([0.5, 1.0, 2.0]), np.array([-2.0, 0.0, 1.0])


def drawn_rows(rows: int, scale: Float64 = SCALE, shift: Float64 = SHIFT) -> tuple[Float32, Float32]:
    """Logits [rows, labels], and labels drawn by a line of each."""
    chance = np.random.default_rng(0)
    logits = chance.normal(0, 2, (rows, len(scale)))
    target = chance.random(logits.shape) < expit(logits * scale + shift)
    return logits.astype(np.float32), target.astype(np.float32)


# Lines


def test_the_line_that_made_the_labels_is_found_again() -> None:
    logits, target = drawn_rows(8000)
    scale, shift = calibration.fit_lines(logits.astype(np.float64), target.astype(np.float64), 1.0)
    np.testing.assert_allclose(scale, SCALE, rtol=0.1)
    np.testing.assert_allclose(shift, SHIFT, atol=0.15)


def test_a_line_does_not_depend_on_the_scale_it_starts_from_where_rows_are_many() -> None:
    logits, target = (part.astype(np.float64) for part in drawn_rows(8000))
    near, far = (calibration.fit_lines(logits, target, start) for start in (1.0, 4.0))
    np.testing.assert_allclose(near, far, rtol=0.02, atol=0.02)


def test_a_line_of_few_rows_stays_near_that_of_all_labels() -> None:
    scale, shift = calibration.fit_lines(np.zeros((0, 2)), np.zeros((0, 2)), 0.7)
    np.testing.assert_allclose(scale, 0.7)
    np.testing.assert_allclose(shift, 0)
    # Two rows that would by themselves be told apart for certain.
    scale, shift = calibration.fit_lines(np.array([[2.0], [-2.0]]), np.array([[1.0], [0.0]]), 0.7)
    assert 0.7 < scale[0] < 0.9
    assert abs(shift[0]) < 0.05


def test_labels_are_fitted_alike_together_and_alone() -> None:
    logits, target = (part.astype(np.float64) for part in drawn_rows(300))
    together = np.array(calibration.fit_lines(logits, target, 1.0))
    alone = np.hstack([calibration.fit_lines(logits[:, [i]], target[:, [i]], 1.0) for i in range(3)])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-4)


def test_a_line_has_the_least_cross_entropy_wherever_it_is_drawn_to() -> None:
    logits, target = (part.astype(np.float64) for part in drawn_rows(60))
    scale, shift = calibration.fit_lines(logits, target, 1.0, 2.5)

    def loss(label: int, log_scale: float, shift: float) -> float:
        odds = logits[:, label] * np.exp(log_scale) + shift
        pulled = calibration.PULL / 2 * (log_scale**2 + (shift - 2.5) ** 2)
        return float((np.logaddexp(0, odds) - target[:, label] * odds).sum() + pulled)

    for label in range(3):
        found = np.log(scale[label]), shift[label]
        for step in ((0.02, 0.0), (-0.02, 0.0), (0.0, 0.02), (0.0, -0.02)):
            assert loss(label, *found) < loss(label, found[0] + step[0], found[1] + step[1])


# Thresholds


def test_the_threshold_of_the_highest_f1_worked_by_hand() -> None:
    # From the top: F1 of 2/4, 4/5, 4/6, 6/7, 6/8; of so many rows what probabilities expect hardly counts.
    probability = np.tile([0.9, 0.8, 0.7, 0.6, 0.5], 2000)[:, None]
    target = np.tile([1.0, 1, 0, 1, 0], 2000)[:, None]
    assert calibration.best_thresholds(probability, target, 0.2) == pytest.approx([0.55])


def test_a_label_without_rows_has_the_threshold_that_its_probabilities_expect_to_be_best() -> None:
    # Expected F1 from the top: 1.6 / 2.3, 2.4 / 3.3, 2.6 / 4.3.
    assert calibration.best_thresholds(np.array([[0.8], [0.4], [0.1]]), np.zeros((3, 1)), 0.5) == pytest.approx([0.25])


def test_among_thresholds_of_nearly_the_same_f1_the_nearest_to_that_of_all_labels_is_taken() -> None:
    # F1 from the top: 2/3, 3/4, 4/5, 2/3; no threshold parts rows that are alike.
    rows = 4000
    probability, half = np.repeat([0.9, 0.6, 0.3, 0.1], rows)[:, None], np.arange(rows) % 2
    target = np.concatenate([np.ones(rows), half, half, np.zeros(rows)])[:, None]
    for common, within, threshold in ((0.9, 0.0, 0.2), (0.9, 0.06, 0.45), (0.1, 0.06, 0.2), (0.9, 0.14, 0.75)):
        assert calibration.best_thresholds(probability, target, common, within) == pytest.approx([threshold])


def test_a_single_label_is_not_drawn_to_the_luck_of_its_own_rows() -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(1, 300, 1)).astype(np.float32)
    target = (rng.random((300, 1)) < expit(logits[0] - 1)).astype(np.float64)
    found = calibration.fit(logits, target.astype(np.float32))
    probability, shared = found.probabilities(logits[0]), SharedThreshold()
    shared.add(probability, target)
    own, near = (calibration.best_thresholds(probability, target, shared.value(), within) for within in (0, 0.01))
    assert found.thresholds == pytest.approx(drawn(own, target.sum(0), shared.value()))
    assert own != pytest.approx(near)


def test_one_row_of_luck_hardly_moves_a_threshold() -> None:
    probability = np.linspace(0.5, 0.01, 50)[:, None]
    lucky = np.zeros((50, 1))
    lucky[40] = 1
    without, with_it = (
        calibration.best_thresholds(probability, target, 0.2)[0] for target in (np.zeros((50, 1)), lucky)
    )
    assert with_it == pytest.approx(without, abs=0.05)
    assert with_it > 2 * probability[40, 0]


def test_thresholds_that_reach_a_goal_lean_on_probabilities_where_rows_are_few() -> None:
    probability, none = np.array([[0.8], [0.4], [0.1]]), np.zeros((3, 1))
    # Expected precision from the top: 0.8, 0.6, 0.43; expected recall: 0.8 / 1.3, 1.2 / 1.3, 1.
    for goal, threshold in ((Goal("precision", 0.6), 0.2), (Goal("recall", 0.9), 0.2), (Goal("recall", 0.6), 0.6)):
        assert calibration.thresholds_reaching(goal, probability, none) == pytest.approx([threshold])
    assert calibration.thresholds_reaching(Goal("precision", 0.9), probability, none).tolist() == [0.9]


@pytest.mark.parametrize("measure", ["precision", "recall"])
def test_thresholds_reach_a_goal_on_rows_that_have_not_chosen_them(measure: Measure) -> None:
    logits, target = drawn_rows(20000, np.array([1.0, 1.5, 2.0]), np.array([-1.0, 0.0, 1.0]))
    found = calibration.fit(logits[None, ::2], target[::2], Goal(measure, 0.9))
    assigned, there = found.probabilities(logits[1::2]) >= np.array(found.thresholds), target[1::2] > 0
    of = assigned if measure == "precision" else there
    np.testing.assert_allclose((assigned & there).sum(0) / of.sum(0), 0.9, atol=0.03)


def test_the_fewer_rows_a_label_has_the_nearer_its_threshold_is_to_that_of_all_labels() -> None:
    found = drawn(np.array([0.1, 0.1, 0.1, 0.1]), np.array([0.0, 1.0, 3.0, 1000.0]), 0.3)
    assert found[0] == pytest.approx(0.7 * 0.3)
    assert (np.diff(found) < 0).all()
    # Of one row the label itself and all labels say as much: log-odds of -2.20 and -1.32.
    assert found[1] == pytest.approx(0.1467, abs=0.0002)
    assert found[3] == pytest.approx(0.1, rel=0.02)


def test_no_threshold_is_far_below_that_of_all_labels_however_many_rows_have_chosen_it() -> None:
    assert drawn(np.array([0.002, 0.04, 0.05]), np.array([3.0, 1e9, 1e9]), 0.3) == pytest.approx([0.045, 0.045, 0.05])


def test_the_threshold_of_all_labels_is_no_lower_than_the_answers_that_it_is_to_let_through() -> None:
    shared = SharedThreshold()
    shared.add(np.array([[0.5], [0.2]]), np.array([[1.0], [0.0]]))
    assert shared.value() == 0.5


@given(st.data())
def test_the_threshold_of_all_labels_has_the_highest_micro_f1(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows, labels = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 5))
    probability = rng.choice(np.linspace(0.02, 0.98, 49), (rows, labels))
    target = (rng.random((rows, labels)) < probability).astype(np.float64)
    shared = SharedThreshold()
    for label in range(labels):
        shared.add(probability[:, [label]], target[:, [label]])

    def micro_f1(threshold: float) -> float:
        assigned = probability >= threshold
        return float(2 * (assigned * target).sum() / max(1, assigned.sum() + target.sum()))

    best = max(micro_f1(value) for value in np.unique(probability))
    assert micro_f1(shared.value()) == pytest.approx(best) if target.any() else shared.value() == 0.5


def test_a_label_with_few_rows_is_not_assigned_to_nearly_everything() -> None:
    logits, target = drawn_rows(400)
    rare = np.full((400, 1), -6.0, np.float32) + np.linspace(0, 0.1, 400, dtype=np.float32)[:, None]
    few = np.zeros((400, 1), np.float32)
    few[5] = 1  # of the lowest scores: by its own rows nearly all would be assigned
    logits, target = np.hstack([logits, rare]), np.hstack([target, few])
    found = calibration.fit(logits[None], target)
    assert found.rows == (*target[:, :3].sum(0).astype(int), 1)
    assert not (found.probabilities(logits)[:, 3] >= found.thresholds[3]).any()


# All of it


def test_views_lines_and_thresholds_are_fitted_together() -> None:
    logits, target = drawn_rows(4000)
    noise = np.random.default_rng(1).normal(0, 2, logits.shape).astype(np.float32)
    found = calibration.fit(np.stack([logits, noise]), target)
    assert found.fitted
    assert found.ensemble_weights[1] < 0.1
    honest = found.probabilities(found.combine(np.stack([logits, noise])))
    np.testing.assert_allclose(honest.mean(0), target.mean(0), atol=0.02)


@pytest.mark.parametrize(
    ("goal", "threshold"), [(None, 0.5), (Goal("precision", 0.9), 0.9), (Goal("recall", 0.9), 0.5)], ids=str
)
def test_too_few_rows_fit_nothing(goal: Goal | None, threshold: float) -> None:
    logits, target = drawn_rows(MIN_ROWS - 1)
    expected = LabelSetCalibration((0.5, 0.5), (1.0,) * 3, (0.0,) * 3, (threshold,) * 3, fitted=False)
    assert calibration.fit(np.stack([logits, logits]), target, goal) == expected


@pytest.mark.parametrize("goal", [None, Goal("precision", 0.7)], ids=str)
def test_no_row_is_answered_by_what_it_has_fitted_itself(goal: Goal | None) -> None:
    logits, target = drawn_rows(200)
    fitted = calibration.fit(logits[None], target, goal)
    before = calibration.assigned_by_others(logits, target, fitted, goal)
    for row in (0, 7, 199):
        turned = target.copy()
        turned[row] = 1 - turned[row]
        after = calibration.assigned_by_others(logits, turned, fitted, goal)
        np.testing.assert_array_equal(after.probability_RC[row], before.probability_RC[row])
        np.testing.assert_array_equal(after.assigned_RC[row], before.assigned_RC[row])
        assert (after.probability_RC != before.probability_RC).any()


def test_where_others_would_be_too_few_all_rows_answer() -> None:
    logits, target = drawn_rows(MIN_ROWS)
    fitted = calibration.fit(logits[None], target)
    answered = calibration.assigned_by_others(logits, target, fitted)
    np.testing.assert_array_equal(answered.probability_RC, fitted.probabilities(logits))
    np.testing.assert_array_equal(answered.assigned_RC, answered.probability_RC >= np.array(fitted.thresholds))
