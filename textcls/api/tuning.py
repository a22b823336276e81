"""Find training options that suit given rows, from Python, as `textcls tune` does."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from textcls._util import optional_dependencies
from textcls.api.training import Label
from textcls.evaluation.comparison.paired import Difference
from textcls.evaluation.intervals import CONFIDENCE

TUNE: Final = "textcls_training.tuning.api:tune"
# Proposals per search if neither their number nor a time limit is given.
TRIALS: Final = 24
State = Literal["judged", "left", "failed"]
Measure = Literal["accuracy", "macro_f1", "micro_f1"]


@dataclass(frozen=True, slots=True)
class TriedOptions:
    """A proposal of the last search.

    Attributes:
        number: its number, from 0, which is the defaults.
        options: the options that differ from the defaults.
        multiples: for options that are numbers, multiples of the usual value.
        score: the mean over the folds that have judged it; None if it could not be trained.
        state: whether all folds have judged it, or it was abandoned before that, or it could not be trained.
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
        rows: the number of rows.
        labels: the number of labels.
        measure: the measure to improve: `accuracy`, `macro_f1` or `micro_f1`.
        rounds: the number of searches whose choice was then judged on rows that it has not seen.
        folds: the number of folds that judged each proposal.
        judged_rows: the number of rows on which the choices were finally judged.
        accuracy: on those rows, of the defaults and of the choice; with several labels per row, the share of rows with
            all their labels and no other.
        macro_f1: likewise.
        micro_f1: likewise, with several labels per row; None with one.
        p_value: the p-value of McNemar's test on the answers.
        fixed: the options that were given, which are part of all settings.
        options: the chosen options, without those at their usual values.
        usual: the usual values of options that are numbers.
        tried: the proposals of the search that made the choice.
        importances: the share of the differences between these that each option explains; empty if it is unknown.
        trainings: the number of trainings in this call, without those of an earlier call that it resumes.
        seconds: how long this call took.

    Examples:
        >>> texts, labels = textcls.read("tickets.csv")
        >>> found = textcls.tune(texts[:60], labels[:60], trials=1, folds=2, rounds=1)
        >>> len(found.tried)
        1
    """

    rows: int
    labels: int
    measure: str
    rounds: int
    folds: int
    judged_rows: int
    accuracy: Difference
    macro_f1: Difference
    micro_f1: Difference | None = None
    p_value: float
    fixed: Mapping[str, Any]
    options: Mapping[str, Any]
    usual: Mapping[str, float]
    tried: tuple[TriedOptions, ...]
    importances: Mapping[str, float]
    trainings: int
    seconds: float

    @property
    def gain(self) -> Difference:
        """The difference in the measure to improve."""
        return self.figures[self.measured]

    @property
    def measured(self) -> str:
        """The name of that measure."""
        if self.measure == "accuracy":
            return "accuracy" if self.micro_f1 is None else "all labels right"
        return "macro-F1" if self.measure == "macro_f1" else "micro-F1"

    @property
    def figures(self) -> dict[str, Difference]:
        """The final measurements, by name."""
        if self.micro_f1 is None:
            return {"accuracy": self.accuracy, "macro-F1": self.macro_f1}
        return {"micro-F1": self.micro_f1, "macro-F1": self.macro_f1, "all labels right": self.accuracy}

    @property
    def is_better(self) -> bool:
        """Whether the choice is better than the defaults by more than chance."""
        return bool(self.options) and self.gain.is_sure and self.gain.difference > 0

    @property
    def recommended(self) -> dict[str, Any]:
        """The options to train with."""
        return {**self.fixed, **(self.options if self.is_better else {})}

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        apart = ("accuracy", "macro_f1", "micro_f1", "tried")
        found = {name: getattr(self, name) for name in self.__slots__ if name not in apart}
        found |= {"accuracy": self.accuracy.as_json(), "macro_f1": self.macro_f1.as_json()}
        found |= {} if self.micro_f1 is None else {"micro_f1": self.micro_f1.as_json()}
        found |= {"is_better": self.is_better, "recommended": self.recommended, "confidence": CONFIDENCE}
        return found | {"tried": [asdict(one) for one in self.tried]}


def tune(
    texts: Iterable[str],
    labels: Iterable[Label],
    *,
    weights: Iterable[float] | None = None,
    trials: int | None = None,
    seconds: float | None = None,
    measure: Measure | None = None,
    folds: int = 3,
    rounds: int | None = None,
    storage: str | Path | None = None,
    workers: int = 1,
    **options: Any,
) -> TuneReport:
    """Return options of `textcls.train` that suit these rows, and how they perform on rows unknown to the choice.

    `textcls.train(texts, labels, "model.onnx", **textcls.tune(texts, labels).recommended)` trains with them.

    Args:
        texts: the texts.
        labels: the label of each, or its labels: a list, a set, or a mapping from labels to probabilities.
        weights: how much each row counts in training, 0 or more; by default all count the same.
        trials: the number of settings to try per search; by default 24, or with `seconds` as many as time allows.
        seconds: after this time no further trials begin; the first four are always judged.
        measure: the measure to improve; by default accuracy, or micro-F1 if texts have several labels.
        folds: the number of folds that judge a trial.
        rounds: in how many parts rows are held out, in turn, to judge a choice made without them; 3 by default, 1 from
            10,000 rows on.
        storage: the file that keeps the measurements, from which the same call resumes; none by default.
        workers: the number of processes; the result does not depend on it.
        options: the options of the trainings, as for `train`; these are not tuned.

    Raises:
        MissingExtraError: the packages for tuning are not installed.
        InputError: the rows are too few, or nothing can be learned from them; or `storage` is no such file.
        ConfigError: there is no such option or value, or `storage` is of other rows.
        SurroundingsError: `storage` cannot be written.

    Examples:
        >>> texts, labels = textcls.read("tickets.csv")
        >>> found = textcls.tune(texts[:60], labels[:60], trials=1, folds=2, rounds=1)
        >>> found.rows
        60
    """
    found = optional_dependencies.load(TUNE, "textcls.tune", "tune")
    how = {
        "weights": weights,
        "trials": trials,
        "seconds": seconds,
        "measure": measure,
        "folds": folds,
        "rounds": rounds,
    }
    report: TuneReport = found(texts, labels, **how, storage=storage, workers=workers, fixed=options)
    return report
