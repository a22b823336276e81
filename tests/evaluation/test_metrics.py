"""Scores against cases worked by hand."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls.evaluation.metrics import BINS, LabelReport, cross_entropy, expected_calibration_error, report


def two_labels(*confidence: float) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Probabilities of rows that all answer label 0, with these confidences."""
    first = np.array(confidence, np.float32)
    return np.stack([first, 1 - first], 1).reshape(-1, 2)


def labels(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


def one_hot(answers: list[int], width: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.eye(width, dtype=np.float32)[answers]


# Calibration


def test_calibration_error_of_a_case_worked_by_hand() -> None:
    # Bin 13 of 15 holds 0.90 right and 0.90 wrong: |1.80 - 1| = 0.80.  Bin 9 holds 0.62 twice, both right: 0.76.
    # The sum of the gaps over four rows: 1.56 / 4.
    assert BINS == 15
    found = expected_calibration_error(two_labels(0.9, 0.9, 0.62, 0.62), labels(0, 1, 0, 0))
    assert found == pytest.approx(0.39, abs=1e-6)


def test_overconfidence_in_one_bin_does_not_pay_for_doubt_in_another() -> None:
    # Bin 14: 0.95 wrong, 0.95 over.  Bin 8: 0.55 right, 0.45 under.  As one bin the gap would be 0.25.
    found = expected_calibration_error(two_labels(0.95, 0.55), labels(1, 0))
    assert found == pytest.approx((0.95 + 0.45) / 2, abs=1e-6)


def test_perfect_calibration_is_0() -> None:
    assert expected_calibration_error(two_labels(0.75, 0.75, 0.75, 0.75), labels(0, 0, 1, 0)) == pytest.approx(0)


def test_certainty_is_counted_in_the_last_bin() -> None:
    assert expected_calibration_error(two_labels(1, 1), labels(0, 0)) == 0
    assert expected_calibration_error(two_labels(1, 1), labels(1, 1)) == 1
    # Together with 0.95: |1.95 - 1|; in a bin of its own the two gaps, 1 and 0.05, would add up.
    assert expected_calibration_error(two_labels(1, 0.95), labels(1, 0)) == pytest.approx(0.95 / 2, abs=1e-6)


def test_a_label_that_the_model_does_not_know_is_an_error_of_calibration_too() -> None:
    assert expected_calibration_error(two_labels(0.9), labels(-1)) == pytest.approx(0.9, abs=1e-6)


def test_calibration_of_no_rows_is_0() -> None:
    assert expected_calibration_error(two_labels(), labels()) == 0


@given(rows=st.lists(st.tuples(st.floats(0, 1), st.integers(-1, 1)), min_size=1, max_size=40))
def test_calibration_error_lies_between_0_and_1(rows: list[tuple[float, int]]) -> None:
    confidence, right = zip(*rows, strict=True)
    assert 0 <= expected_calibration_error(two_labels(*confidence), labels(*right)) <= 1 + 1e-6


# The report


def test_a_report_worked_by_hand() -> None:
    # true 0 0 0 1 1 2, answered 0 0 1 1 1 0
    found = report(one_hot([0, 0, 1, 1, 1, 0], 3), labels(0, 0, 0, 1, 1, 2), ["a", "b", "c"])
    assert found.rows == 6
    assert found.accuracy == pytest.approx(4 / 6)
    assert found.confusion == ((2, 1, 0), (0, 2, 0), (1, 0, 0))
    assert [(label.label, label.rows) for label in found.labels] == [("a", 3), ("b", 2), ("c", 1)]
    assert [label.precision for label in found.labels] == pytest.approx([2 / 3, 2 / 3, 0])
    assert [label.recall for label in found.labels] == pytest.approx([2 / 3, 1, 0])
    assert [label.f1 for label in found.labels] == pytest.approx([2 / 3, 4 / 5, 0])
    assert found.macro_f1 == pytest.approx((2 / 3 + 4 / 5 + 0) / 3)
    assert found.ece == pytest.approx(2 / 6)


def test_the_right_label_is_looked_for_among_the_best_three_and_five() -> None:
    # Six labels, all rows in falling order of label; of the last two, which are alike, the first comes first.
    probabilities = np.tile(np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.05], np.float32), (5, 1))
    found = report(probabilities, labels(0, 2, 3, 4, 5), list("abcdef"))
    assert found.top_k_accuracy == {3: pytest.approx(2 / 5), 5: pytest.approx(4 / 5)}


def test_an_unknown_label_is_never_among_the_best_and_of_few_labels_nothing_is_said() -> None:
    probabilities = np.tile(np.array([0.4, 0.3, 0.2, 0.1], np.float32), (2, 1))
    assert report(probabilities, labels(1, 4), list("abcd"), unknown=["z"]).top_k_accuracy == {3: 0.5}
    assert report(one_hot([0], 2), labels(0), ["a", "b"]).top_k_accuracy == {}


def test_macro_f1_leaves_out_labels_that_neither_occur_nor_are_answered() -> None:
    found = report(one_hot([0, 1], 4), labels(0, 1), ["a", "b", "never", "nowhere"])
    assert found.macro_f1 == 1
    assert [label.label for label in found.labels] == ["a", "b", "never", "nowhere"]


def test_macro_f1_counts_a_label_that_is_answered_but_does_not_occur() -> None:
    # a: precision 1, recall 1/2, F1 2/3.  b: answered once, never right, F1 0.
    found = report(one_hot([0, 1], 3), labels(0, 0), ["a", "b", "c"])
    assert found.macro_f1 == pytest.approx((2 / 3 + 0) / 2)


def test_rows_of_unknown_labels_are_errors_and_have_their_own_line() -> None:
    found = report(one_hot([0, 1, 1], 2), labels(0, 1, 2), ["a", "b"], unknown=["z"])
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.labels[2] == LabelReport("z", 0.0, 0.0, 0.0, 1)
    assert found.confusion == ((1, 0, 0), (0, 1, 0), (0, 1, 0))
    assert found.macro_f1 == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert found.ece == pytest.approx(1 / 3)


def test_a_report_on_no_rows_is_all_zero() -> None:
    found = report(np.zeros((0, 2), np.float32), labels(), ["a", "b"])
    assert (found.rows, found.accuracy, found.macro_f1, found.ece) == (0, 0, 0, 0)
    assert found.confusion == ((0, 0), (0, 0))


def test_a_report_is_plain_data() -> None:
    found = report(one_hot([0, 1], 2), labels(0, 1), ["a", "b"])
    plain = json.loads(json.dumps(found.as_json()))
    assert plain["labels"][0] == {"label": "a", "precision": 1.0, "recall": 1.0, "f1": 1.0, "rows": 1}
    assert {name: plain[name] for name in ("rows", "accuracy", "macro_f1", "ece")} == {
        "rows": 2,
        "accuracy": 1.0,
        "macro_f1": 1.0,
        "ece": 0.0,
    }


def test_cross_entropy_and_perplexity_of_a_case_worked_by_hand() -> None:
    probabilities = np.array([[0.5, 0.5], [0.25, 0.75]])
    found = report(probabilities, np.array([0, 0]), ["a", "b"])
    # (ln 2 + ln 4) / 2 = 1.5 ln 2, whose exponential is 2 to the power of 1.5.
    assert found.cross_entropy == pytest.approx(1.5 * math.log(2))
    assert found.perplexity == pytest.approx(2**1.5)


def test_the_perplexity_of_a_guess_among_n_labels_is_n() -> None:
    found = report(np.full((10, 7), 1 / 7), np.arange(10) % 7, list("abcdefg"))
    assert found.perplexity == pytest.approx(7)


def test_cross_entropy_is_scikit_learns_log_loss() -> None:
    from sklearn.metrics import log_loss

    chance = np.random.default_rng(0)
    probabilities, labels = chance.dirichlet(np.ones(4), 50), chance.integers(4, size=50)
    assert cross_entropy(probabilities, labels) == pytest.approx(log_loss(labels, probabilities, labels=range(4)))


def test_a_probability_that_was_rounded_to_zero_leaves_the_cross_entropy_finite() -> None:
    found = cross_entropy(np.array([[0.0, 1.0]], np.float32), np.array([0]))
    assert found is not None
    assert 80 < found < 100


def test_there_is_no_perplexity_of_no_rows_or_of_a_label_that_the_model_does_not_know() -> None:
    probabilities = np.array([[0.5, 0.5]])
    for found in (
        report(probabilities[:0], np.zeros(0, np.int64), ["a", "b"]),
        report(probabilities, np.array([2]), ["a", "b"], ["c"]),
    ):
        assert (found.cross_entropy, found.perplexity) == (None, None)


def test_thousands_of_labels_that_occur_in_few_rows_take_no_matrix() -> None:
    unknown = [f"unknown{i}" for i in range(50_000)]
    found = report(one_hot([0, 1, 0], 2), labels(0, 40_000, 40_000), ["a", "b"], unknown)
    assert found.counts == ((0, 0, 1), (40_000, 0, 1), (40_000, 1, 1))
    assert found.confusions == (("unknown39998", "a", 1), ("unknown39998", "b", 1))
