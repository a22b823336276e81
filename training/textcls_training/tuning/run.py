"""Tuning: parallel searches, judged in the end on rows that none of their choices has seen.

The score of a search's own choice is too optimistic: it is the best of many, and some of them were lucky. So each of
`rounds` parts of the rows is held out from a separate search, and predicted by a model with the defaults and by one
with that search's choice, both trained on the other rows (nested cross-validation; Varma and Simon 2006, Cawley and
Talbot 2010). One more search, on all rows, makes the choice that is reported. With many rows one part is enough, and
the choice made without it is reported.

Shapes: N rows that judge in the end.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from textcls import __version__
from textcls.api.tuning import TRIALS, Measure, TriedOptions, TuneReport
from textcls.display.terminal.progress import Progress
from textcls.errors import ConfigError, InputError, SurroundingsError
from textcls.evaluation.comparison.figures import PairedFigures, figures_of
from textcls.evaluation.comparison.sides import Labels
from textcls.jobs import HERE, Crew, Engine, Failed
from textcls_training.config.settings import TrainConfig, from_options
from textcls_training.data.arrays import Int64
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.trials import Fold, Trial, Trials, folds_of, judging_folds, results
from textcls_training.tuning import storage
from textcls_training.tuning.judging import HeldOutAnswers, answers, measure_of, right_of
from textcls_training.tuning.search import BATCH, Job, Proposal, Search
from textcls_training.tuning.space import Space, options_of, space_of, usual_values

# Fewer rows would say nothing.
LEAST_ROWS: Final = 60
# The time for judging, as a share of the time of a batch.
_JUDGING: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to tune.

    Attributes:
        trials: proposals per search; None for as many as time allows.
        seconds: after this many no further batch begins; None for no limit.
        folds: the number of folds that judge a proposal.
        rounds: how many parts of the rows are held out in turn; None for a number that suits the rows.
        measure: the measure to optimise; None for accuracy, or micro-F1 with several labels per row.
        fixed: training options that are given.
    """

    trials: int | None = TRIALS
    seconds: float | None = None
    folds: int = 3
    rounds: int | None = None
    measure: Measure | None = None
    fixed: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FoldSearch:
    """A search, its rows, and the rows that are held out from it.

    Attributes:
        search: the search.
        rows: the rows that it knows.
        held_out: the rows that judge its choice; None for the search on all rows, which leaves none.
        first_fold: the number of its first fold among all folds.
        usual: what training chooses by itself for its rows.
    """

    search: Search
    rows: Int64
    held_out: Int64 | None
    first_fold: int
    usual: Mapping[str, float]


class Tuning:
    """One run; see `tune`."""

    def __init__(
        self, given: LabelledTexts, settings: Settings, kept: storage.Storage, engine: Engine, progress: Progress
    ) -> None:
        self.given, self.settings, self.engine, self.progress = given, settings, engine, progress
        self._measure = measure_of(given, settings.measure)
        self.space = space_of(given, settings.fixed, macro_f1=self._measure == "macro_f1")
        self.folds: list[Fold] = []
        self.searches = [
            self._search_of_fold(number, fold, kept) for number, fold in enumerate(rounds_of(given, settings.rounds))
        ]
        self.trainings, self._start = 0, time.monotonic()

    def _search_of_fold(self, number: int, fold: Fold, kept: storage.Storage) -> FoldSearch:
        held_out = fold.held_out if len(fold.held_out) else None
        name = "all rows" if held_out is None else f"without part {number + 1}"
        first = len(self.folds)
        self.folds += folds_of(self.given, self.settings.folds, fold.train)
        seed = from_options(self.settings.fixed).seed
        search = Search(number, name, kept.study(name), self.space, self.settings.folds, seed)
        rows = self.given.only(fold.train.tolist())
        return FoldSearch(search, fold.train, held_out, first, usual_values(rows, self.settings.fixed))

    def run(self) -> TuneReport:
        """Search, judge, and return what was found."""
        judging = [Fold(one.rows, one.held_out) for one in self.searches if one.held_out is not None]
        work = Trials(self.given, [*self.folds, *judging], answers)
        with self.engine.hired(work) as crew:
            self._search(crew)
            self.progress.phase("Judging", 2 * len(judging))
            found = self._judge(crew)
        return self._report(*found)

    # Searching

    def _search(self, crew: Crew[Trial, HeldOutAnswers]) -> None:
        most = self.settings.trials
        judged = min(len(one.search.judged(most)) for one in self.searches)
        if self.settings.seconds is not None and not judged:
            least = min(BATCH, most or BATCH) * len(self.searches) * self.settings.folds
            self.progress.note(f"Each search judges its first proposals whatever the time: up to {least} trainings.")
        self.progress.phase("Searching", len(self.searches) * (most or 0))
        self.progress.step(len(self.searches) * judged)
        longest = 0.0
        while most is None or judged < most:
            start = time.monotonic()
            if judged and self._is_late(start + (1 + _JUDGING) * longest):
                return
            self._batch(crew, most)
            judged = min(len(one.search.judged(most)) for one in self.searches)
            longest = max(longest, time.monotonic() - start)

    def _is_late(self, moment: float) -> bool:
        """Return whether the time is up at that moment."""
        seconds = self.settings.seconds
        return seconds is not None and moment - self._start > seconds

    def _batch(self, crew: Crew[Trial, HeldOutAnswers], most: int | None) -> None:
        """Get proposals from each search, and judge them fold by fold."""
        batches = [(one, one.search.propose(most or 2**31)) for one in self.searches]
        for fold in range(self.settings.folds):
            jobs = {
                Job(one.search.number, proposal.number, fold): self._trial(one, proposal, fold)
                for one, proposals in batches
                for proposal in proposals
                if proposal.is_open
            }
            self._ask(crew, jobs)
            for one, proposals in batches:
                for proposal in filter(lambda one: one.is_open, proposals):
                    one.search.judge(proposal, fold)
        for one, proposals in batches:
            self._check_defaults(proposals)
            one.search.finish(proposals)
            self.progress.step(len(proposals))
        best = self.searches[-1].search.best(most)
        self.progress.note(f"best so far {best.value:.2%}, proposal {best.number + 1}")

    def _ask(self, crew: Crew[Trial, HeldOutAnswers], jobs: Mapping[Job, Trial]) -> None:
        """Train what no earlier run has trained, and store the results."""
        searches = [one.search for one in self.searches]
        job_of = {trial.name: job for job, trial in jobs.items() if searches[job.search].known(job) is None}
        for outcome in crew([trial for job, trial in jobs.items() if trial.name in job_of]):
            job = job_of[outcome.job.name]
            self.trainings += 1
            if not isinstance(outcome, Failed):
                searches[job.search].keep(job, outcome.result.figures[self._measure])
            elif isinstance(outcome.error, SurroundingsError):
                raise outcome.error
            else:
                searches[job.search].keep(job, str(outcome.error))

    def _trial(self, one: FoldSearch, proposal: Proposal, fold: int) -> Trial:
        name = f"{one.search.name}, proposal {proposal.number + 1}, fold {fold + 1}"
        return Trial(name, self._config(one, proposal.chosen), one.first_fold + fold)

    def _config(self, one: FoldSearch, chosen: Mapping[str, Any]) -> TrainConfig:
        return from_options({**self.settings.fixed, **options_of(self.space, chosen, one.usual)})

    @staticmethod
    def _check_defaults(proposals: Sequence[Proposal]) -> None:
        """Refuse rows on which the defaults cannot be trained."""
        for one in proposals:
            if one.number == 0 and one.error is not None:
                raise InputError(f"A part of the rows cannot be trained on: {one.error}")

    # Judging

    def _judge(self, crew: Crew[Trial, HeldOutAnswers]) -> tuple[int, PairedFigures]:
        """Judge models with the defaults and with the choices on rows that no choice has seen."""
        trials, chosen = [], [self._chosen(one, one.usual) for one in self.searches]
        outer = [one for one in self.searches if one.held_out is not None]
        for i, (one, options) in enumerate(zip(outer, chosen, strict=False)):
            fold = len(self.folds) + i
            trials.append(Trial(_name(one, tuned=False), from_options(self.settings.fixed), fold))
            if options:
                trials.append(Trial(_name(one, tuned=True), from_options({**self.settings.fixed, **options}), fold))
        answered = {}
        for trial, found in results(crew, trials):
            answered[trial.name] = found.labels
            self.trainings += 1
            self.progress.step()
        every = right_of(self.given)
        right, before, after = list[Labels](), list[Labels](), list[Labels]()
        for one in outer:
            right += [every[i] for i in (one.held_out if one.held_out is not None else [])]
            defaults = answered[_name(one, tuned=False)]
            before += defaults
            after += answered.get(_name(one, tuned=True), defaults)
        return len(right), figures_of(right, before, after)

    def _chosen(self, one: FoldSearch, usual: Mapping[str, float]) -> dict[str, Any]:
        return options_of(self.space, one.search.best(self.settings.trials).params, usual)

    def _report(self, judged_rows: int, figures: PairedFigures) -> TuneReport:
        last, most = self.searches[-1], self.settings.trials
        usual = usual_values(self.given, self.settings.fixed)
        return TuneReport(
            rows=len(self.given.texts),
            labels=len(self.given.labels_in_use()),
            measure=self._measure,
            rounds=sum(one.held_out is not None for one in self.searches),
            folds=self.settings.folds,
            judged_rows=judged_rows,
            accuracy=figures.accuracy,
            macro_f1=figures.macro_f1,
            micro_f1=figures.micro_f1,
            p_value=figures.agreement.p_value(),
            fixed=self.settings.fixed,
            options=self._chosen(last, usual),
            usual=usual,
            tried=tuple(_tried(one, self.space, usual) for one in last.search.judged(most)),
            importances=last.search.importances(most),
            trainings=self.trainings,
            seconds=time.monotonic() - self._start,
        )


def _name(one: FoldSearch, *, tuned: bool) -> str:
    return f"{one.search.name}, {'tuned' if tuned else 'defaults'}"


def _tried(of: FrozenTrial, space: Space, usual: Mapping[str, float]) -> TriedOptions:
    states: dict[TrialState, Any] = {TrialState.COMPLETE: "judged", TrialState.PRUNED: "left"}
    multiples = {name: value for name, value in of.params.items() if name in usual and isinstance(value, float)}
    options, state = options_of(space, of.params, usual), states.get(of.state, "failed")
    return TriedOptions(of.number, options, multiples, None if state == "failed" else of.value, state)


def rounds_of(given: LabelledTexts, rounds: int | None) -> list[Fold]:
    """Return the rows of each search, and those held out to judge its choice; none for the last of several searches."""
    folds = judging_folds(given, rounds)
    return folds if len(folds) == 1 else [*folds, Fold(np.arange(len(given.texts)), np.empty(0, np.int64))]


def tune(given: LabelledTexts, settings: Settings, path: Path, progress: Progress, engine: Engine = HERE) -> TuneReport:
    """Return options that suit the rows `given`, and their judgement on rows that the choice has not seen.

    Args:
        given: rows with one label each, or several.
        settings: how to tune.
        path: the file of measurements. The same call continues from there, to the same result; one with more trials
            begins with these.
        progress: notified of progress.
        engine: what trains; the result does not depend on it.

    Raises:
        ConfigError: an option of `settings` makes no sense for these rows, or the file belongs to other rows.
        InputError: the rows are too few, or the file is not a journal.
        SurroundingsError: the file cannot be written.
    """
    _check(given, settings)
    identity = {
        "rows": given.sha256(),
        "options": {name: str(value) for name, value in settings.fixed.items()},
        "rounds": len(rounds_of(given, settings.rounds)),
        "folds": settings.folds,
        "measure": measure_of(given, settings.measure),
        "versions": {"textcls": __version__, "optuna": version("optuna")},
    }
    with storage.opened(path, identity) as kept:
        # A label with its own column need not be in each fold.
        return Tuning(replace(given, names=()), settings, kept, engine, progress).run()


def _check(given: LabelledTexts, settings: Settings) -> None:
    given.label_names()
    if len(given.texts) < LEAST_ROWS:
        raise InputError(
            f"There are {len(given.texts)} rows, and from fewer than {LEAST_ROWS} nothing can be told of options; "
            "train with the defaults."
        )
    config = from_options(settings.fixed)
    if isinstance(config.class_weight, dict):
        raise ConfigError("Tuning takes class_weight none or balanced; a weight of each label it cannot write down.")
