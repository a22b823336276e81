"""What is measured of a trained model: figures of its answers, and how long they take."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from runner import microseconds
from textcls.evaluation.metrics import expected_calibration_error

Float = NDArray[np.floating[Any]]
Bool = NDArray[np.bool_]
Figures = dict[str, float]

COVERAGE: Final = 0.9
DRAWS: Final = 200
BATCH: Final = 64
ALONE_TEXTS, BATCHES = 200, 50


@dataclass(frozen=True)
class Trained:
    """A trained model, ours or a peer's, as the benchmarks ask it.

    Attributes:
        predict: the labels of some texts and nothing else.
        alone: everything the model can say about one text.
        score: labels of texts, and how sure the model is of each [texts]: a probability or a margin.
        probabilities: whether it is a probability.
        size: bytes of the saved model.
    """

    predict: Callable[[Sequence[str]], list[str]]
    alone: Callable[[str], object]
    score: Callable[[Sequence[str]], tuple[list[str], Float]]
    probabilities: bool
    size: int


def calibration_error(confidence: Float, right: Bool) -> float:
    """Return the expected calibration error of `textcls.evaluation`, from confidence and correctness [rows] alone."""
    return expected_calibration_error(confidence[:, None], np.where(right, 0, -1))


def calibration_floor(confidence: Float, draws: int = DRAWS, seed: int = 0) -> float:
    """Return the calibration error that a perfectly calibrated model would be expected to show on as many rows.

    The measure is a sum of absolute gaps, so chance alone keeps it above 0, the more so the fewer the rows. Here each
    answer is right with exactly its confidence; the mean is over `draws` such test sets.

    Args:
        confidence: predicted probability of the answered label [rows].
        draws: number of simulated test sets.
        seed: of the draws; the same confidences and seed give the same floor.
    """
    chance = np.random.default_rng(seed)
    simulated = (calibration_error(confidence, chance.random(len(confidence)) < confidence) for _ in range(draws))
    return float(np.mean(list(simulated)))


def coverage_accuracy(confidence: Float, right: Bool, coverage: float = COVERAGE) -> float:
    """Return the accuracy, 0 to 1, on the share `coverage` of the rows [rows] that the model is surest of.

    The number of rows is rounded, and at least 1; of equally sure rows the earlier ones count.
    """
    kept = max(1, round(coverage * len(confidence)))
    return float(right[np.argsort(-confidence, kind="stable")[:kept]].mean())


def figures(model: Trained, texts: Sequence[str], labels: Sequence[str]) -> Figures:
    """Score and time `model` on the rows of a test set; the calibration errors only where it gives probabilities.

    Accuracies and macro-F1 are in percent, times in microseconds a text, the size in 10^6 bytes.
    """
    from sklearn.metrics import f1_score

    answers, confidence = model.score(texts)
    right = np.array(answers) == np.array(labels)
    found = {
        "accuracy": 100 * float(right.mean()),
        "macro_f1": 100 * float(f1_score(labels, answers, average="macro", zero_division=0)),
        "accuracy_90": 100 * coverage_accuracy(confidence, right),
    }
    if model.probabilities:
        found |= {"ece": calibration_error(confidence, right), "ece_floor": calibration_floor(confidence)}
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)][:BATCHES]
    return found | {
        "alone_us": microseconds(lambda batch: model.alone(batch[0]), [[text] for text in texts[:ALONE_TEXTS]]),
        "batch_us": microseconds(model.predict, batches),
        "mb": model.size / 1e6,
    }
