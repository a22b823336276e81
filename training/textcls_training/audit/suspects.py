"""From held-out answers to the rows whose label is probably wrong, the surest first.

A row has the label that it means, or, with a probability e, another one, according to how often labels are confused.
What it means is given by the models' probabilities, sharpened or flattened by a temperature. All three are fitted to
the labels that rows have, by expectation maximization, as in (Dawid and Skene 1979, doi 10.2307/2346806) for
annotators; so is the probability that a label is wrong. Each part of the rows is judged by what was fitted to the
others: among many labels an isolated row would otherwise be its own evidence.

Shapes: R rows, C labels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from textcls_training.data.arrays import Bools, Float64, Int64
from textcls_training.models.calibration import softmax

# Rows whose label is less than half as probable as another one teach next to nothing in the second round.
DOUBTED, DOUBTED_WEIGHT = 0.5, 0.02
# The prior number of rows per label that are wrong at random, since few rows say little.
PRIOR_ROWS: Final = 10
# The prior number of rows of any label, a twentieth of which is wrong.
PRIOR_SHARE_ROWS: Final = 100
LISTED: Final = 0.5
# If labels are confused, rows are ordered by the probability that they mean another label and have this one, over this
# power of that of their own; if labels are wrong at random, by the latter alone, which weighs so much between the two.
# Which case it is follows from the share of the labels that are more like what a doubted row means than its own: from
# the first share on they are partly wrong at random, from the second on entirely.
_OWN_TAKEN, _OWN_AT_RANDOM = 0.5, 8.0
_TAKEN, _AT_RANDOM = 0.2, 0.4
# At least this many of the least probable rows decide it, too.
_SURE_ROWS: Final = 10
# A probability below which differences mean nothing.
_LEAST: Final = 1e-4
_PARTS: Final = 5
# With many labels, noise is fitted to only this many numbers, but to at least this many rows.
MOST_FITTED, LEAST_FITTED = 1_000_000, 2_000
ROUNDS: Final = 16
# The number of iterations between new temperatures.
TEMPERED: Final = 4
_LOG_TEMPERATURES: Final = (-1.5, 1.0)
FIRST_SHARE, MOST_SHARE = 0.05, 0.4
_TINY: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Judged:
    """The findings for each row.

    Attributes:
        probability_RC: the probability of each label, by models that have not seen the row.
        label_R: the labels of the rows.
        wrong_R: the probability that its label is wrong; 0 if it could not be judged.
        meant_R: the label that it means in that case.
        doubt_R: the ranking score of the rows, the most doubtful highest.
    """

    probability_RC: Float64
    label_R: Int64
    wrong_R: Float64
    meant_R: Int64
    doubt_R: Float64

    @property
    def suspects(self) -> Int64:
        """Return the numbers of the rows to look at, the surest first."""
        return most_doubtful(self.wrong_R, self.doubt_R)

    def own(self, row: int) -> list[int]:
        """Return the label that a row has."""
        return [int(self.label_R[row])]

    def meant(self, row: int) -> list[int]:
        """Return the label that a suspect probably means."""
        return [int(self.meant_R[row])]

    def chances(self, row: int) -> tuple[float, float]:
        """Return the probabilities of a suspect's own label and of the one it probably means."""
        probability_C = self.probability_RC[row]
        return float(probability_C[self.label_R[row]]), float(probability_C[self.meant_R[row]])


def most_doubtful(wrong_R: Float64, doubt_R: Float64) -> Int64:
    """Return the numbers of the rows to look at, the surest first: all that are more probably wrong than not.

    If texts are hard, hardly any row is, although the first ones are mostly wrong: so at least a third as many as there
    probably are wrong labels.
    """
    count = max(int((wrong_R >= LISTED).sum()), round(wrong_R.sum() / 3))
    return np.argsort(-doubt_R, kind="stable")[:count]


def weights(probability_RC: Float64, label_R: Int64) -> Float64:
    """Return the weight of each row in the second round [R], by the answers of the first."""
    own_R, other_R = _own_and_other(probability_RC, label_R)
    return np.where(own_R < DOUBTED * np.maximum(own_R, other_R), DOUBTED_WEIGHT, 1.0)


def judge(probability_RC: Float64, label_R: Int64, judged_R: Bools, first_RC: Float64 | None = None) -> Judged:
    """Return the probability that the label of each row is wrong.

    Args:
        probability_RC: the probability of each label, by models that have not seen the row.
        label_R: the labels of the rows.
        judged_R: the rows that can be judged.
        first_RC: the probabilities of the first of two rounds, which also order rows whose labels are wrong at random.
    """
    rows, classes = probability_RC.shape
    wrong_R, otherwise_R, meant_R = np.zeros(rows), np.zeros(rows), label_R.copy()
    if classes < 2:
        return Judged(probability_RC, label_R, wrong_R, meant_R, np.zeros(rows))
    chance = np.random.default_rng(0)
    part_R = chance.permutation(np.arange(rows) % _PARTS)
    for part in range(_PARTS):
        others, these = np.flatnonzero(judged_R & (part_R != part)), np.flatnonzero(part_R == part)
        some = chance.permutation(others)[: max(LEAST_FITTED, MOST_FITTED // classes)]
        noise = _Noise.fit(probability_RC[some], label_R[some])
        wrong_R[these] = noise.weigh(probability_RC[these], label_R[these])[0] * judged_R[these]
        meant_RC = probability_RC[these] * noise.confusion_CC[:, label_R[these]].T
        meant_R[these] = meant_RC.argmax(1)
        otherwise_R[these] = meant_RC.sum(1)
    own_R, first_R = (
        np.log(given_RC[np.arange(rows), label_R] + _LEAST)
        for given_RC in (probability_RC, probability_RC if first_RC is None else first_RC)
    )
    share = _at_random(probability_RC, label_R, wrong_R)
    taken_R = np.log(otherwise_R + _LEAST) - _OWN_TAKEN * own_R
    doubt_R = (1 - share) * taken_R - share * _OWN_AT_RANDOM * (own_R + first_R) / 2
    return Judged(probability_RC, label_R, wrong_R, meant_R, np.where(judged_R, doubt_R, -np.inf))


def _at_random(probability_RC: Float64, label_R: Int64, wrong_R: Float64) -> float:
    """Return how far labels are wrong at random (1) rather than confused with similar ones (0)."""
    rows, classes = probability_RC.shape
    best_R = probability_RC.argmax(1)
    differ_R = (best_R != label_R) & (wrong_R > 0)
    if classes < 3 or not differ_R.any():
        return 1.0
    is_best_RC = csr_array((np.ones(rows), (np.arange(rows), best_R)), (rows, classes))
    like_CC = np.asarray(is_best_RC.T @ probability_RC)
    np.fill_diagonal(like_CC, -1.0)
    rank_CC = (-like_CC).argsort(1).argsort(1) / (classes - 2)
    rank_D, wrong_D = rank_CC[best_R[differ_R], label_R[differ_R]], wrong_R[differ_R]
    # If many texts are ambiguous, all doubted rows look like confused labels; the least probable ones, a quarter as
    # many as are wrong, say more.
    own_D = probability_RC[differ_R, label_R[differ_R]]
    surest = np.argsort(own_D, kind="stable")[: max(_SURE_ROWS, round(wrong_R.sum() / 4))]
    share = max(np.average(rank_D, weights=wrong_D), rank_D[surest].mean())
    return float(np.clip((share - _TAKEN) / (_AT_RANDOM - _TAKEN), 0, 1))


@dataclass(frozen=True, slots=True)
class _Noise:
    """How labels go wrong.

    Attributes:
        share: the share of the rows with a wrong label.
        confusion_CC: the share of the rows that mean one label and have another, for each pair.
        temperature: the divisor of the log-probabilities.
    """

    share: float
    confusion_CC: Float64
    temperature: float

    @classmethod
    def fit(cls, probability_RC: Float64, label_R: Int64) -> "_Noise":
        """Fit the noise to some rows, possibly none."""
        classes = probability_RC.shape[1]
        prior_CC = np.full((classes, classes), PRIOR_ROWS / (classes - 1))
        np.fill_diagonal(prior_CC, 0.0)
        noise = cls(FIRST_SHARE, prior_CC / PRIOR_ROWS, 1.0)
        has_RC = csr_array((np.ones(len(label_R)), (np.arange(len(label_R)), label_R)), (len(label_R), classes))
        for done in range(ROUNDS if len(label_R) else 0):
            if done % TEMPERED == 0:
                noise = replace(noise, temperature=noise._best_temperature(probability_RC, label_R))
            wrong_R, meant_RC = noise.weigh(probability_RC, label_R)
            meant_RC *= (wrong_R / np.maximum(meant_RC.sum(1), _TINY))[:, None]
            joint_CC = prior_CC + (meant_RC.T @ has_RC)
            share = (float(wrong_R.sum()) + FIRST_SHARE * PRIOR_SHARE_ROWS) / (len(label_R) + PRIOR_SHARE_ROWS)
            noise = replace(noise, share=min(share, MOST_SHARE), confusion_CC=joint_CC / joint_CC.sum(1, keepdims=True))
        return noise

    def weigh(self, probability_RC: Float64, label_R: Int64) -> tuple[Float64, Float64]:
        """Return the probability that each label is wrong [R], and that it is while the row means each [R, C]."""
        right_R, meant_RC = self._joint(probability_RC, label_R, self.temperature)
        wrong_R = meant_RC.sum(1)
        return wrong_R / (right_R + wrong_R + _TINY), meant_RC

    def _joint(self, probability_RC: Float64, label_R: Int64, temperature: float) -> tuple[Float64, Float64]:
        """Return the probability that a row rightly has its label [R], and wrongly while meaning each [R, C]."""
        meant_RC = softmax(np.log(probability_RC + _TINY) / temperature)
        right_R = (1 - self.share) * meant_RC[np.arange(len(label_R)), label_R]
        meant_RC *= self.share * self.confusion_CC[:, label_R].T
        return right_R, meant_RC

    def _best_temperature(self, probability_RC: Float64, label_R: Int64) -> float:
        def joint(temperature: float) -> Float64:
            right_R, meant_RC = self._joint(probability_RC, label_R, temperature)
            return np.asarray(right_R + meant_RC.sum(1))

        return likeliest_temperature(joint)


def likeliest_temperature(joint: Callable[[float], Float64]) -> float:
    """Return the temperature at which the observations are most probable, by their probabilities from `joint`."""

    def loss(logarithm: float) -> float:
        return -float(np.log(joint(float(np.exp(logarithm))) + _TINY).mean())

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, options={"maxiter": 12}).x))


def _own_and_other(probability_RC: Float64, label_R: Int64) -> tuple[Float64, Float64]:
    """Return the probability of each row's label, and that of the most probable other one."""
    rows = np.arange(len(label_R))
    others_RC = probability_RC.copy()
    others_RC[rows, label_R] = -1.0
    return probability_RC[rows, label_R], others_RC.max(1, initial=0.0)
