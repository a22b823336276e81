"""What tuning has found."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from textcls.comparison.paired import Difference
from textcls.evaluation.intervals import CONFIDENCE

State = Literal["judged", "left", "failed"]


@dataclass(frozen=True, slots=True)
class TriedOptions:
    """A proposal of the last search.

    Attributes:
        number: from 0, which are the defaults.
        options: that differ from them.
        multiples: of what is usual, of options that are numbers.
        score: the mean over folds, of those that were asked; None if it could not be trained.
        state: whether all folds have judged it, or it was left before, or it could not be trained.
    """

    number: int
    options: Mapping[str, Any]
    multiples: Mapping[str, float]
    score: float | None
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneReport:
    """What tuning has found.

    Attributes:
        rows: all of them.
        labels: how many there are.
        measure: what was to become better: `accuracy` or `macro_f1`.
        rounds: searches whose choice was then judged by rows that it has not seen.
        folds: that judged each proposal.
        judged_rows: rows by which the choices were judged in the end.
        accuracy: there, of the defaults and of what was chosen.
        macro_f1: likewise.
        p_value: of McNemar's test of the answers.
        told: options that were given, and are part of all settings.
        options: the choice, without what is as usual.
        usual: what numbers are without it.
        tried: the proposals of the search that made it.
        importances: which share of the differences between these an option explains; empty where nothing can be told.
        trainings: how many there were, with those of an earlier call that went on here.
        seconds: that this call took.
    """

    rows: int
    labels: int
    measure: str
    rounds: int
    folds: int
    judged_rows: int
    accuracy: Difference
    macro_f1: Difference
    p_value: float
    told: Mapping[str, Any]
    options: Mapping[str, Any]
    usual: Mapping[str, float]
    tried: tuple[TriedOptions, ...]
    importances: Mapping[str, float]
    trainings: int
    seconds: float

    @property
    def gain(self) -> Difference:
        """What was to become better."""
        return self.macro_f1 if self.measure == "macro_f1" else self.accuracy

    @property
    def measured(self) -> str:
        """What that is called."""
        return "macro-F1" if self.measure == "macro_f1" else "accuracy"

    @property
    def is_better(self) -> bool:
        """Whether the choice is better than the defaults by more than chance."""
        return bool(self.options) and self.gain.is_sure and self.gain.difference > 0

    @property
    def recommended(self) -> dict[str, Any]:
        """The options to train with."""
        return {**self.told, **(self.options if self.is_better else {})}

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        found = {name: getattr(self, name) for name in self.__slots__ if name not in ("accuracy", "macro_f1", "tried")}
        found |= {"accuracy": self.accuracy.as_json(), "macro_f1": self.macro_f1.as_json()}
        found |= {"is_better": self.is_better, "recommended": self.recommended, "confidence": CONFIDENCE}
        return found | {"tried": [asdict(one) for one in self.tried]}
