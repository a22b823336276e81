"""Labels that are paths of a tree in JavaScript: the deepest sure node is Python's."""

from collections.abc import Callable
from typing import Any

import numpy as np

from textcls.model.label_paths import SURE, LabelPaths

Run = Callable[..., Any]
CODE = """
import { deepest, treeOf } from "./page/tree.mjs";
found = given.map(({ info, scores, threshold }) => {
  const tree = treeOf(info);
  return tree && scores.map((each) => deepest(tree, each, threshold));
});
"""
# Some that are not trees by themselves, one with an empty part, and one whose columns say that it is one.
LABELS = (
    ["a > b", "a > c > d", "a", "e > f"],
    ["a > b", "c", "d"],
    ["a > ", "b > c"],
    ["only", "names"],
    [" a >  b ", "a > c", "b"],
    ["a > a", "a > a > a", "a > b"],
)


def random_labels(generator: np.random.Generator) -> list[str]:
    parts = ("one", "two", "three")
    paths = {" > ".join(generator.choice(parts, generator.integers(1, 5))) for _ in range(12)}
    return sorted(paths)


def test_the_deepest_sure_node_is_that_of_python(in_node: Run) -> None:
    generator = np.random.default_rng()
    cases = [(labels, column) for labels in LABELS for column in ("label", "group > job")]
    cases += [(random_labels(generator), "label") for _ in range(30)]
    given, expected = [], []
    for labels, column in cases:
        threshold = (None, 0.2, 0.5, 0.9)[generator.integers(4)]
        scores = generator.dirichlet(np.full(len(labels), 0.3), 20).astype(np.float32)
        info = {"labels": labels, "label_column": column, "thresholds": None}
        given.append({"info": info, "scores": scores.tolist(), "threshold": threshold})
        tree = LabelPaths.of(labels, column)
        nodes = None if tree is None else tree.deepest(scores, SURE if threshold is None else threshold)
        expected.append(nodes)
    found = in_node(CODE, given)
    for case, one, other in zip(cases, found, expected, strict=True):
        assert (one is None) == (other is None), case
        for node, like in zip(one or [], other or [], strict=True):
            assert (node is None) == (like is None), case
            if node is not None and like is not None:
                assert tuple(node["path"]) == like.path, case
                assert abs(node["score"] - like.score) < 1e-6
    several = {"labels": ["a > b", "a > c"], "label_column": "label", "thresholds": [0.5, 0.5]}
    assert in_node(CODE, [{"info": several, "scores": [[0.5, 0.5]], "threshold": None}]) == [None]
