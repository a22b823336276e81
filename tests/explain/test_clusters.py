"""Clusters beside labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sklearn", reason="clusters are compared with scikit-learn")

from textcls.explain.clusters.agreement import agreement


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
