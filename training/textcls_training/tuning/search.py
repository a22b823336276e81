"""A search: proposals for one set of rows, each judged on folds of these rows.

Optuna's tree-structured Parzen estimator (Bergstra et al. 2011) proposes `BATCH` at a time, from the results of earlier
batches and a seed per batch. So a proposal depends neither on the number of workers nor on the order in which they
finish, and an interrupted search proposes the same again. After each fold proposals below the median of those judged
before are dropped (`optuna.pruners.MedianPruner`). The first proposal is the defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, Final, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from textcls.errors import TextclsError
from textcls_training.tuning.space import Chosen, Space, default_of

BATCH: Final = 4
# How many proposals are drawn at random before the estimator is used.
BY_CHANCE: Final = 8
Score = float


class Job(NamedTuple):
    """A proposal to be judged on a fold: the numbers of search, proposal and fold."""

    search: int
    proposal: int
    fold: int


@dataclass(slots=True)
class Proposal:
    """A choice on trial.

    Attributes:
        trial: Optuna's record of it.
        number: its number in the search, from 0.
        scores: the scores of the folds so far.
        error: why it cannot be trained; None if it can.
        pruned: whether it was dropped.
    """

    trial: optuna.Trial
    number: int
    scores: list[Score] = field(default_factory=list)
    error: str | None = None
    pruned: bool = False

    @property
    def chosen(self) -> Chosen:
        """Return what it chooses."""
        chosen: Chosen = self.trial.params
        return chosen

    @property
    def is_open(self) -> bool:
        """Return whether more folds have to judge it."""
        return self.error is None and not self.pruned


class Search:
    """The proposals for one set of rows. Attributes: `number` and `name`, unique among the searches."""

    def __init__(self, number: int, name: str, study: optuna.Study, space: Space, folds: int, seed: int) -> None:
        self.number, self.name, self.space, self.folds, self._seed = number, name, space, folds, seed
        self._study = study
        self._distributions: dict[str, BaseDistribution] = {**space}
        self._kept: dict[str, Any] = dict(study.user_attrs)

    def judged(self, most: int | None = None) -> list[FrozenTrial]:
        """Return the proposals that were judged, the first `most` of them."""
        found: list[FrozenTrial] = self._study.get_trials(deepcopy=False)
        return found[:most]

    def propose(self, most: int) -> list[Proposal]:
        """Return the next batch, without proposals that are already judged or beyond the number `most`."""
        judged = self.judged()
        batch = len(judged) // BATCH
        study = self._in_memory(judged[: batch * BATCH], batch)
        if not batch:
            study.enqueue_trial({name: default_of(one) for name, one in self.space.items()})
        asked = [study.ask(self._distributions) for _ in range(BATCH)]
        proposals = [Proposal(trial, batch * BATCH + i) for i, trial in enumerate(asked)]
        return [one for one in proposals if len(judged) <= one.number < most]

    def _in_memory(self, judged: Sequence[FrozenTrial], batch: int) -> optuna.Study:
        """Return a study that knows `judged`, and draws for this batch."""
        seed = int(np.random.SeedSequence([self._seed, self.number, batch]).generate_state(1)[0])
        sampler = TPESampler(seed=seed, n_startup_trials=BY_CHANCE, constant_liar=True)
        pruner = MedianPruner(n_startup_trials=BATCH, n_warmup_steps=0)
        study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
        study.add_trials(judged)
        return study

    def known(self, job: Job) -> Score | str | None:
        """Return the earlier result of a fold, or why it gave none; None if it was not judged yet."""
        found: Score | str | None = self._kept.get(_key(job))
        return found

    def keep(self, job: Job, found: Score | str) -> None:
        """Store the result of a fold, or why it gave none."""
        self._kept[_key(job)] = found
        self._study.set_user_attr(_key(job), found)

    def judge(self, proposal: Proposal, fold: int) -> None:
        """Take the result of a fold into account, and drop the proposal if it is behind others."""
        found = self.known(Job(self.number, proposal.number, fold))
        if found is None or isinstance(found, str):
            proposal.error = found or "not judged"
            return
        proposal.scores.append(found)
        proposal.trial.report(mean(proposal.scores), fold)
        proposal.pruned = fold + 1 < self.folds and proposal.number > 0 and proposal.trial.should_prune()

    def finish(self, proposals: Sequence[Proposal]) -> None:
        """Record that the proposals of a batch are judged."""
        for one in proposals:
            self._study.add_trial(self._frozen(one))

    def _frozen(self, of: Proposal) -> FrozenTrial:
        values = {fold: mean(of.scores[: fold + 1]) for fold in range(len(of.scores))}
        state = TrialState.FAIL if of.error else TrialState.PRUNED if of.pruned else TrialState.COMPLETE
        return create_trial(
            state=state,
            value=None if state == TrialState.FAIL else mean(of.scores),
            params=dict(of.chosen),
            distributions=self._distributions,
            intermediate_values=values,
            user_attrs={"scores": of.scores} | ({"error": of.error} if of.error else {}),
        )

    def best(self, most: int | None = None) -> FrozenTrial:
        """Return the best of the judged proposals, the first in case of ties.

        Raises:
            TextclsError: none could be trained.
        """
        whole = [trial for trial in self.judged(most) if trial.state == TrialState.COMPLETE]
        if not whole:
            raise TextclsError("No proposal could be trained.")
        return max(whole, key=lambda trial: (trial.value, -trial.number))

    def importances(self, most: int | None = None) -> dict[str, float]:
        """Return the share of the differences between proposals that each option explains (functional ANOVA, Hutter et
        al. 2014); empty if there are too few proposals, or no differences.
        """
        judged = [trial for trial in self.judged(most) if trial.state == TrialState.COMPLETE]
        if len(judged) < BATCH or len({trial.value for trial in judged}) < 2:
            return {}
        study = self._in_memory(judged, 0)
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=self._seed % 2**32)
        found: Mapping[str, float] = optuna.importance.get_param_importances(study, evaluator=evaluator)
        return dict(found)


def _key(job: Job) -> str:
    return f"{job.proposal}.{job.fold}"
