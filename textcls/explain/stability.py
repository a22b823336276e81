"""Measure how reliable a reason is: the same text explained by several models of the same rows.

Training once more, on rows weighted a little differently, gives another model with nearly the same answers and other
numbers. The spread of the numbers of n such models gives the interval for those of a further one: with mean m and
standard deviation s it is m +- t s sqrt(1 + 1 / n), where t is the corresponding quantile of Student's distribution
with n - 1 degrees of freedom (a prediction interval; Hahn and Meeker 1991, "Statistical Intervals", chapter 4).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from textcls.errors import ConfigError, InputError
from textcls.model.classifier import Classifier
from textcls.model.contrast import Float32
from textcls.model.explanation import Attribution, Spread
from textcls.model.learned_texts import LearnedTexts
from textcls.model.prediction import Prediction, explanation_of
from textcls.model.units import Unit

# The most models: each is loaded, and asked about the text.
MOST_MODELS: Final = 100
FOLDER: Final = ".resamples"
# The 0.975 quantile of Student's distribution with 1, 2, ... degrees of freedom, for intervals of 95 %.
_QUANTILES: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_NORMAL: Final = 1.959964


def beside(model: Path) -> Path:
    """Return the folder in which `textcls train --resamples` leaves further models of the same rows."""
    return model.with_name(model.stem + FOLDER)


def load_others(path: Path, classifier: Classifier) -> list[Classifier]:
    """Load further models of the same rows: a model file, or all files of a folder, in the order of their names.

    Raises:
        InputError: there is no model, or there are too many.
        ConfigError: one has other labels or rows, or reads another number of tokens.
        ArtifactError: one is damaged.
    """
    paths = sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    if not paths:
        raise InputError(f"The folder {path} holds no model (*.onnx); train --resamples 5 writes some.")
    if len(paths) > MOST_MODELS:
        raise InputError(f"The folder {path} holds {len(paths):,} models, and at most {MOST_MODELS} are compared.")
    found = [Classifier.load(one) for one in paths]
    # The explained model is counted separately.
    others = [one for one in found if one.graph.sha256 != classifier.graph.sha256] or found
    made_here = path.resolve() == beside(classifier.path).resolve()
    for other in others:
        if sorted(other.labels) != sorted(classifier.labels) or other.info.several != classifier.info.several:
            raise ConfigError(f"{other.path} has other labels than {classifier.path}; give models of the same rows.")
        if made_here and LearnedTexts.of_model(other.info) != LearnedTexts.of_model(classifier.info):
            raise ConfigError(
                f"{other.path} was made of other rows than {classifier.path}: train --resamples makes it again."
            )
        if other.info.max_tokens != classifier.info.max_tokens:
            raise ConfigError(
                f"{other.path} reads {other.info.max_tokens:,} tokens of a text and {classifier.path} "
                f"{classifier.info.max_tokens:,}; give models trained alike."
            )
    return others


def with_spread(
    attribution: Attribution, prediction: Prediction, others: Sequence[Prediction], unit: Unit = "token"
) -> Attribution:
    """Return an attribution with intervals of its values over several models; unchanged if there are no others.

    Args:
        attribution: the attribution of `prediction`.
        prediction: the answer of the first model, explained.
        others: answers of further models to the same text, explained.
        unit: the unit of the attribution.
    """
    if not others:
        return attribution
    label, against = attribution.label, attribution.against
    values, scores, agreed = [attribution.values], [explanation_of(prediction).score(label)], 1
    for other in others:
        values.append(explanation_of(other).grouped(unit).attribution(label, against).values)
        scores.append(explanation_of(other).score(label))
        agreed += _answered(other, label) == _answered(prediction, label)
    spread = Spread(*_interval(np.stack(values)), len(values), agreed, min(scores), max(scores))
    return replace(attribution, spread=spread)


def _interval(value_MT: Float32) -> tuple[Float32, Float32]:
    """Return both ends of the interval that contains a further model's value of each token in 95 of 100 cases."""
    models = len(value_MT)
    mean_T, deviation_T = value_MT.mean(0), value_MT.std(0, ddof=1)
    half_T = np.float32(_quantile(models - 1) * (1 + 1 / models) ** 0.5) * deviation_T
    return mean_T - half_T, mean_T + half_T


def _quantile(freedom: int) -> float:
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    # Abramowitz and Stegun, 26.7.5, to two terms: accurate to 0.002 from here on.
    z, v = _NORMAL, freedom
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)


def _answered(prediction: Prediction, label: str) -> bool | str:
    """Return the answer; with several labels per text, whether the explained one is assigned."""
    return label in prediction.assigned if prediction.several else prediction.label
