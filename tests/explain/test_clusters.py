"""Clusters beside labels, and on the plane."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sklearn", reason="clusters are compared with scikit-learn")

from textcls.explain.clusters.agreement import agreement
from textcls.explain.clusters.plane import LEAST_POINTS, plane


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_clusters_that_are_the_labels_under_other_names_agree_wholly(labels: list[int]) -> None:
    found = agreement([f"cluster {7 * label}" for label in labels], [str(label) for label in labels])
    assert (found.accuracy, found.ari) == (1, 1)
    assert found.matched == {f"cluster {7 * label}": str(label) for label in labels}


def test_each_cluster_is_matched_with_one_label_as_is_best_for_all() -> None:
    # a holds most of x, but b has nothing else: a is matched with y.
    found = agreement(["a"] * 5 + ["b"] * 2, ["x", "x", "x", "y", "y", "x", "x"])
    assert found.matched == {"a": "y", "b": "x"}
    assert found.accuracy == pytest.approx(4 / 7)


def test_one_cluster_of_all_tells_nothing_of_labels() -> None:
    found = agreement(["a"] * 4, ["x", "y", "x", "y"])
    assert (found.accuracy, found.nmi, found.ari) == (0.5, 0, 0)


def test_texts_that_are_answered_alike_lie_close_to_each_other() -> None:
    which = np.arange(60) % 3
    logits = (4 * np.eye(3)[which] + 0.1 * np.random.default_rng(0).normal(size=(60, 3))).astype(np.float32)
    place = plane(logits, "tsne")
    assert place is not None
    assert (place.min(0).tolist(), place.max(0).tolist()) == ([0, 0], [1, 1])
    distance = np.linalg.norm(place[:, None] - place[None], axis=2)
    same = which[:, None] == which[None]
    assert distance[same].mean() < distance[~same].mean() / 2


def test_of_a_few_texts_there_is_no_map() -> None:
    assert plane(np.zeros((LEAST_POINTS - 1, 3), np.float32), "tsne") is None
    assert plane(np.zeros((50, 3), np.float32), "none") is None
