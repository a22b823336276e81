"""Does the answer change where the explanation says that it would? ERASER's measures, and ferret's variant.

ERASER (DeYoung et al. 2020, section 4.2), f_j the probability of the class j that is predicted on the whole text x:

    comprehensiveness  f_j(x) - f_j(x without r)     high where the rationale r was needed
    sufficiency        f_j(x) - f_j(r)               low where r is enough by itself; may be negative

r is the top max(1, ceil(k n)) of n tokens by score, and the figure is the mean over k = 1, 5, 10, 20, 50 % (their
AOPC). Signs are kept. Deviation: f is the calibrated probability.

ferret (Attanasio et al. 2023) takes tokens of positive score alone, k = 10 .. 100 % by 10, and leaves out a threshold
whose tokens are those of the one before; the two figures are not comparable, so both are given, each by its name.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats

from faithfulness.explained_text import ExplainedText, Predictor, probabilities
from faithfulness.removal import Removal, keep, remove
from textcls_training.data.arrays import Float64, Int64

SHARES: Final = (0.01, 0.05, 0.1, 0.2, 0.5)
FERRET_SHARES: Final = tuple(k / 10 for k in range(1, 11))
# Below this change between the empty and the whole text a ratio to it says nothing.
SMALLEST_CHANGE: Final = 0.1


@dataclass(frozen=True)
class Faithfulness:
    """What one explanation of one text came to; a figure that is not defined is nan.

    Attributes:
        comprehensiveness, sufficiency: means over `SHARES`.
        ferret_comprehensiveness, ferret_sufficiency: nan where no token has a positive score.
        loo_tau: Kendall's tau-b with the drops of leave-one-out; nan where either is constant.
        change: f_j(x) - f_j(empty text).
    """

    comprehensiveness: float
    sufficiency: float
    ferret_comprehensiveness: float
    ferret_sufficiency: float
    loo_tau: float
    change: float

    @property
    def relative_comprehensiveness(self) -> float:
        """By the change that the whole text makes, so that two models can be compared; nan where that is small."""
        return self.comprehensiveness / self.change if abs(self.change) > SMALLEST_CHANGE else math.nan

    @property
    def relative_sufficiency(self) -> float:
        """Likewise."""
        return self.sufficiency / self.change if abs(self.change) > SMALLEST_CHANGE else math.nan


def order(scores: Float64) -> Int64:
    """Return the numbers of the tokens, best first; of equal scores the earlier token first."""
    return np.argsort(-scores, kind="stable")


def eraser_sets(scores: Float64) -> list[Int64]:
    """Return the tokens of each of `SHARES`, the top max(1, ceil(k n))."""
    best = order(scores)
    return [best[: _count(share, len(scores))] for share in SHARES]


def ferret_sets(scores: Float64) -> list[Int64]:
    """Return ferret's sets: the positive ones of the top k % tokens, without repetitions; none may be left."""
    best = order(scores)
    found: list[Int64] = []
    for share in FERRET_SHARES:
        top = best[: _count(share, len(scores))]
        positive = top[scores[top] > 0]
        if len(positive) > (len(found[-1]) if found else 0):
            found.append(positive)
    return found


def _count(share: float, tokens: int) -> int:
    return max(1, math.ceil(share * tokens))


def tau(one: Float64, other: Float64) -> float:
    """Return Kendall's tau-b, nan where it is not defined: fewer than two tokens, or all scores alike."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns of what nan says already
        return float(stats.kendalltau(one, other).statistic)


def drops(model: Predictor, case: ExplainedText, removal: Removal) -> Float64:
    """Return f_j(x) - f_j(x without token t) for each token t [tokens]: leave-one-out."""
    texts = [remove(case.text, case.spans, [i], removal) for i in range(len(case.spans))]
    return case.score - probabilities(model, texts)[:, case.label]


def measure(
    model: Predictor, case: ExplainedText, scores: Sequence[Float64], case_drops: Float64, removal: Removal
) -> list[Faithfulness]:
    """Measure several explanations of one text, each a score a token [tokens], with one call of the model.

    Args:
        model: what was explained.
        case: the text.
        scores: of each explanation.
        case_drops: the text's `drops` by the same removal.
        removal: how tokens are removed.
    """
    eraser, ferret = [eraser_sets(s) for s in scores], [ferret_sets(s) for s in scores]
    sets = [which.tolist() for both in zip(eraser, ferret, strict=True) for group in both for which in group]
    texts = [remove(case.text, case.spans, which, removal) for which in sets]
    texts += [keep(case.text, case.spans, which, removal) for which in sets]
    without, alone = np.split(case.score - probabilities(model, texts)[:, case.label], 2)
    ends = np.cumsum([len(group) for both in zip(eraser, ferret, strict=True) for group in both])[:-1]
    parts = list(zip(np.split(without, ends), np.split(alone, ends), strict=True))
    return [
        Faithfulness(
            comprehensiveness=_mean(parts[2 * i][0]),
            sufficiency=_mean(parts[2 * i][1]),
            ferret_comprehensiveness=_mean(parts[2 * i + 1][0]),
            ferret_sufficiency=_mean(parts[2 * i + 1][1]),
            loo_tau=tau(scores[i], case_drops),
            change=case.score - case.empty_score,
        )
        for i in range(len(scores))
    ]


def _mean(values: Float64) -> float:
    return float(values.mean()) if len(values) else math.nan
