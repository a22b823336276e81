"""Which texts are chosen to be labelled next."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls import Classifier
from textcls.labelling.choice import choose, doubt, trust
from textcls.labelling.suggest import Pool, suggest
from textcls.labelling.vectors import text_vectors

TEXTS = [
    "my card was charged twice",
    "MY CARD was charged twice!",
    "where is my parcel",
    "the parcel has not arrived",
    "please cancel my order",
    "   ",
    "refund my card please",
]


def test_doubt_is_how_near_the_second_label_is_to_the_first() -> None:
    probability_RC = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.6, 0.3, 0.1]])
    assert np.allclose(doubt(probability_RC), [1.0, 0.0, 0.7])


def test_of_several_labels_the_most_doubtful_one_counts() -> None:
    assert np.allclose(doubt(np.array([[0.0, 0.5], [0.9, 0.01]]), several=True), [1.0, 0.2])


def test_a_text_like_one_before_it_waits() -> None:
    vector_RF = np.eye(4, dtype=np.float32)
    assert choose(vector_RF, np.zeros(4, np.bool_), 4) == [2, 0, 1, 3]
    vector_RF[0] = vector_RF[2]
    assert choose(vector_RF, np.zeros(4, np.bool_), 4) == [2, 1, 3, 0]
    # Also where the text before it is labelled already.
    assert choose(vector_RF, np.array([False, False, True, False]), 2) == [1, 3]


def test_trust_is_how_much_better_than_guessing_a_model_is() -> None:
    assert trust(np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]])) == pytest.approx((0.7 - 1 / 3) / (1 - 1 / 3))
    assert trust(np.full((5, 4), 0.25)) == 0
    assert trust(np.array([[0.9, 0.6], [0.1, 0.8]]), several=True) == pytest.approx((0.7 - 0.5) / 0.5)
    assert trust(np.ones((2, 1))) == 1


def test_the_less_a_model_can_be_trusted_the_more_is_explored() -> None:
    generator = np.random.default_rng(0)
    vector_RF = generator.normal(size=(200, 8)).astype(np.float32)
    vector_RF /= np.linalg.norm(vector_RF, axis=1, keepdims=True)
    nobody = np.zeros(200, np.bool_)
    for share in (0.2, 0.6, 0.98):
        best = 0.5 + share / 2
        right = np.concatenate([np.full(100, best), np.full(100, best - 0.005)])
        probability_RC = np.stack([right, 1 - right], 1)
        assert abs(trust(probability_RC) - share) < 0.01
        chosen = choose(vector_RF, nobody, 50, probability_RC)
        # The second hundred are the doubtful ones, and all texts are candidates.
        explored = [row for row in chosen if row < 100]
        assert chosen[0] >= 100
        assert len(explored) <= 50 * (1 - share) + 1
        assert share > 0.9 or explored


def test_doubt_is_asked_of_a_few_times_as_many_texts_as_are_chosen_and_of_others_in_each_round() -> None:
    vector_RF, labelled_R = np.zeros((1000, 2), np.float32), np.zeros(1000, np.bool_)
    right_R = np.linspace(0.9999, 0.99, 1000)
    probability_RC = np.stack([right_R, 1 - right_R], 1)
    chosen = choose(vector_RF, labelled_R, 10, probability_RC)
    # Of 40 random texts a quarter is chosen: not the ten last of all, and yet of the more doubtful ones.
    assert min(chosen) < 980
    assert np.mean(chosen) > 700
    labelled_R[chosen] = True
    assert not set(chosen) & set(choose(vector_RF, labelled_R, 10, probability_RC))


@given(rows=st.integers(1, 30), count=st.integers(0, 40), seed=st.integers(0, 2**32 - 1), model=st.booleans())
def test_as_many_as_are_wanted_are_chosen_each_once_and_always_the_same(
    rows: int, count: int, seed: int, model: bool
) -> None:
    generator = np.random.default_rng(seed)
    vector_RF = generator.normal(size=(rows, 4)).astype(np.float32)
    vector_RF /= np.linalg.norm(vector_RF, axis=1, keepdims=True)
    labelled_R = generator.random(rows) < 0.3
    probability_RC = generator.dirichlet(np.ones(3), rows) if model else None
    chosen = choose(vector_RF, labelled_R, count, probability_RC)
    assert len(chosen) == len(set(chosen)) == min(count, int((~labelled_R).sum()))
    assert not labelled_R[chosen].any()
    assert chosen == choose(vector_RF, labelled_R, count, probability_RC)


def test_products_of_vectors_are_nearly_those_of_tf_idf() -> None:
    same, reordered, other = text_vectors(["my card was charged twice", "twice charged was my card", "wo ist es"])
    assert same @ same == np.float32(1) or abs(same @ same - 1) < 1e-5
    assert same @ reordered > 0.3 > abs(same @ other)
    assert not text_vectors([""]).any()


def test_near_copies_and_blank_texts_are_left_out_and_so_are_copies_of_labelled_texts(classifier: Classifier) -> None:
    rows = [one.row for one in suggest(TEXTS, 10, classifier)]
    assert sorted(rows) == [0, 2, 3, 4, 6]
    rows = [one.row for one in suggest(TEXTS, 10, classifier, known=["Where is my PARCEL?"])]
    assert sorted(rows) == [0, 3, 4, 6]


def test_the_model_asks_for_what_it_is_unsure_of(classifier: Classifier) -> None:
    found = suggest(TEXTS, 1, classifier)[0]
    doubts = {}
    for row in (0, 2, 3, 4, 6):
        first, second = classifier.predict(TEXTS[row]).top(2)
        doubts[row] = 1 - (first.score - second.score)
    assert found.row == max(doubts, key=doubts.__getitem__)
    assert found.doubt is not None
    assert abs(found.doubt - doubts[found.row]) < 1e-6


def test_without_a_model_the_choice_has_no_answers() -> None:
    first = suggest(TEXTS, 3)
    assert [one.label for one in first] == [None] * 3
    assert first == suggest(TEXTS, 3)


def test_of_very_many_texts_some_are_looked_at_from_the_first_to_the_last() -> None:
    pool = Pool.of([f"text number {i}" for i in range(50)], most=10)
    assert (len(pool.rows), pool.rows[0], pool.rows[-1]) == (10, 0, 49)
