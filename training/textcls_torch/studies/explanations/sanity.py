"""Models whose explanations must not agree with those of the model that is measured.

An explanation that stays as it is when the model is another one explains the text, and not the model (Adebayo et al.
2018, "Sanity Checks for Saliency Maps"). So the same texts train two models: one of labels dealt out by chance, which
has learned nothing of their meaning, and one that keeps its random weights.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from textcls.model.classifier import Classifier
from textcls_training.config.settings import OptimConfig, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import training as pipeline

SHUFFLED, RANDOM = "shuffled_labels", "random_weights"
# So slow that no weight moves.
_STILL: Final = 1e-12


def sanity_models(texts: Sequence[str], labels: Sequence[str], folder: Path, seed: int) -> dict[str, Classifier]:
    """Return a model of shuffled labels, and one of random weights.

    Args:
        texts: that both are trained on.
        labels: of the measured model, of which each text gets one by chance, all equally often.
        folder: where the files are written.
        seed: of chance.

    Raises:
        InputError: there are too few texts for the labels.
    """
    dealt = [labels[i % len(labels)] for i in np.random.default_rng(seed).permutation(len(texts)).tolist()]
    given = LabelledTexts(texts=list(texts), labels=dealt)
    still = OptimConfig(table_rate=_STILL, rate=_STILL, head_decay=0.0)
    configs = {
        SHUFFLED: TrainConfig(seed=seed, vectors="none"),
        RANDOM: TrainConfig(seed=seed, vectors="none", epochs=1, optim=still),
    }
    for name, config in configs.items():
        pipeline.train(given, folder / f"{name}.onnx", config)
    return {name: Classifier.load(folder / f"{name}.onnx") for name in configs}
