"""The objective: a lower bound of the mutual information of the clusters predicted by two views of a text.

Each of two views a, b of a text (here: its tokens split into two parts) predicts a cluster, with probabilities p_a, p_b
over C clusters. For the cluster Z that one view predicts, and any prediction of it by the other (Stratos 2019, "Mutual
Information Maximization for Simple and Accurate Part-Of-Speech Induction", section 3: Barber and Agakov's bound),

    I(Z_b; a) >= H(Z_b) - E[-sum_c p_b(c) log p_a(c)]

Views should agree (the cross-entropy) without all texts going into one cluster (the entropy). No text has to be
compared with others, so there are no negatives and no large batches. Only H(Z) depends on all texts: estimated on a
batch it is too small by about (C - 1) / (2 B) (Miller 1955), which is a lot if C is near B. So its gradient is taken at
a running mean m of the probabilities: the gradient of H at m is -log m (and a constant, which has no effect on
probabilities that sum to 1).

The view that names the cluster is sharper (`SHARPNESS`) than the one that predicts it. With both equal, agreement is
achieved most cheaply by clusters of which no view is sure: as far as logits a, b are small and centred, the bound is (a
. b - (a . a + b . b) / 4) / C, below 0 unless two views' logits correlate by more than a half. That ended with all
texts in one cluster, or with few clusters of many (training/README.md).

Shapes: B texts, V views of the model (words, pieces), C clusters.
"""

from typing import Final

import torch
from torch import Tensor

# The factor for the logits of the view that names the cluster.
SHARPNESS: Final = 2.0
# Below this a cluster is empty: its logarithm must stay finite.
LEAST: Final = 1e-6


class Marginal:
    """A running mean of the probabilities of the clusters.

    Args:
        start_C: its initial value.
        momentum: the share of itself that it keeps at each update.
    """

    def __init__(self, start_C: Tensor, momentum: float) -> None:
        self.value_C = start_C
        self.momentum = momentum

    def update(self, probability_BC: Tensor) -> Tensor:
        """Update the mean with the probabilities of a batch, and return it [C]."""
        mean_C = probability_BC.detach().mean(0)
        self.value_C = self.momentum * self.value_C + (1 - self.momentum) * mean_C
        return self.value_C


def cross_entropy(target_BC: Tensor, logits_VBC: Tensor) -> Tensor:
    """Return -sum_c target_c log softmax(logits)_c of each text, summed over the views of the model [B]."""
    found_B: Tensor = -(target_BC * torch.log_softmax(logits_VBC, 2)).sum((0, 2))
    return found_B


def information_loss(a_VBC: Tensor, b_VBC: Tensor, marginal: Marginal) -> Tensor:
    """Return the loss, summed over texts and views: half of the negative bound, both ways.

    The cluster named by a view of the text is that of all views of the model together, which therefore share the same
    clusters; each of these learns to predict it from the other view of the text.

    Args:
        a_VBC: the logits of one view of the texts.
        b_VBC: likewise, of the other.
        marginal: the running mean, which is updated.
    """
    p_a_BC, p_b_BC = ((SHARPNESS * one_VBC.mean(0)).softmax(1) for one_VBC in (a_VBC, b_VBC))
    both_BC = (p_a_BC + p_b_BC) / 2
    disagreement = (cross_entropy(p_b_BC, a_VBC) + cross_entropy(p_a_BC, b_VBC)).sum() / 2
    log_marginal_C = marginal.update(both_BC).clamp_min(LEAST).log()
    loss: Tensor = disagreement + len(a_VBC) * (both_BC * log_marginal_C).sum()
    return loss


def information(a_RC: Tensor, b_RC: Tensor) -> float:
    """Return the bound, in nats, on the logits of both views of many texts; at most the logarithm of the clusters."""
    p_a_RC, p_b_RC = (SHARPNESS * a_RC).softmax(1), (SHARPNESS * b_RC).softmax(1)
    disagreement_R = (cross_entropy(p_b_RC, a_RC[None]) + cross_entropy(p_a_RC, b_RC[None])) / 2
    return float(entropy((p_a_RC + p_b_RC).mean(0) / 2) - disagreement_R.mean())


def entropy(probability_C: Tensor) -> Tensor:
    """Return the entropy of a distribution, in nats."""
    found: Tensor = -torch.special.xlogy(probability_C, probability_C).sum()
    return found
