"""The loss that training minimizes. Shapes: B texts, V views, C labels, R rows.

With one label per text: the cross-entropy of a softmax. A soft target is like one hard row per label, which counts by
its probability; a hard one is certain of its label. So one cross-entropy serves both, with weights of the same meaning:
-sum_c weight_c p_c log q_c times the weight of the row.

With several labels per text: the cross-entropy of a sigmoid per label, with separate weights for rows that have the
label and those that do not: -sum_c (weight_c p_c log q_c + other_c (1 - p_c) q_c^g log(1 - q_c)) times the weight
of the row. The power g = `FOCUS` is that of the asymmetric loss (Ridnik et al. 2021, arXiv 2009.14119, equation 4,
without its margin): of the many labels that a text does not have, nearly all are soon ruled out, and their remaining
loss would drown that of the few that it has. The answers are then no probabilities; validation rows recalibrate them.

Both are summed, not averaged, so that a row of a table learns the same from a text however many texts share the step,
and summed over the views, each of which learns separately.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from textcls_kernels.readout import LabelSetTargets, LabelTargets
from textcls_training.config.resolve import LabelWeights
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.dataset import Dataset
from textcls_training.fit.label_weights import FOCUS, class_weights, label_set_weights

# The targets of some rows: the numbers of hard labels [B], or the probability of each label [B, C]; and the weight of
# each row [B], if that is not 1.
Targets = tuple[NDArray[Any]] | tuple[NDArray[Any], Float32]


class SoftmaxLoss:
    """The loss of rows with one label each."""

    def __init__(self, dataset: Dataset, classes: int, class_weight: LabelWeights, device: torch.device) -> None:
        self._dataset = dataset
        self._class_weight_C = torch.from_numpy(class_weights(dataset.label_mass(classes), class_weight)).to(device)

    def targets(self, row_B: Int64) -> Targets:
        """Return the targets of the rows `row_B`."""
        dataset = self._dataset
        target = dataset.labels if dataset.probability_RC is None else dataset.probability_RC
        return _targets(target[row_B], dataset, row_B)

    def __call__(self, logits_VBC: Tensor, target: Tensor, row_weight_B: Tensor | None = None) -> Tensor:
        """Return the loss of the logits of some rows."""
        return label_loss(logits_VBC, target, self._class_weight_C, row_weight_B)

    def fused(self, target: Tensor, row_weight_B: Tensor | None = None) -> LabelTargets:
        """Return the same loss in the form used by the fused readout."""
        return LabelTargets(target, self._class_weight_C, row_weight_B)


class SigmoidLoss:
    """The loss of rows with several labels each."""

    def __init__(self, dataset: Dataset, class_weight: LabelWeights, device: torch.device) -> None:
        self._dataset = dataset
        present_C, absent_C = label_set_weights(dataset, class_weight)
        self._present_C, self._absent_C = torch.from_numpy(present_C).to(device), torch.from_numpy(absent_C).to(device)

    def targets(self, row_B: Int64) -> Targets:
        """Return the targets of the rows `row_B`."""
        return _targets(self._dataset.label_matrix.dense(row_B), self._dataset, row_B)

    def __call__(self, logits_VBC: Tensor, target: Tensor, row_weight_B: Tensor | None = None) -> Tensor:
        """Return the loss of the logits of some rows."""
        return label_set_loss(logits_VBC, target, self._present_C, self._absent_C, row_weight_B)

    def fused(self, target: Tensor, row_weight_B: Tensor | None = None) -> LabelSetTargets:
        """Return the same loss in the form used by the fused readout."""
        return LabelSetTargets(target, self._present_C, self._absent_C, FOCUS, row_weight_B)


# The loss of the answers to some rows of a dataset.
Loss = SoftmaxLoss | SigmoidLoss


def make_loss(dataset: Dataset, classes: int, class_weight: LabelWeights, device: torch.device) -> Loss:
    """Return the loss of a dataset."""
    if dataset.several:
        return SigmoidLoss(dataset, class_weight, device)
    return SoftmaxLoss(dataset, classes, class_weight, device)


def _targets(target: NDArray[Any], dataset: Dataset, row_B: Int64) -> Targets:
    return (target,) if dataset.weight_R is None else (target, dataset.weight_R[row_B])


def label_loss(
    logits_VBC: Tensor, target: Tensor, class_weight_C: Tensor, row_weight_B: Tensor | None = None
) -> Tensor:
    """Return the cross-entropy of softmax outputs.

    Args:
        logits_VBC: the logits of each view.
        target: the numbers of hard labels [B], or probabilities [B, C].
        class_weight_C: the weight of each label.
        row_weight_B: the weight of each row; None if 1.
    """
    logits_VCB = logits_VBC.movedim(2, 1)
    targets = (target if target.dim() == 1 else target.T).expand(len(logits_VBC), *target.shape[::-1])
    loss_VB = F.cross_entropy(logits_VCB, targets, weight=class_weight_C, reduction="none")
    return loss_VB.sum() if row_weight_B is None else (loss_VB * row_weight_B).sum()


def label_set_loss(
    logits_VBC: Tensor, target_BC: Tensor, present_C: Tensor, absent_C: Tensor, row_weight_B: Tensor | None = None
) -> Tensor:
    """Return the cross-entropy of sigmoid outputs; for absent labels, focused on those that seem present.

    Args:
        logits_VBC: the logits of each view.
        target_BC: the probability of each label.
        present_C: the weight of a row that has the label.
        absent_C: the weight of a row that does not have it.
        row_weight_B: the weight of each row; None if 1.
    """
    # -log q; -log(1 - q) and the power of q follow from it by a few quick operations.
    missed_VBC = F.softplus(-logits_VBC)
    present_VBC = present_C * target_BC * missed_VBC
    absent_VBC = absent_C * (1 - target_BC) * torch.exp(-FOCUS * missed_VBC) * (logits_VBC + missed_VBC)
    loss_VB = (present_VBC + absent_VBC).sum(2)
    return loss_VB.sum() if row_weight_B is None else (loss_VB * row_weight_B).sum()
