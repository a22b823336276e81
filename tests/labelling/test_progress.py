"""What is known of the accuracy while rows are labelled."""

import numpy as np

from textcls.labelling.progress import LEAST_RANDOM, advice, estimate, random_sample


def test_only_the_beginning_of_the_random_order_counts_whoever_asked_for_it() -> None:
    labelled = dict.fromkeys([5, 2, 9, 7])
    assert random_sample([5, 2, 4, 9, 7], labelled, frozenset()) == [5, 2]
    assert random_sample([5, 2, 4, 9, 7], labelled, frozenset({4})) == [5, 2, 9, 7]


def test_texts_that_a_model_asked_for_do_not_change_the_estimate() -> None:
    """Of 1,000 texts a model gets 70 % right; those that it asks for are all hard ones."""
    generator = np.random.default_rng(0)
    right = generator.random(1000) < 0.7
    order = generator.permutation(1000).tolist()
    labelled = dict.fromkeys([*order[:150], *np.flatnonzero(~right).tolist()])
    held_out = {row: bool(right[row]) for row in labelled}
    found = estimate(held_out, random_sample(order, labelled, frozenset()), len(labelled))
    assert found is not None
    assert found.rows >= 150
    assert found.low < 0.7 < found.high
    assert sum(held_out.values()) / len(held_out) < 0.5


def test_a_small_sample_says_nothing() -> None:
    assert estimate(dict.fromkeys(range(100), True), list(range(LEAST_RANDOM - 1)), 100) is None


def test_advice_waits_for_labels_and_says_when_they_stop_paying() -> None:
    assert advice(20, 0.0) is None
    assert advice(200, None) is None
    assert "still pays" in (advice(200, 0.1) or "")
    assert "hardly pay" in (advice(200, 0.01) or "")
