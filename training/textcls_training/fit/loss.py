"""What training makes small. Shapes: B texts, V views, C labels.

A soft target is a hard row of each label, which counts by its probability; a hard one is sure of its label. So one
cross-entropy serves both, and weights mean the same for both: -sum_c weight_c p_c log q_c times the weight of the row.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from textcls_training.config.settings import ClassWeight
from textcls_training.data.arrays import Float64


def class_weights(mass_C: Float64, kind: ClassWeight) -> Tensor:
    """Return what each label counts [C]: 1, or rows / (labels x rows of the label) where `balanced`.

    Args:
        mass_C: how many rows each label has, see `Dataset.label_mass`.
        kind: which of the two.
    """
    if kind == "none":
        return torch.ones(len(mass_C))
    return torch.from_numpy(mass_C.sum() / (len(mass_C) * np.maximum(mass_C, 1))).float()


def label_loss(
    logits_VBC: Tensor, target: Tensor, class_weight_C: Tensor, row_weight_B: Tensor | None = None
) -> Tensor:
    """Return the cross-entropy of all views, which learn each by itself.

    Summed, not averaged, so that a row of a table learns the same from a text however many texts share the step.

    Args:
        logits_VBC: what each view answers.
        target: the numbers of hard labels [B], or probabilities [B, C].
        class_weight_C: what each label counts.
        row_weight_B: what each row counts; None where that is 1.
    """
    logits_VCB = logits_VBC.movedim(2, 1)
    targets = (target if target.dim() == 1 else target.T).expand(len(logits_VBC), *target.shape[::-1])
    loss_VB = F.cross_entropy(logits_VCB, targets, weight=class_weight_C, reduction="none")
    return loss_VB.sum() if row_weight_B is None else (loss_VB * row_weight_B).sum()
