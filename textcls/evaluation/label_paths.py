"""How good answers are that are paths of a tree: by level, by hierarchical precision and recall, and how deep."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls.model.label_paths import SURE, LabelPaths, Path


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the tree.

    Attributes:
        level: its number, from 1.
        nodes: how many the model knows there.
        accuracy: the share of the rows whose most probable node there, by the sum of its labels, is the right one.
        accuracy_of_labels: that of the node above the most probable label.
        stopped: how many rows have their deepest sure node there.
        stopped_right: for how many of these it is the right one, or above it.
    """

    level: int
    nodes: int
    accuracy: float
    accuracy_of_labels: float
    stopped: int
    stopped_right: int


@dataclass(frozen=True, slots=True)
class PathEvaluation:
    """How a model of labels in a tree fared.

    Attributes:
        levels: of the tree, the first being 1.
        precision: hierarchical precision of the most probable label: of all nodes on the paths that were answered, the
            share that is on the right ones.
        recall: of all nodes on the right paths, the share that is on those answered.
        threshold: the least probability of a node to be sure.
        unsure: rows without any sure node.
    """

    levels: tuple[Level, ...]
    precision: float
    recall: float
    threshold: float
    unsure: int

    @property
    def f1(self) -> float:
        """The harmonic mean of hierarchical precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as plain data."""
        return {**asdict(self), "f1": self.f1}


def evaluate_paths(
    paths: LabelPaths, probabilities_RC: NDArray[np.floating[Any]], right: Sequence[str], threshold: float | None
) -> PathEvaluation:
    """Return how good answers are at each level.

    Hierarchical precision and recall are those of Kiritchenko, Matwin and Famili (2005), over all rows together; the
    root does not count.

    Args:
        paths: the tree.
        probabilities_RC: of the labels [rows, labels].
        right: the label of each row, which the model need not know.
        threshold: the least probability of a node to be sure; 0.5 by default.
    """
    threshold = SURE if threshold is None else threshold
    right_paths = [paths.path(label) for label in right]
    answered = [paths.paths[i] for i in probabilities_RC.argmax(1).tolist()]
    deepest = paths.deepest(probabilities_RC, threshold)
    rows = max(1, len(right))
    levels = []
    for level in range(1, paths.depth + 1):
        nodes = paths.nodes(level)
        best = [nodes[i] for i in paths.probabilities(probabilities_RC, level).argmax(1).tolist()]
        pairs = zip(deepest, right_paths, strict=True)
        here = [(node, path) for node, path in pairs if node is not None and len(node.path) == level]
        levels.append(
            Level(
                level,
                len(nodes),
                sum(one == path[:level] for one, path in zip(best, right_paths, strict=True)) / rows,
                sum(one[:level] == path[:level] for one, path in zip(answered, right_paths, strict=True)) / rows,
                len(here),
                sum(node.path == path[:level] for node, path in here),
            )
        )
    shared = sum(_shared(one, path) for one, path in zip(answered, right_paths, strict=True))
    return PathEvaluation(
        tuple(levels),
        shared / max(1, sum(map(len, answered))),
        shared / max(1, sum(map(len, right_paths))),
        threshold,
        deepest.count(None),
    )


def _shared(one: Path, other: Path) -> int:
    """Return how many nodes two paths have in common."""
    return sum(one[: i + 1] == other[: i + 1] for i in range(min(len(one), len(other))))
