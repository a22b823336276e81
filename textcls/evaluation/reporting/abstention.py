"""How many rows a model answers, how many of them correctly, and what that costs, threshold by threshold."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ConfigError
from textcls.evaluation import intervals, selective_prediction
from textcls.evaluation.selective_prediction import OperatingPoint

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]

# The effect of a threshold is reported at this many shares of the rows, the surest first.
STEPS: Final = 40
# Precisions that are commonly required of systems that answer people.
TARGETS: Final = (0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of rows, in any unit.

    Attributes:
        error: the cost of a wrong answer.
        abstention: the cost of a row that is left to people.

    Raises:
        ConfigError: a cost is not a number of 0 or more.

    Examples:
        >>> classifier, rows = textcls.Classifier.load("tickets.onnx"), zip(*textcls.read("tickets.csv"))
        >>> found = textcls.report(classifier, rows, costs=textcls.Costs(error=5, abstention=1))
        >>> found.abstention.costs.error
        5
    """

    error: float = 10.0
    abstention: float = 1.0

    def __post_init__(self) -> None:
        if not all(isinstance(cost, Real) and 0 <= cost < float("inf") for cost in (self.error, self.abstention)):
            raise ConfigError("Costs are numbers of 0 or more.")

    def of(self, point: OperatingPoint) -> float:
        """Return the mean cost of a row at a threshold."""
        wrong, left = point.accepted - point.right, point.rows - point.accepted
        return (self.error * wrong + self.abstention * left) / max(1, point.rows)


USUAL_COSTS: Final = Costs()


@dataclass(frozen=True, slots=True)
class Abstention:
    """The effects of thresholds.

    Attributes:
        points: by falling threshold, from few answered rows to all.
        targets: for each target share of right answers, the lowest threshold that reaches it on these rows; targets
            that none reaches are left out.
        costs: the assumed costs.
        cheapest: the point with the lowest cost.
        own: the point at the threshold that is stored in the model; None without one.
    """

    points: tuple[OperatingPoint, ...]
    targets: tuple[tuple[float, OperatingPoint], ...]
    costs: Costs
    cheapest: OperatingPoint
    own: OperatingPoint | None

    @property
    def all_answered(self) -> OperatingPoint:
        """The point without a threshold."""
        return self.points[-1]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "points": [self._point(point) for point in self.points],
            "targets": [{"target": target, **self._point(point)} for target, point in self.targets],
            "costs": {"error": self.costs.error, "abstention": self.costs.abstention},
            "cheapest": self._point(self.cheapest),
            "own": None if self.own is None else self._point(self.own),
        }

    def _point(self, point: OperatingPoint) -> dict[str, Any]:
        precision = intervals.share(point.right, point.accepted) if point.accepted else None
        return {
            "threshold": point.threshold,
            "accepted": point.accepted,
            "right": point.right,
            "coverage": point.coverage,
            "precision": None if precision is None else precision.as_json(),
            "cost": self.costs.of(point),
        }


def abstention(confidence: Floats, right: Bools, costs: Costs, threshold: float | None) -> Abstention:
    """Return the effects of thresholds on rows of this confidence, given which are answered correctly.

    Args:
        confidence: the score of each answer [rows].
        right: whether it is correct [rows].
        costs: the assumed costs.
        threshold: the one that is stored in the model; None without one.
    """
    rows, cuts = len(confidence), selective_prediction.Cuts(confidence, right)
    steps = np.ceil(np.linspace(0, 1, STEPS + 1)[1:] * rows).astype(np.int64)
    points = tuple(map(cuts.point, np.unique(np.searchsorted(cuts.accepted, steps)).tolist()))
    chosen = ((target, selective_prediction.choose(target, confidence, right)) for target in TARGETS)
    targets = tuple((target, point) for target, (point, reached) in chosen if reached)
    cost = costs.error * (cuts.accepted - cuts.right) + costs.abstention * (rows - cuts.accepted)
    # Among equal costs, the one that answers more. If none are answered, the threshold is above all scores.
    cheapest = cuts.point(int(np.flatnonzero(cost == cost.min())[-1]))
    none = OperatingPoint(1.0, rows, 0, 0)
    cheapest = none if costs.of(none) < costs.of(cheapest) else cheapest
    own = None if threshold is None else selective_prediction.at(threshold, confidence, right)
    return Abstention(points, targets, costs, cheapest, own)
