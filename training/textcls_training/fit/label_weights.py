"""The weights of the rows of each label in the loss (`textcls_torch.fit.loss`). Shape: C labels."""

from typing import Final

import numpy as np

from textcls_training.config.resolve import LabelWeights
from textcls_training.data.arrays import Float32, Float64
from textcls_training.data.dataset import Dataset

# The power of the focus on absent labels that seem to be present. Measured, see training/README.md: 0 is plain
# cross-entropy.
FOCUS: Final = 1.25
# From about so many rows on, a label weighs no less for having more; measured: training/README.md.
ENOUGH: Final = 1000


def class_weights(mass_C: Float64, kind: LabelWeights) -> Float32:
    """Return the weight of each label [C]: 1, or rows / (labels x rows of the label) if `balanced`, or the given one.

    `tempered` weights are in the proportion of sqrt(1 / rows of the label + 1 / `ENOUGH`), and 1 in the mean of the
    rows: few rows count more, and labels with thousands of rows alike.

    Args:
        mass_C: how many rows each label has, see `Dataset.label_mass`.
        kind: which of these, or the weights.
    """
    if kind == "none":
        return np.ones(len(mass_C), np.float32)
    if not isinstance(kind, str):
        return np.array(kind, np.float32)
    weight_C: Float64 = 1 / np.maximum(mass_C, 1)
    if kind == "balanced":
        weight_C *= mass_C.sum() / len(mass_C)
    else:
        weight_C = np.sqrt(weight_C + 1 / ENOUGH)
        weight_C *= mass_C.sum() / (weight_C * mass_C).sum()
    return weight_C.astype(np.float32)


def label_set_weights(dataset: Dataset, kind: LabelWeights) -> tuple[Float32, Float32]:
    """Return the weights of the rows that have each label [C], and of those that do not [C].

    `balanced` gives both half of the weight of all rows, as scikit-learn does for each label against the rest. A given
    weight is that of the rows that have the label.
    """
    classes = dataset.label_matrix.classes
    ones_C = np.ones(classes, np.float32)
    if kind == "none":
        return ones_C, ones_C
    if not isinstance(kind, str):
        return np.array(kind, np.float32), ones_C
    present_C = dataset.label_mass(classes)
    absent_C = dataset.weight() - present_C
    half = dataset.weight() / 2
    found = [(half / np.maximum(mass_C, 1)).astype(np.float32) for mass_C in (present_C, absent_C)]
    return found[0], found[1]


def log_odds(dataset: Dataset) -> Float32:
    """Return the log-odds of the share of rows with each label [C], as if one more row had it, and one more did not.

    Biases start here if a text may have several labels: a sigmoid that begins at 1/2 for a rare label spends its first
    steps on that alone.
    """
    present_C = dataset.label_mass(dataset.label_matrix.classes) + 1
    absent_C = dataset.weight() + 2 - present_C
    odds_C: Float64 = np.log(present_C / absent_C)
    return odds_C.astype(np.float32)
