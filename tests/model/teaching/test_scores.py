"""The formula of prototypes in NumPy: what attention does, what it becomes at its ends, and what means are made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls.model.teaching.centres import Float32, centres
from textcls.model.teaching.scores import padded, scores


def unit(*vectors: tuple[float, ...]) -> Float32:
    found = np.array(vectors, np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def random_vectors(number: int, seed: int, width: int = 6) -> Float32:
    return unit(*np.random.default_rng(seed).normal(size=(number, width)).tolist())


def test_a_label_of_two_topics_is_near_to_a_text_of_either_only_with_attention() -> None:
    support = padded(unit((1, 0, 0), (0, 1, 0), (1, 0.5, 0.2)), np.array([2, 1]))
    query = unit((1, 0.1, 0))
    averaged, attended = (scores(query, *support, scale).cosine_BC[0] for scale in (1e-6, 20.0))
    assert averaged[0] < averaged[1]
    assert attended[0] > 0.99 > attended[1]


def test_without_a_scale_attention_is_the_mean_of_the_support_rows() -> None:
    support = random_vectors(4, 0)
    found = scores(random_vectors(3, 1), *padded(support, np.array([4])), 1e-9)
    np.testing.assert_allclose(found.attention_BCK, 0.25, atol=1e-6)
    mean = support.mean(0)
    expected = random_vectors(3, 1) @ mean / np.linalg.norm(mean)
    np.testing.assert_allclose(found.cosine_BC[:, 0], expected, atol=1e-6)


@given(counts=st.lists(st.integers(1, 5), min_size=1, max_size=4), seed=st.integers(0, 99), scale=st.floats(0.1, 100))
def test_attention_sums_to_1_over_the_rows_of_a_label_and_cosines_are_such(
    counts: list[int], seed: int, scale: float
) -> None:
    support = padded(random_vectors(sum(counts), seed), np.array(counts))
    found = scores(random_vectors(3, seed + 1), *support, scale)
    np.testing.assert_allclose(found.attention_BCK.sum(2), 1, atol=1e-5)
    assert not found.attention_BCK[:, ~support[1]].any()
    assert (abs(found.cosine_BC) <= 1 + 1e-5).all()


def test_a_row_that_is_left_out_has_no_weight() -> None:
    vectors = random_vectors(3, 0)
    found = scores(vectors, *padded(vectors, np.array([3])), 10.0, np.eye(3, dtype=bool)[:, None])
    assert not found.attention_BCK[np.arange(3), 0, np.arange(3)].any()
    np.testing.assert_allclose(found.attention_BCK.sum(2), 1, atol=1e-6)


def test_few_vectors_are_their_own_centres() -> None:
    vectors = random_vectors(5, 0)
    found = centres(vectors, 5)
    assert found.centre_KF is vectors
    assert found.nearest_K.tolist() == list(range(5))
    assert found.size_K.tolist() == [1] * 5


@given(number=st.integers(1, 60), most=st.integers(1, 8), seed=st.integers(0, 99))
def test_centres_stand_for_all_vectors_and_have_the_length_1(number: int, most: int, seed: int) -> None:
    vectors = random_vectors(number, seed)
    found = centres(vectors, most, most)
    assert found.size_K.sum() == number
    assert len(found.centre_KF) <= most
    np.testing.assert_allclose(np.linalg.norm(found.centre_KF, axis=1), 1, atol=1e-5)
    again = centres(vectors, most, most)
    np.testing.assert_array_equal(again.centre_KF, found.centre_KF)


def test_clusters_that_lie_apart_are_found() -> None:
    rng = np.random.default_rng(0)
    middles = np.eye(3, 8)
    vectors = unit(*(middles[i % 3] + 0.05 * rng.normal(size=8) for i in range(60)))
    found = centres(vectors, 3, 3)
    assert sorted(found.size_K.tolist()) == [20, 20, 20]
    assert {int(i) % 3 for i in found.nearest_K} == {0, 1, 2}
    assert (found.centre_KF @ middles.T).max(1).min() == pytest.approx(1, abs=0.01)
