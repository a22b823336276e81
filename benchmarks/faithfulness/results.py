"""What a measurement comes to: plain frozen data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from faithfulness.bootstrap import Estimate, Verdict
from faithfulness.removal import Removal


@dataclass(frozen=True)
class MethodResult:
    """What one method came to.

    Attributes:
        name: the method.
        calls: mean number of texts that the model was asked about to explain one.
        milliseconds: mean time of explaining one text, alone on one thread.
        figures: group (`delete`, `mask`, `plausibility`, `robustness`) -> figure -> estimate.
    """

    name: str
    calls: float
    milliseconds: float
    figures: Mapping[str, Mapping[str, Estimate]]


@dataclass(frozen=True)
class Comparison:
    """The contributions against another method, in one figure: their paired difference, and what it means."""

    other: str
    group: str
    figure: str
    difference: Estimate
    verdict: Verdict | None


@dataclass(frozen=True)
class RationaleCounts:
    """What became of the rows with rationales.

    Attributes:
        used: rows that plausibility was measured on.
        unmarked: without a single marked token.
        unaligned: dropped, because tokens and text are too different, or no marked token was found.
        unknown_label: dropped, because the model has no such label.
        inexact: used rows whose text is not their tokens with single spaces between them.
    """

    used: int
    unmarked: int
    unaligned: int
    unknown_label: int
    inexact: int


@dataclass(frozen=True)
class BenchmarkResult:
    """All of it.

    Attributes:
        model: name of the model's file.
        labels: of the model.
        texts: texts that were explained.
        skipped: texts without a token.
        tokens: mean number of tokens of a text.
        seed: of everything that is left to chance.
        removals: how tokens were removed.
        methods: in the order in which they were named.
        comparisons: of the contributions with every other method.
        left_out: methods that this model does not have, and why.
        rationales: None where none were given.
        changed: robustness change -> texts that it applied to.
        versions: of what the figures depend on.
    """

    model: str
    labels: tuple[str, ...]
    texts: int
    skipped: int
    tokens: float
    seed: int
    removals: tuple[Removal, ...]
    methods: tuple[MethodResult, ...]
    comparisons: tuple[Comparison, ...]
    left_out: Mapping[str, str]
    rationales: RationaleCounts | None
    changed: Mapping[str, int]
    versions: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return asdict(self)
