"""What thresholds of labels reach: those of the model, those chosen to reach a share, and a common one for all.

Shapes: N rows, C labels, S steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.label_set_evaluation import choose
from textcls.evaluation.label_thresholds import Goal

Bools = NDArray[np.bool_]
Float32 = NDArray[np.float32]

# The number of points on the curve of a common threshold for all labels.
STEPS: Final = 40
GOALS: Final = (Goal("precision", 0.8), Goal("precision", 0.9), Goal("recall", 0.8), Goal("recall", 0.9))


@dataclass(frozen=True, slots=True)
class LabelPoint:
    """What thresholds reach, over all labels of all rows.

    Attributes:
        goal: what each label was to reach; None for the model's own thresholds, and for a common one.
        threshold: the common threshold of all labels; None if each has its own.
        precision: share of the assigned labels that the rows have; None if none are assigned.
        recall: share of the labels of the rows that are assigned; None if they have none.
        micro_f1: their harmonic mean.
        exact: share of the rows that are assigned exactly their labels.
        labels_a_row: the mean number of labels assigned per row.
        without: share of the rows that are assigned none.
        unreached: labels for which no threshold reaches the goal: they are assigned by probabilities alone.
        few: labels that fewer than `FEW_ROWS` rows have: their thresholds rely on their probabilities as well.
    """

    goal: Goal | None
    threshold: float | None
    precision: float | None
    recall: float | None
    micro_f1: float
    exact: float
    labels_a_row: float
    without: float
    unreached: tuple[str, ...] = ()
    few: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        goal = None if self.goal is None else {"measure": self.goal.measure, "share": self.goal.share}
        return {
            "goal": goal,
            **{name: getattr(self, name) for name in self.__slots__ if name not in ("goal", "unreached", "few")},
            "unreached": list(self.unreached),
            "few_rows": list(self.few),
        }


class LabelAims(NamedTuple):
    """The effects of thresholds.

    Attributes:
        own: the model's thresholds.
        half: assigning each label that is more probable than not.
        goals: thresholds that were chosen on these rows to reach a share for each label.
        curve: a common threshold for all labels, by rising recall.
        labels: the number of labels that thresholds are chosen for.
    """

    own: LabelPoint
    half: LabelPoint
    goals: tuple[LabelPoint, ...]
    curve: tuple[LabelPoint, ...]
    labels: int

    def reached(self, point: LabelPoint) -> int:
        """Return how many labels reach the goal of a point, among those that at least `FEW_ROWS` rows have."""
        return self.labels - len({*point.unreached, *point.few})

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "own": self.own.as_json(),
            "half": self.half.as_json(),
            "goals": [point.as_json() for point in self.goals],
            "curve": [point.as_json() for point in self.curve],
        }


def label_aims(probability_NC: Float32, gold_NC: Bools, own_C: Sequence[float], names: Sequence[str]) -> LabelAims:
    """Return the effects of thresholds on rows.

    Args:
        probability_NC: the calibrated probabilities.
        gold_NC: which labels each row has; columns beyond those of the probabilities are unknown to the model.
        own_C: the model's thresholds.
        names: the names of its labels.
    """
    known_NC = gold_NC[:, : len(names)]

    def at(thresholds: float | Sequence[float]) -> LabelPoint:
        assigned_NC = probability_NC >= np.array(thresholds, probability_NC.dtype)
        return _point(assigned_NC, gold_NC, thresholds if isinstance(thresholds, float) else None)

    goals = []
    for goal in GOALS:
        chosen = choose(goal, probability_NC, known_NC)
        unreached, few = (tuple(names[i] for i in numbers) for numbers in (chosen.unreached, chosen.few))
        goals.append(replace(at(chosen.thresholds), goal=goal, unreached=unreached, few=few))
    falling = np.sort(probability_NC[known_NC])[::-1]
    last = np.ceil(np.linspace(0, 1, STEPS + 1)[1:] * len(falling)).astype(np.int64) - 1
    curve = [at(float(threshold)) for threshold in np.unique(falling[last])[::-1]] if len(falling) else []
    return LabelAims(at(own_C), at(0.5), tuple(goals), tuple(curve), len(names))


def _point(assigned_NC: Bools, gold_NC: Bools, threshold: float | None) -> LabelPoint:
    known = assigned_NC.shape[1]
    hits, assigned, have = (int(flags.sum()) for flags in (assigned_NC & gold_NC[:, :known], assigned_NC, gold_NC))
    exact_N = (assigned_NC == gold_NC[:, :known]).all(1) & ~gold_NC[:, known:].any(1)
    return LabelPoint(
        goal=None,
        threshold=threshold,
        precision=hits / assigned if assigned else None,
        recall=hits / have if have else None,
        micro_f1=2 * hits / (assigned + have) if assigned + have else 0.0,
        exact=float(exact_N.mean()),
        labels_a_row=assigned / len(gold_NC),
        without=float((~assigned_NC.any(1)).mean()),
    )
