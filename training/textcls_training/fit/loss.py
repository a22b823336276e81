"""What training makes small. Shapes: B texts, V views, C labels."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from textcls_training.config.settings import ClassWeight
from textcls_training.data.arrays import Int64


def class_weights(labels: Int64, classes: int, kind: ClassWeight) -> Tensor:
    """Return what a row of each label counts [C]: 1, or rows / (labels x rows of the label) where `balanced`."""
    if kind == "none":
        return torch.ones(classes)
    count = np.bincount(labels, minlength=classes)
    return torch.from_numpy(len(labels) / (classes * np.maximum(count, 1))).float()


def label_loss(logits_VBC: Tensor, label_B: Tensor, weight_B: Tensor) -> Tensor:
    """Return the cross-entropy of all views, which learn each by itself, times the weight of each row.

    Summed, not averaged, so that a row of a table learns the same from a text however many texts share the step.
    """
    loss_VB = F.cross_entropy(logits_VBC.movedim(2, 1), label_B.expand(len(logits_VBC), -1), reduction="none")
    return (loss_VB * weight_B).sum()
