"""How sure a reason is: the same text explained by several models of the same rows.

Whoever trains once more, on rows that count a little differently, gets another model, with nearly the same answers and
other numbers. The range of what a token adds over such models says how far its number is chance. Of n models alike a
further one falls within the range of these with a probability of (n - 1) / (n + 1), whatever the distribution: 5/7 of
six.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from textcls.errors import ConfigError, InputError
from textcls.model.classifier import Classifier
from textcls.model.explanation import Attribution, Spread
from textcls.model.prediction import Prediction, explanation_of
from textcls.model.units import Unit

# Each is loaded, and asked about the text.
MOST_MODELS: Final = 100
FOLDER: Final = ".resamples"


def beside(model: Path) -> Path:
    """Return the folder in which `textcls train --resamples` leaves further models of the same rows."""
    return model.with_name(model.stem + FOLDER)


def load_others(path: Path, classifier: Classifier) -> list[Classifier]:
    """Load further models of the same rows: a model file, or all of a folder, in the order of their names.

    Raises:
        InputError: there is nothing there, or there are too many.
        ConfigError: one has other labels, or reads another number of tokens.
        ArtifactError: one is damaged.
    """
    paths = sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    if not paths:
        raise InputError(f"The folder {path} holds no model (*.onnx); train --resamples 5 writes some.")
    if len(paths) > MOST_MODELS:
        raise InputError(f"The folder {path} holds {len(paths):,} models, and at most {MOST_MODELS} are compared.")
    others = [Classifier.load(one) for one in paths]
    for other in others:
        if sorted(other.labels) != sorted(classifier.labels) or other.info.several != classifier.info.several:
            raise ConfigError(f"{other.path} has other labels than {classifier.path}; give models of the same rows.")
        if other.info.max_tokens != classifier.info.max_tokens:
            raise ConfigError(
                f"{other.path} reads {other.info.max_tokens:,} tokens of a text and {classifier.path} "
                f"{classifier.info.max_tokens:,}; give models trained alike."
            )
    return others


def with_spread(
    attribution: Attribution, prediction: Prediction, others: Sequence[Prediction], unit: Unit = "token"
) -> Attribution:
    """Return an attribution with the range of its values over several models; as it is where there are no others.

    Args:
        attribution: what is explained, of `prediction`.
        prediction: the answer of the first model, explained.
        others: answers of further models to the same text, explained.
        unit: of the attribution.
    """
    if not others:
        return attribution
    label, against = attribution.label, attribution.against
    values, scores, agreed = [attribution.values], [_score(prediction, label)], 1
    for other in others:
        values.append(explanation_of(other).grouped(unit).attribution(label, against).values)
        scores.append(_score(other, label))
        agreed += _answered(other, label) == _answered(prediction, label)
    value_MT = np.stack(values)
    spread = Spread(value_MT.min(0), value_MT.max(0), len(values), agreed, min(scores), max(scores))
    return replace(attribution, spread=spread)


def _score(prediction: Prediction, label: str) -> float:
    return float(prediction.probabilities[prediction.label_names.index(label)])


def _answered(prediction: Prediction, label: str) -> bool | str:
    """Return the answer; of several labels, whether the one that is explained is assigned."""
    return label in prediction.assigned if prediction.several else prediction.label
