"""Evaluate answers that are paths of a tree: by level, by hierarchical precision and recall, and by depth."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation import selective_prediction
from textcls.evaluation.selective_prediction import OperatingPoint
from textcls.model.label_paths import SURE, LabelPaths, Path


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the tree.

    Attributes:
        level: its number, from 1.
        nodes: how many nodes the model knows at this level.
        accuracy: the share of rows whose most probable node at this level, by the sum of its labels, is right.
        accuracy_of_labels: the accuracy of the node above the most probable label.
        stopped: how many rows have their deepest sure node at this level.
        stopped_right: for how many of these it is the right node, or above it.
        point: the lowest threshold at which the requested share of the nodes of this level, found from the root down,
            is right; None if none was requested, or no threshold reaches it.
    """

    level: int
    nodes: int
    accuracy: float
    accuracy_of_labels: float
    stopped: int
    stopped_right: int
    point: OperatingPoint | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the level as plain data."""
        return asdict(replace(self, point=None)) | {"point": None if self.point is None else self.point.as_json()}


@dataclass(frozen=True, slots=True)
class PathEvaluation:
    """The evaluation of a model whose labels form a tree.

    Attributes:
        levels: the levels of the tree, numbered from 1.
        precision: hierarchical precision of the most probable label: the share of all nodes on the answered paths that
            are on the right ones.
        recall: the share of all nodes on the right paths that are on the answered ones.
        threshold: the least probability at which a node is sure.
        unsure: rows without any sure node.
        target_precision: the share of right nodes that each level has a threshold for; None if none was requested.
    """

    levels: tuple[Level, ...]
    precision: float
    recall: float
    threshold: float
    unsure: int
    target_precision: float | None = None

    @property
    def f1(self) -> float:
        """The harmonic mean of hierarchical precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as plain data."""
        plain = asdict(replace(self, levels=()))
        return {**plain, "levels": [level.as_json() for level in self.levels], "f1": self.f1}


def evaluate_paths(
    paths: LabelPaths,
    probabilities_RC: NDArray[np.floating[Any]],
    right: Sequence[str],
    threshold: float | None,
    target_precision: float | None = None,
) -> PathEvaluation:
    """Return how good answers are at each level.

    Hierarchical precision and recall are those of Kiritchenko, Matwin and Famili (2005), over all rows together; the
    root does not count.

    Args:
        paths: the tree.
        probabilities_RC: the probabilities of the labels [rows, labels].
        right: the label of each row, which the model need not know.
        threshold: the least probability at which a node is sure; 0.5 by default.
        target_precision: also find the lowest threshold of each level at which this share of its nodes is right.
    """
    threshold = SURE if threshold is None else threshold
    right_paths = [paths.path(label) for label in right]
    answered = [paths.paths[i] for i in probabilities_RC.argmax(1).tolist()]
    deepest = paths.deepest(probabilities_RC, threshold)
    rows = max(1, len(right))
    points = list(_points(paths, probabilities_RC, right_paths, target_precision))
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
                points[level - 1],
            )
        )
    shared = sum(_shared(one, path) for one, path in zip(answered, right_paths, strict=True))
    return PathEvaluation(
        tuple(levels),
        shared / max(1, sum(map(len, answered))),
        shared / max(1, sum(map(len, right_paths))),
        threshold,
        deepest.count(None),
        target_precision,
    )


def _points(
    paths: LabelPaths, probabilities_RC: NDArray[np.floating[Any]], right: Sequence[Path], target: float | None
) -> Iterator[OperatingPoint | None]:
    """Yield the lowest threshold of each level at which a share `target` of its nodes is right."""
    for level, (nodes, at_R, score_R) in enumerate(paths.descent(probabilities_RC), 1):
        there_R = score_R >= 0
        if target is None or not there_R.any():
            yield None
            continue
        pairs = zip(at_R.tolist(), right, strict=True)
        right_R = np.array([nodes[at] == path[:level] for at, path in pairs])
        point, reached = selective_prediction.choose(target, score_R[there_R], right_R[there_R])
        yield replace(point, rows=len(right)) if reached else None


def _shared(one: Path, other: Path) -> int:
    """Return how many nodes two paths have in common."""
    return sum(one[: i + 1] == other[: i + 1] for i in range(min(len(one), len(other))))
