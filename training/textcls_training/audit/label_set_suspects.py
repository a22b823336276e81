"""From held-out answers to the rows with a label that is probably wrong or missing, if a row may have several.

Each label of each row is a separate question, with two ways to go wrong: it is missing although it applies, or present
although it does not. How often either happens is fitted by expectation maximization, as for one label per row
(`textcls_training.audit.suspects`), but for all labels together: separate rates per label ranked rows worse, and a
second round of trainings changed next to nothing.

Shapes: R rows, C labels.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from textcls_training.audit.suspects import (
    FIRST_SHARE,
    LEAST_FITTED,
    LISTED,
    MOST_FITTED,
    MOST_SHARE,
    PRIOR_SHARE_ROWS,
    ROUNDS,
    TEMPERED,
    likeliest_temperature,
    most_doubtful,
)
from textcls_training.data.arrays import Bools, Float64, Int64
from textcls_training.models.calibration import sigmoid

_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class JudgedSets:
    """The findings for each label of each row.

    Attributes:
        probability_RC: the probability of each label, by models that have not seen the row.
        has_RC: which labels the rows have.
        wrong_RC: the probability that a label is wrongly present or wrongly missing.
        wrong_R: the probability that any label of the row is.
        doubt_R: the ranking score of the rows: that of the most doubtful label of each.
    """

    probability_RC: Float64
    has_RC: Bools
    wrong_RC: Float64
    wrong_R: Float64 = field(init=False)
    doubt_R: Float64 = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "wrong_R", np.asarray(1 - np.prod(1 - self.wrong_RC, axis=1)))
        object.__setattr__(self, "doubt_R", np.asarray(self.wrong_RC.max(1, initial=0.0)))

    @property
    def suspects(self) -> Int64:
        """Return the numbers of the rows to look at, the surest first."""
        return most_doubtful(self.wrong_R, self.doubt_R)

    def own(self, row: int) -> list[int]:
        """Return the labels that a row has."""
        return [int(label) for label in np.flatnonzero(self.has_RC[row])]

    def meant(self, row: int) -> list[int]:
        """Return the labels that a suspect probably means: they differ in each that is wrong, and in at least one."""
        return [int(label) for label in np.flatnonzero(self.has_RC[row] ^ self._differs(row))]

    def chances(self, row: int) -> tuple[float, float]:
        """Return the probabilities of a suspect's own labels and of those it probably means, where they differ."""
        own_C = np.where(self.has_RC[row], self.probability_RC[row], 1 - self.probability_RC[row])[self._differs(row)]
        return float(own_C.prod()), float((1 - own_C).prod())

    def _differs(self, row: int) -> Bools:
        return np.asarray(self.wrong_RC[row] >= min(LISTED, self.wrong_RC[row].max()))


def judge(probability_RC: Float64, has_RC: Bools, judged_R: Bools) -> JudgedSets:
    """Return the probability that each label of each row is wrong.

    Args:
        probability_RC: the probability of each label, by models that have not seen the row.
        has_RC: which labels the rows have.
        judged_R: the rows that can be judged; nothing is reported on the others.
    """
    rows, classes = has_RC.shape
    some = np.random.default_rng(0).permutation(rows)[: max(LEAST_FITTED, MOST_FITTED // max(1, classes))]
    share_C = np.clip(has_RC.mean(0), _TINY, 1 - _TINY)
    # Given labels are wrong equally often, whether rare or frequent, so the more frequent one is added more often; for
    # one on nearly every row hardly a row is left to show how often, so none counts as on more than half.
    noise = _Noise(FIRST_SHARE, FIRST_SHARE, np.minimum(share_C / (1 - share_C), 1.0), 1.0)
    noise = noise.fitted(probability_RC[some], has_RC[some], judged_R[some])
    return JudgedSets(probability_RC, has_RC, noise.weigh(probability_RC, has_RC) * judged_R[:, None])


@dataclass(frozen=True, slots=True)
class _Noise:
    """How labels go wrong.

    Attributes:
        missing: the share of the labels that rows mean but do not have.
        false: the share of the labels that rows have but do not mean.
        odds_C: how many rows have each label, as odds.
        temperature: the divisor of log-odds.
    """

    missing: float
    false: float
    odds_C: Float64
    temperature: float

    def fitted(self, probability_RC: Float64, has_RC: Bools, judged_R: Bools) -> "_Noise":
        """Return the noise fitted to some rows, starting from this one."""
        noise = self
        given, prior = float(has_RC.sum()), FIRST_SHARE * PRIOR_SHARE_ROWS
        for done in range(ROUNDS):
            if done % TEMPERED == 0:
                noise = replace(noise, temperature=noise._best_temperature(probability_RC, has_RC))
            wrong_RC = noise.weigh(probability_RC, has_RC) * judged_R[:, None]
            false_rows, missing_rows = float(wrong_RC[has_RC].sum()), float(wrong_RC[~has_RC].sum())
            meant = given - false_rows + missing_rows
            missing = min((missing_rows + prior) / (meant + PRIOR_SHARE_ROWS), MOST_SHARE)
            false = min((false_rows + prior) / (given + PRIOR_SHARE_ROWS), MOST_SHARE)
            noise = replace(noise, missing=missing, false=false)
        return noise

    def _joint(self, probability_RC: Float64, has_RC: Bools, temperature: float) -> tuple[Float64, Float64]:
        """Return the probability that a row rightly has or lacks a label, and that it wrongly does [R, C]."""
        added_C = np.minimum(self.false * self.odds_C, 1 - _TINY)
        meant_RC = sigmoid(np.log((probability_RC + _TINY) / (1 - probability_RC + _TINY)) / temperature)
        right_RC = np.where(has_RC, (1 - self.missing) * meant_RC, (1 - added_C) * (1 - meant_RC))
        wrong_RC = np.where(has_RC, added_C * (1 - meant_RC), self.missing * meant_RC)
        return right_RC, wrong_RC

    def _best_temperature(self, probability_RC: Float64, has_RC: Bools) -> float:
        """Return the temperature at which the labels of the rows are most probable."""
        return likeliest_temperature(lambda at: np.asarray(np.add(*self._joint(probability_RC, has_RC, at))))

    def weigh(self, probability_RC: Float64, has_RC: Bools) -> Float64:
        """Return the probability that each label is wrong [R, C]."""
        right_RC, wrong_RC = self._joint(probability_RC, has_RC, self.temperature)
        return np.asarray(wrong_RC / (right_RC + wrong_RC + _TINY))
