"""The maths of the seed attention: scores, probabilities, weights, and the attribution of each token.

Shapes: B texts, T tokens of the longest text, D width of a token's vector, S seeds, H heads, C labels. `mask_BT` is
bool, True at real tokens.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from textcls_kernels import seed_metric_attention
from textcls_kernels.impl import Impl
from textcls_training.models.constants import LEAST_SQUARE, TINY


def masked_softmax(score_BTX: Tensor, mask_BT: Tensor) -> Tensor:
    """Softmax over the real tokens (axis 1); for an empty text it is uniform over its padding, whose values are 0."""
    return torch.softmax(score_BTX.masked_fill(~mask_BT.unsqueeze(-1), -1e30), 1)


def norm_weights(probability_BTS: Tensor, squared_norm_BT1: Tensor) -> Tensor:
    """`norm` attention: a_t = p_t / sqrt(sum_t p_t^2 q_t), with p the attention probabilities.

    q_t (`squared_norm_BT1`) is the squared feature norm of token t: the squared length that the sum of its weighted
    features would have if they were orthogonal. Evidence of k different tokens adds up to sqrt(k) of it, as in an
    L2-normalised TF-IDF vector, where the softmax alone would average it. So does the evidence of a token that is
    repeated k times: long and repetitive texts get more confident answers. In a text whose norms are all zero, with
    every token out of vocabulary, all weights are 0.
    """
    return probability_BTS / pooled_norm(probability_BTS, squared_norm_BT1)


def pooled_norm(probability_BTS: Tensor, squared_norm_BT1: Tensor) -> Tensor:
    """Return sqrt(sum_t p_t^2 q_t) [B, 1, S], by which `norm_weights` divides; infinite where it would be zero."""
    square_B1S = (probability_BTS * probability_BTS * squared_norm_BT1).sum(1, keepdim=True)
    return square_B1S.clamp_min(LEAST_SQUARE).sqrt().where(square_B1S > 0, math.inf)


def norm_fractions(probability_BTS: Tensor, squared_norm_BT1: Tensor) -> Tensor:
    """r_t = p_t^2 q_t / sum_t p_t^2 q_t, each token's fraction of the squared pooled norm [B, T, S].

    They sum to 1 over a text, and are all 0 if that norm is.
    """
    square_BTS = probability_BTS * probability_BTS * squared_norm_BT1
    return square_BTS / square_BTS.sum(1, keepdim=True).clamp_min(LEAST_SQUARE)


def norm_attributions(token_logit_BTSC: Tensor, fraction_BTS: Tensor) -> Tensor:
    """Attributions under `norm` attention [B, T, C]: 3/2 l_t - 1/2 r_t sum_t l_t, summed over seeds.

    A token brings its per-token logit l_t, and by its fraction r_t of the squared norm it weakens those of all,
    L = sum_t l_t. Taken out, it changes the logit by l_t - r_t L / 2, up to r_t l_t / 2 + O(r_t^2 L). Twice that sums
    to L again: 2 l_t - r_t L is the Aumann-Shapley value (Aumann and Shapley 1974, chapter I) of the game in which each
    token is present with the same probability. Halfway between it and the per-token logit is where comprehensiveness
    and sufficiency together are best (training/README.md); the sum over tokens is L for each of the three.

    Args:
        token_logit_BTSC: per-token logits l_t, the weighted values of each seed.
        fraction_BTS: r_t, see `norm_fractions`.
    """
    sum_BSC = token_logit_BTSC.sum(1)
    return 1.5 * token_logit_BTSC.sum(2) - 0.5 * fraction_BTS @ sum_BSC


def rationale_loss(probability_BTS: Tensor, rationale_BT: Tensor) -> Tensor:
    """Cross-entropy [B] of attention probabilities to the tokens of human rationales, all of which count the same.

    Attention supervision (Mathew et al. 2021, arXiv 2012.10289, section 4). A text without a rationale has no loss.
    Several seeds share the task: their mean is compared.

    Args:
        probability_BTS: attention probabilities.
        rationale_BT: True at tokens of the rationale.
    """
    target_BT = rationale_BT / rationale_BT.sum(1, keepdim=True).clamp_min(1)
    return -(target_BT * probability_BTS.mean(2).clamp_min(TINY).log()).sum(1)


def cosine_scores(x_BTD: Tensor, seed_SD: Tensor, scale: Tensor) -> Tensor:
    """`cosine` attention: scale * cos(x_t, seed_s); plain dot products are near uniform in a shallow network."""
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
    """Metric scores s M x_t / sqrt(D) folded into one vector per seed, s M / sqrt(D), M = (metric + metric^T) / 2.

    With M = sqrt(D) * I that is s itself, bit for bit.
    """
    return s_SD @ ((metric_DD + metric_DD.T) / (2 * math.sqrt(len(metric_DD))))


def metric_pool(
    s_SD: Tensor, x_BTD: Tensor, metric_DD: Tensor, mask_BT: Tensor, impl: Impl = "auto"
) -> tuple[Tensor, Tensor]:
    """Metric scores, their softmax, and the sums by it, in one pass of `textcls_kernels.seed_metric_attention`.

    Returns:
        The pooled vectors [B, S, D] and the attention probabilities [B, T, S]; both zero for an empty text. Real
        tokens come first.
    """
    pooled_BHSD, probability_BHST = seed_metric_attention(
        s_SD.unsqueeze(0), x_BTD.unsqueeze(1), metric_DD.unsqueeze(0), lengths=mask_BT.sum(1), impl=impl
    )
    return pooled_BHSD.squeeze(1), probability_BHST.squeeze(1).transpose(1, 2)
