"""Metrics of several labels a text, each of a case worked by hand."""

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import label_ranking_loss

from textcls.evaluation.label_set_metrics import LabelSetReport, report
from textcls.evaluation.metrics import calibration_gap

NAMES = ["a", "b", "c"]
# Rows with a; a and b; no label; c. Assigned are a and b; a; nothing; a.
GOLD = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]], np.bool_)
PROBABILITIES = np.array([[0.9, 0.6, 0.1], [0.8, 0.3, 0.2], [0.2, 0.1, 0.1], [0.7, 0.2, 0.4]])
HALF = [0.5, 0.5, 0.5]


def found(
    gold: NDArray[np.bool_] = GOLD, thresholds: list[float] = HALF, unknown: tuple[str, ...] = ()
) -> LabelSetReport:
    return report(PROBABILITIES[: len(gold)], gold, thresholds, NAMES, unknown)


def test_micro_f1_counts_all_labels_of_all_rows_together() -> None:
    # 2 of 4 assigned are right, and 2 of 4 are found.
    assert found().micro_f1 == pytest.approx(2 * 2 / (4 + 4))


def test_precision_recall_and_f1_of_each_label_and_macro_f1_as_their_mean() -> None:
    a, b, c = found().labels
    assert (a.precision, a.recall, a.f1, a.rows, a.assigned) == pytest.approx((2 / 3, 1, 4 / 5, 2, 3))
    assert (b.precision, b.recall, b.f1, b.rows, b.assigned) == (0, 0, 0, 1, 1)
    assert (c.precision, c.recall, c.f1, c.rows, c.assigned) == (0, 0, 0, 1, 0)
    assert found().macro_f1 == pytest.approx(4 / 5 / 3)


def test_macro_f1_leaves_out_labels_that_no_row_has() -> None:
    few = found(GOLD[:1])
    assert [label.rows for label in few.labels] == [1, 0, 0]
    assert few.macro_f1 == few.labels[0].f1 == 1


def test_f1_of_the_rows_is_1_where_no_label_is_right_and_none_assigned() -> None:
    assert found().samples_f1 == pytest.approx((2 / 3 + 2 / 3 + 1 + 0) / 4)


def test_exact_rows_are_those_assigned_all_their_labels_and_no_other() -> None:
    assert found().exact == 1 / 4
    assert found(thresholds=[0.75, 0.7, 0.4]).exact == 3 / 4


def test_average_precision_is_the_mean_of_that_of_each_label() -> None:
    # b stands second in the order of its probabilities, behind a row without it.
    assert [label.average_precision for label in found().labels] == pytest.approx([1, 1 / 2, 1])
    assert found().average_precision == pytest.approx(2.5 / 3)
    assert found(GOLD[:1]).labels[1].average_precision is None


def test_ranking_loss_is_the_share_of_pairs_in_the_wrong_order_of_rows_that_have_both() -> None:
    # Of the row with c, a stands before it and b behind; the others are in order, and one has no label.
    assert found().ranking_loss == pytest.approx((0 + 0 + 1 / 2) / 3)


def test_calibration_error_is_that_of_each_label_by_itself() -> None:
    # c: two rows of probability 0.1 in one bin, without the label: 0.2; one of 0.2: 0.2; one of 0.4, with it: 0.6.
    assert [label.ece for label in found().labels] == pytest.approx([1.2 / 4, 1.6 / 4, 1.0 / 4])
    assert found().ece == pytest.approx((0.3 + 0.4 + 0.25) / 3)


def test_probabilities_that_are_as_frequent_as_they_say_have_no_calibration_error() -> None:
    assert calibration_gap(np.full(4, 0.25), np.array([1, 0, 0, 0], np.bool_)) == 0


def test_cross_entropy_is_summed_over_the_labels_of_a_row() -> None:
    rows = [(0.9, 0.4, 0.9), (0.8, 0.3, 0.8), (0.8, 0.9, 0.9), (0.3, 0.8, 0.4)]
    assert found().cross_entropy == pytest.approx(-sum(math.log(p) for row in rows for p in row) / 4)


def test_labels_are_mixed_up_where_one_is_missed_and_another_assigned_in_its_place() -> None:
    assert found().mixed_up == (("c", "a", 1),)
    twice = report(np.tile(PROBABILITIES, (2, 1)), np.tile(GOLD, (2, 1)), HALF, NAMES)
    assert twice.mixed_up == (("c", "a", 2),)


def test_a_label_that_the_model_does_not_know_is_never_assigned_and_counts_as_missed() -> None:
    gold = np.hstack([GOLD, [[False], [False], [True], [False]]])
    with_stranger = found(gold, unknown=("z",))
    stranger = with_stranger.labels[3]
    assert (stranger.label, stranger.rows, stranger.assigned, stranger.f1) == ("z", 1, 0, 0)
    assert with_stranger.micro_f1 == pytest.approx(2 * 2 / (4 + 5))
    assert with_stranger.macro_f1 == pytest.approx(4 / 5 / 4)
    assert with_stranger.exact == 0
    assert with_stranger.ece == found().ece
    # What is certain to be wrong has no likelihood, and is ranked behind all others.
    assert with_stranger.cross_entropy is None
    wider = np.hstack([PROBABILITIES, np.zeros((4, 1))])
    assert with_stranger.ranking_loss == pytest.approx(label_ranking_loss(gold[[0, 1, 2]], wider[[0, 1, 2]]))
    assert with_stranger.ranking_loss > found().ranking_loss


def test_a_label_is_assigned_from_its_threshold_on_as_the_model_rounds_it() -> None:
    probabilities = np.array([[0.7], [0.1]], np.float32)  # as a number of 64 bits 0.7 is larger
    assert report(probabilities, np.array([[True], [False]]), [0.7], ["a"]).exact == 1


def test_what_was_assigned_may_be_told_in_the_place_of_thresholds() -> None:
    told = report(PROBABILITIES, GOLD, HALF, NAMES, assigned=GOLD)
    assert (told.micro_f1, told.macro_f1, told.samples_f1, told.exact) == (1, 1, 1, 1)
    assert told.average_precision == found().average_precision


def test_a_report_on_no_rows_is_all_zero_and_plain_data() -> None:
    none = json.loads(json.dumps(found(GOLD[:0]).as_json()))
    assert (none["rows"], none["micro_f1"], none["exact"], none["ece"]) == (0, 0, 0, 0)
    assert none["cross_entropy"] is None
    plain = json.loads(json.dumps(found().as_json()))
    assert plain["mixed_up"] == [{"has": "c", "assigned": "a", "rows": 1}]
    assert [label["threshold"] for label in plain["labels"]] == HALF


def test_an_unknown_label_fares_as_one_whose_probability_is_always_0() -> None:
    gold = np.column_stack([GOLD, GOLD[:, 0]])
    scores = np.column_stack([PROBABILITIES, np.zeros(len(GOLD))])
    as_known = report(scores, gold, [*HALF, 1.0], [*NAMES, "z"])
    assert found(gold, unknown=("z",)).labels == as_known.labels
