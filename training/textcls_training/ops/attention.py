"""The maths of the seed attention: scores, weights, and what each token adds.

Shapes: B texts, T tokens of the longest text, D width of a token's vector, S seeds, H heads, C labels. `mask_BT` is
bool, True at real tokens.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from textcls_kernels import seed_metric_attention
from textcls_kernels.metric_attention import Impl

# The smallest divisor of what is about 1.
TINY = 1e-12
# The smallest square of a norm of shares. Beside unknown tokens of score 0, known ones of -16 have shares of 1e-7 and
# squares of 1e-14: far above it. The gradient divides by the square, and 1e30 is still a number of 32 bits.
LEAST_SQUARE = 1e-30


def masked_softmax(score_BTX: Tensor, mask_BT: Tensor) -> Tensor:
    """Softmax over the real tokens (axis 1). Of an empty text it is uniform over its padding, whose values are 0."""
    return torch.softmax(score_BTX.masked_fill(~mask_BT.unsqueeze(-1), -1e30), 1)


def norm_weights(share_BTS: Tensor, energy_BT1: Tensor) -> Tensor:
    """`norm` attention: a_t = p_t / sqrt(sum_t p_t^2 q_t), with p the softmax of the scores.

    q_t (`energy_BT1`) is the squared length that token t's features would have if they were orthogonal. Evidence of
    k different tokens adds up to sqrt(k) of it, as in an L2-normalised TF-IDF vector, where the softmax alone would
    average it. So does the evidence of a token that is repeated k times: long and repetitive texts get surer answers.
    In a text without energy, where nothing is known, all weights are 0.
    """
    return share_BTS / share_norm(share_BTS, energy_BT1)


def share_norm(share_BTS: Tensor, energy_BT1: Tensor) -> Tensor:
    """Return sqrt(sum_t p_t^2 q_t) [B, 1, S], by which `norm_weights` divides; infinite for a text without energy."""
    square_B1S = (share_BTS * share_BTS * energy_BT1).sum(1, keepdim=True)
    return square_B1S.clamp_min(LEAST_SQUARE).sqrt().where(square_B1S > 0, math.inf)


def norm_shares(share_BTS: Tensor, energy_BT1: Tensor) -> Tensor:
    """r_t = p_t^2 q_t / sum_t p_t^2 q_t, each token's share of the square that `norm_weights` divides by [B, T, S].

    They sum to 1 over a text with energy, and are 0 without.
    """
    square_BTS = share_BTS * share_BTS * energy_BT1
    return square_BTS / square_BTS.sum(1, keepdim=True).clamp_min(LEAST_SQUARE)


def norm_contributions(said_BTSC: Tensor, norm_share_BTS: Tensor) -> Tensor:
    """What each token adds under `norm` attention [B, T, C]: 3/2 said_t - 1/2 r_t sum_t said_t, summed over seeds.

    A token says `said_t`, and by taking a share r_t of the norm's square it weakens what all say, L = sum_t said_t.
    Taken out, it changes the logit by said_t - r_t L / 2, up to r_t said_t / 2 + O(r_t^2 L). Twice that sums to L
    again: 2 said_t - r_t L is the Aumann-Shapley value (Aumann and Shapley 1974, chapter I) of the game in which each
    token is there with the same chance. Halfway between it and what the token says is where comprehensiveness and
    sufficiency together are best (training/README.md); the sum over tokens is L for each of the three.
    """
    sum_BSC = said_BTSC.sum(1)
    return 1.5 * said_BTSC.sum(2) - 0.5 * norm_share_BTS @ sum_BSC


def rationale_loss(share_BTS: Tensor, marked_BT: Tensor) -> Tensor:
    """Cross-entropy [B] of the attention's shares to tokens that people have marked, each of which counts alike.

    Attention supervision (Mathew et al. 2021, arXiv 2012.10289, section 4). A text without marks has no loss. Several
    seeds share the task: their mean is what is compared.
    """
    target_BT = marked_BT / marked_BT.sum(1, keepdim=True).clamp_min(1)
    return -(target_BT * share_BTS.mean(2).clamp_min(TINY).log()).sum(1)


def cosine_scores(x_BTD: Tensor, seed_SD: Tensor, scale: Tensor) -> Tensor:
    """`cosine` attention: scale * cos(x_t, seed_s). Plain dot products come out near uniform in a shallow network."""
    return scale * F.normalize(x_BTD, dim=-1, eps=1e-6) @ F.normalize(seed_SD, dim=-1).T


def kernel_features(x: Tensor) -> Tensor:
    """phi(x) = elu(x) + 1, positive (Katharopoulos et al. 2020, arXiv 2006.16236, eq. 7)."""
    return F.elu(x) + 1


def kernel_scores(x_BTD: Tensor, seed_SD: Tensor) -> Tensor:
    """`kernel` attention: log(phi(s) . phi(x_t)), whose softmax is phi(s) . phi(x_t) / sum_u phi(s) . phi(x_u).

    That is linear attention (Katharopoulos et al. 2020, arXiv 2006.16236, eq. 4) with the seeds as its queries.
    """
    return (kernel_features(x_BTD) @ kernel_features(seed_SD).T).clamp_min(TINY).log()


def fold_seed(s_SD: Tensor, forget_DD: Tensor, candidate_DD: Tensor) -> Tensor:
    """Over-parameterised static vector, v = sigmoid(W_f s) * tanh(W_c s) (SHA-RNN, arXiv 1911.11423, section 6.4)."""
    return torch.sigmoid(s_SD @ forget_DD.T) * torch.tanh(s_SD @ candidate_DD.T)


def metric_seed(s_SD: Tensor, metric_DD: Tensor) -> Tensor:
    """Metric scores s M x_t / sqrt(D) folded into one vector a seed, s M / sqrt(D), with M = (metric + metric^T) / 2.

    With M = sqrt(D) * I that is s itself, bit for bit.
    """
    return s_SD @ ((metric_DD + metric_DD.T) / (2 * math.sqrt(len(metric_DD))))


def metric_pool(
    s_SD: Tensor, x_BTD: Tensor, metric_DD: Tensor, mask_BT: Tensor, impl: Impl = "auto"
) -> tuple[Tensor, Tensor]:
    """Metric scores, their softmax, and what it sums up, in one pass of `textcls_kernels.seed_metric_attention`.

    Returns:
        The pooled vectors [B, S, D] and the shares [B, T, S]; both zero for an empty text. Real tokens come first.
    """
    pooled_BHSD, share_BHST = seed_metric_attention(
        s_SD.unsqueeze(0), x_BTD.unsqueeze(1), metric_DD.unsqueeze(0), lengths=mask_BT.sum(1), impl=impl
    )
    return pooled_BHSD.squeeze(1), share_BHST.squeeze(1).transpose(1, 2)
