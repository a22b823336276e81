import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithfulness.faithfulness import (
    Faithfulness,
    drops,
    eraser_sets,
    ferret_sets,
    measure,
    order,
    tau,
)
from tests.training.benchmarks.faithfulness.conftest import Adder, case_of
from textcls_training.data.arrays import Float64


def measured(text: str, scores: list[float]) -> Faithfulness:
    case = case_of(text)
    (found,) = measure(Adder(), case, [np.array(scores)], drops(Adder(), case, "delete"), "delete")
    return found


def test_comprehensiveness_and_sufficiency_are_those_worked_out_by_hand() -> None:
    # f = 0.1 + 0.4 + 0.3 + 0.1 = 0.9; of four tokens the sets are 1, 1, 1, 1 and 2 tokens.
    found = measured("a b c d", [4, 3, 2, 1])
    assert found.comprehensiveness == pytest.approx(0.46)
    assert found.sufficiency == pytest.approx(0.34)
    # from 0.1 of the empty text to 0.9
    assert found.relative_comprehensiveness == pytest.approx(0.46 / 0.8)
    assert found.relative_sufficiency == pytest.approx(0.34 / 0.8)


def test_signs_are_kept() -> None:
    # f = 0.7; of "a" alone 0.5, of "a b", two of four tokens, 0.8.
    found = measured("a b c not", [4, 3, 2, 1])
    assert found.sufficiency == pytest.approx((4 * (0.7 - 0.5) + (0.7 - 0.8)) / 5)


def test_ferret_takes_positive_tokens_alone_and_skips_what_repeats() -> None:
    # Sets {a}, {a, b}, {a, b, c}: d has no positive score, and thresholds between add nothing.
    found = measured("a b c d", [3, 2, 1, 0])
    assert found.ferret_comprehensiveness == pytest.approx((0.4 + 0.7 + 0.8) / 3)
    assert found.ferret_sufficiency == pytest.approx((0.4 + 0.1 + 0.0) / 3)


def test_ferret_has_no_figure_without_a_positive_score() -> None:
    found = measured("a b", [-1, 0])
    assert np.isnan(found.ferret_comprehensiveness)
    assert np.isnan(found.ferret_sufficiency)


def test_drops_are_what_the_probability_loses_with_each_token() -> None:
    assert drops(Adder(), case_of("a b d"), "delete") == pytest.approx([0.4, 0.3, 0.0])


def test_tau_with_leave_one_out_is_one_for_the_same_order_and_minus_one_for_the_opposite() -> None:
    assert measured("a b c d", [9, 5, 2, 1]).loo_tau == pytest.approx(1)
    assert measured("a b c d", [1, 2, 5, 9]).loo_tau == pytest.approx(-1)


def test_tau_is_not_defined_where_all_are_alike_or_there_is_one() -> None:
    assert np.isnan(tau(np.ones(3), np.arange(3.0)))
    assert np.isnan(tau(np.ones(1), np.ones(1)))


def test_the_ratio_is_not_defined_where_the_text_changes_little() -> None:
    # class 1, from 0.9 of the empty text to 0.8
    found = measured("c d", [1, 2])
    assert found.change == pytest.approx(-0.1)
    assert np.isnan(found.relative_comprehensiveness)
    assert np.isnan(found.relative_sufficiency)


def test_the_top_is_rounded_up_and_never_empty() -> None:
    assert [len(which) for which in eraser_sets(np.arange(15.0))] == [1, 1, 2, 3, 8]
    assert [len(which) for which in eraser_sets(np.ones(1))] == [1] * 5


def test_of_equal_scores_the_earlier_token_is_first() -> None:
    assert order(np.array([1.0, 2.0, 1.0, 2.0])).tolist() == [1, 3, 0, 2]


def test_several_explanations_are_measured_as_each_alone() -> None:
    case, scores = case_of("a b c d"), [np.array([4.0, 3, 2, 1]), np.array([-1.0, -2, 3, 4])]
    case_drops = drops(Adder(), case, "mask")
    together = measure(Adder(), case, scores, case_drops, "mask")
    assert together == [measure(Adder(), case, [one], case_drops, "mask")[0] for one in scores]


@given(st.lists(st.integers(-40, 40).map(float), min_size=1, max_size=12).map(np.array))
def test_only_the_order_of_the_scores_counts(scores: Float64) -> None:
    stretched = np.sign(scores) * (np.exp(np.abs(scores) / 40) - 1)
    for sets in (eraser_sets, ferret_sets):
        assert [w.tolist() for w in sets(scores)] == [w.tolist() for w in sets(stretched)]
