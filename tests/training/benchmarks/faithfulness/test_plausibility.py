import numpy as np
import pytest
from numpy.typing import NDArray

from faithfulness.plausibility import (
    Aligned,
    Rationale,
    align,
    auprc,
    by_unit,
    character_f1,
    iou_precision_recall,
    mean_share,
    measure,
    runs,
    token_f1,
    top_tokens,
)
from textcls.model import tokenizer


def flags(marks: str) -> NDArray[np.bool_]:
    return np.array([mark == "x" for mark in marks], np.bool_)


def aligned(tokens: str, marks: str, text: str) -> Aligned | None:
    rationale = Rationale(tuple(tokens.split(" ")), tuple(flags(marks).tolist()))
    return align(rationale, text, list(tokenizer.token_spans(text)))


def test_auprc_is_the_area_worked_out_by_hand() -> None:
    # From recall 1 to 1/2 the mean of precision 2/3 and 1/2, from there to 0 precision 1.
    assert auprc(np.array([3.0, 2, 1]), flags("x.x")) == pytest.approx(0.5 * (2 / 3 + 1 / 2) / 2 + 0.5)
    assert auprc(np.array([0.9, 0.1, 0.8]), flags("x.x")) == pytest.approx(1)


def test_token_f1_counts_tokens() -> None:
    # Two of three chosen are right, two of three right ones are chosen.
    assert token_f1(flags(".xxx.."), flags(".xx..x")) == pytest.approx(2 / 3)
    assert token_f1(flags("x."), flags(".x")) == 0


def test_the_hard_prediction_are_the_best_tokens() -> None:
    assert top_tokens(np.array([1.0, 9, 8, 0, 7, 6, 5]), 5).tolist() == flags(".xx.xxx").tolist()
    assert top_tokens(np.array([1.0, 2]), 5).all()


def test_as_many_are_chosen_as_rationales_are_long_in_the_mean() -> None:
    long, short = aligned("a b c d", "xx..", "a b c d"), aligned("a b c d", "x...", "a b c d")
    assert long is not None
    assert short is not None
    # 2 of 4 and 1 of 4: 3 of 8, which of 4 tokens is 1.5, rounded to even; of 8 tokens it would be 3.
    assert mean_share([long, short]) == pytest.approx(3 / 8)
    found = measure(long, np.array([4.0, 1, 3, 2]), 3 / 8)
    # a and c are chosen, a and b are right.
    assert found["token_f1"] == pytest.approx((0.5,))
    assert measure(short, np.array([4.0, 1, 3, 2]), 0.01)["token_f1"] == (1.0,)
    assert mean_share([]) == 0


def test_a_unit_has_the_mean_score_of_its_tokens() -> None:
    text = "good. bad film."
    spans = list(tokenizer.token_spans(text))
    scores = np.array([2.0, 0, 3, 1, -1])
    assert by_unit(scores, text, spans, "sentence").tolist() == [1, 1, 1, 1, 1]
    assert by_unit(np.array([2.0, 0, 6, 1, -1]), text, spans, "sentence").tolist() == [1, 1, 2, 2, 2]


def test_runs_of_marked_tokens_are_spans() -> None:
    assert list(runs(flags("xx..x.x"))) == [(0, 2), (4, 5), (6, 7)]
    assert list(runs(flags("..."))) == []


def test_single_tokens_match_a_span_that_they_are_half_of() -> None:
    # Spans (1, 3) and (5, 6): the tokens 1 and 2 are half of the first each, 5 is the second, 3 is in none.
    assert iou_precision_recall(flags(".xxx.x"), flags(".xx..x")) == (3 / 4, 3 / 2)


def test_merged_neighbours_are_one_span() -> None:
    # (1, 4) shares two of three tokens with (1, 3); (5, 6) is (5, 6).
    assert iou_precision_recall(flags(".xxx.x"), flags(".xx..x"), merge=True) == (1, 1)
    # (0, 5) shares two of five.
    assert iou_precision_recall(flags("xxxxx."), flags(".xx..."), merge=True) == (0, 0)


def test_a_token_of_a_longer_span_does_not_match_it() -> None:
    assert iou_precision_recall(flags("x..."), flags("xxx.")) == (0, 0)


def test_scores_of_tokens_that_share_a_character_are_summed() -> None:
    found = aligned("isn't good", "x.", "isn't good")  # the model's: isn ' t good
    assert found is not None
    assert found.exact
    assert found.scores(np.array([1.0, 0.25, 0.5, 4])).tolist() == [1.75, 4]


def test_one_token_of_the_model_may_count_for_two_of_people() -> None:
    found = aligned("can not", ".x", "cannot")
    assert found is not None
    assert not found.exact
    assert found.scores(np.array([2.0])).tolist() == [2, 2]


def test_tokens_are_found_though_case_accents_and_stops_are_lost() -> None:
    found = aligned(
        "The crème brûlée is Moore 's finest dessert .", "......x..", "the cr me br l e is moore 's finest dessert"
    )
    assert found is not None
    # The full stop is left out; the model reads the cr me br l e is moore ' s finest dessert.
    assert found.gold.tolist() == flags("......x.").tolist()
    assert found.overlaps[1].nonzero()[0].tolist() == [1, 2]
    assert found.overlaps[6].nonzero()[0].tolist() == [10]


def test_what_cannot_be_aligned_is_dropped() -> None:
    assert aligned("something else altogether", "x..", "quite another text") is None
    assert aligned("good .", ".x", "good") is None


def test_what_the_model_does_not_read_has_no_score() -> None:
    rationale = Rationale(("one", "two"), (False, True))
    found = align(rationale, "one two", [(0, 3)])
    assert found is not None
    assert found.scores(np.array([5.0])).tolist() == [5, 0]


def test_all_measures_of_a_perfect_explanation_are_one() -> None:
    found = aligned("a b c d e f g", ".xxxxx.", "a b c d e f g")
    assert found is not None
    values = measure(found, np.array([0.0, 5, 4, 3, 2, 1, 0]), 5 / 7)
    assert values["auprc"] == pytest.approx((1,))
    assert values["token_f1"] == (1,)
    assert values["iou_f1"] == (0, 0)  # each token is a fifth of the span
    assert values["iou_f1_merged"] == (1, 1)


def test_character_f1_counts_the_letters_of_tokens() -> None:
    chosen, gold = np.array([True, True, False]), np.array([True, False, True])
    # 4 letters in both, 4 + 2 chosen, 4 + 6 marked.
    assert character_f1(chosen, gold, np.array([4, 2, 6])) == pytest.approx(2 * 4 / (6 + 10))
    assert character_f1(~gold, gold, np.array([4, 2, 6])) == 0.0
