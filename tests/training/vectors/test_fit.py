"""Vectors that are fitted to sentences: the least squares by hand, and what comes of them."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from textcls.errors import InputError
from textcls_training.vectors import fit

WORDS = [f"w{i}" for i in range(30)]


def sentences(number: int, seed: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts of random words, the vectors that their words have by themselves, and those of the texts.

    The latter are sums of other vectors of the words, as an encoder reads words in a sentence otherwise than alone.
    """
    rng = np.random.default_rng(0)
    alone = rng.standard_normal((len(WORDS), 8))
    inside = alone + rng.standard_normal(alone.shape)
    which = np.random.default_rng(seed).integers(0, len(WORDS), (number, 6))
    texts = [" ".join(WORDS[i] for i in row) for row in which]
    return texts, alone.astype(np.float32), inside[which].sum(1).astype(np.float32)


def distance(rows: np.ndarray, texts: list[str], target: np.ndarray) -> float:
    """How much of the sentence vectors the sums leave unexplained, by the best scale of the sums."""
    sums = fit.bag_of_words(texts, WORDS, np.linalg.norm(rows, axis=1).astype(np.float64)) @ rows
    sums, target = sums - sums.mean(0), target - target.mean(0)
    scale = (sums * target).sum() / (sums**2).sum()
    return float(((scale * sums - target) ** 2).sum() / (target**2).sum())


def test_a_bag_holds_the_weights_of_the_words_in_rows_of_length_one() -> None:
    texts = ["Card, the CARD", "nothing known", "the"]
    bag = fit.bag_of_words(texts, ["the", "card"], np.array([0.75, 0.5]))
    np.testing.assert_allclose(bag.toarray(), np.array([[0.6, 0.8], [0, 0], [1, 0]]))


def test_a_least_squares_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two texts of one word each, 1 and -1 in the first direction; the sentences say so of the second one.

    The sentences become as long as the words, so that the words miss 1 in the second direction, and 1 in the first is
    too much. Drawn to where they were as strongly as their texts draw, they go half of the way.
    """
    monkeypatch.setattr(fit, "LENGTH", 1)
    bag, old = csr_matrix(np.eye(2)), np.array([[1.0, 0.0], [-1.0, 0.0]])
    found = fit.drawn(bag, old, np.array([[0.0, 7.0], [0.0, -7.0]]), strength=1)
    np.testing.assert_allclose(found, [[0.5, 0.5], [-0.5, -0.5]], atol=1e-3)
    np.testing.assert_allclose(fit.drawn(bag, old, 7 * old), old, atol=1e-3)


def test_it_is_the_solution_of_the_normal_equations() -> None:
    texts, rows, target = sentences(100, 1)
    bag = fit.bag_of_words(texts, WORDS, np.ones(len(WORDS)))
    old = rows.astype(np.float64)
    sums, centred = bag @ old, target - target.mean(0)
    sums = sums - sums.mean(0)
    scale = fit.LENGTH * np.sqrt((sums**2).sum() / (centred**2).sum())
    dense = bag.toarray()
    move = np.linalg.solve(dense.T @ dense + 3 * np.eye(len(WORDS)), dense.T @ (scale * centred - sums))
    np.testing.assert_allclose(fit.drawn(bag, old, target.astype(np.float64), 3), old + move, atol=2e-3)


def test_sums_of_fitted_vectors_come_nearer_to_sentences_that_were_not_among_the_texts() -> None:
    texts, rows, target = sentences(300, 1)
    others, _, other_target = sentences(300, 2)
    found = fit.fitted(WORDS, rows, texts, target)
    assert distance(found, others, other_target) < 0.7 * distance(rows, others, other_target)


def test_words_keep_their_lengths_and_those_of_no_text_stay_as_they_are() -> None:
    texts, rows, target = sentences(50, 1)
    rows = np.concatenate([rows, [[3] * 8]]).astype(np.float32)
    found = fit.fitted([*WORDS, "nowhere"], rows, texts, target)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5)
    np.testing.assert_allclose(found[-1], rows[-1], rtol=1e-6)
    assert np.abs(found[:-1] - rows[:-1]).max() > 0.1


def test_texts_that_hold_none_of_the_words_are_told() -> None:
    with pytest.raises(InputError, match="None of the words occurs in the texts"):
        fit.fitted(["card"], np.ones((1, 2), np.float32), ["ein Wort"], np.ones((1, 2), np.float32))
