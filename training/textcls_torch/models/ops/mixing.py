"""The maths of the mixing layers as pure functions of tensors.

What they return at padding is ignored. Shapes: B texts, T tokens of the longest text, U the same tokens as those that
are looked at, D width of a token's vector, K depth of queries and keys and width of a head, V width of values, W
offsets of a local window, F channels of a gate, H heads, N tokens that a learned matrix mixes, M its hidden width,
L = K(K + 1)/2 packed numbers of a metric. `mask_BT` is bool, True at real tokens, which come first.
"""

import math
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from textcls_kernels import metric_attention
from textcls_kernels.impl import Impl
from textcls_torch.models.ops.attention import kernel_features, masked_softmax
from textcls_training.models.constants import TINY

# In training, a Toeplitz gate is a matrix product for texts of up to this many tokens.
MATRIX_TOKENS: Final = 256


def average_pool(x_BTD: Tensor, mask_BT: Tensor, size: int) -> Tensor:
    """y_t = mean of the real tokens in a window of `size` around t, minus x_t (PoolFormer, arXiv 2111.11418, eq. 4).

    Tokens beyond the ends of the text do not count. `x_BTD` must be zero at padding. O(T W D).
    """
    sum_BTD = F.avg_pool1d(x_BTD.transpose(1, 2), size, 1, size // 2).transpose(1, 2)
    real_B1T = F.avg_pool1d(mask_BT.to(x_BTD.dtype).unsqueeze(1), size, 1, size // 2)
    return sum_BTD / real_B1T.transpose(1, 2).clamp_min(TINY) - x_BTD


def cosines_sines(size: int) -> tuple[Tensor, Tensor]:
    """Real part and negated imaginary part of the DFT matrix [size, size] in float64."""
    place = torch.arange(size)
    angle = 2 * math.pi / size * (place.unsqueeze(1) * place % size).double()
    return angle.cos(), angle.sin()


def fourier_mix(x_BTD: Tensor, mask_BT: Tensor, cosine_DD: Tensor, sine_DD: Tensor) -> Tensor:
    """Mix by Re(F_T x F_D) / sqrt(T D), each text with its own length T (FNet, arXiv 2105.03824, eq. 3).

    Re((A - iB) x (C - iE)) = A x C - B x E with cosines A, C and sines B, E. `x_BTD` must be zero at padding.

    Deviations: orthonormal, as no layer norm follows that would take the scale away; by explicit matrices, as one FFT
    would have one length for the whole batch: O(T^2 D) time and T^2 memory per text, whereas an FFT is O(T log T D).
    """
    length_B11 = mask_BT.sum(1).clamp_min(1).view(-1, 1, 1)
    place_T = torch.arange(x_BTD.shape[1], device=x_BTD.device)
    # The product is reduced in integers: its angle would lose digits in a long text.
    angle_BTU = (place_T.unsqueeze(1) * place_T % length_B11).to(x_BTD.dtype) * (2 * math.pi) / length_B11
    y_BTD = angle_BTU.cos() @ (x_BTD @ cosine_DD) - angle_BTU.sin() @ (x_BTD @ sine_DD)
    return y_BTD / (length_B11 * x_BTD.shape[-1]).to(x_BTD.dtype).sqrt()


def cut_or_pad(x_BTD: Tensor, tokens: int) -> Tensor:
    """Cut to `tokens` tokens, or pad with zeros to as many [B, N, D]."""
    return F.pad(x_BTD, (0, 0, 0, tokens))[:, :tokens]


def token_mlp(
    x_BTD: Tensor, enter_MN: Tensor, enter_M: Tensor, leave_NM: Tensor, leave_N: Tensor, mask_BT: Tensor
) -> Tensor:
    """Mix by W_2 gelu(W_1 x + b_1) + b_2 over tokens, the same for each channel (MLP-Mixer, arXiv 2105.01601, eq. 1).

    A learned matrix has one length: the first N tokens are mixed, and the result is zero beyond them. O(N M D).
    """
    x_BND = cut_or_pad(x_BTD * mask_BT.unsqueeze(-1), enter_MN.shape[1])
    hidden_BMD = F.gelu(enter_MN @ x_BND + enter_M.unsqueeze(1))
    y_BND = leave_NM @ hidden_BMD + leave_N.unsqueeze(1)
    return cut_or_pad(y_BND, x_BTD.shape[1])


def linear_attention(q_BTK: Tensor, k_BTK: Tensor, v_BTV: Tensor, mask_BT: Tensor) -> Tensor:
    """y_t = phi(q_t)^T sum_u phi(k_u) v_u^T / phi(q_t)^T sum_u phi(k_u) (arXiv 2006.16236, eq. 5). O(T K V)."""
    k_BTK = kernel_features(k_BTK) * mask_BT.unsqueeze(-1)
    q_BTK = kernel_features(q_BTK)
    norm_BT1 = q_BTK @ k_BTK.sum(1).unsqueeze(-1)
    return q_BTK @ (k_BTK.transpose(1, 2) @ v_BTV) / norm_BT1.clamp_min(TINY)


def dot_product_attention(q_BTK: Tensor, k_BUK: Tensor, v_BUV: Tensor, mask_BU: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(K)) V with one head (Vaswani et al. 2017, arXiv 1706.03762, eq. 1).

    O(T^2 K) time, T^2 numbers per text. For an empty text it is zero.
    """
    score_BTU = q_BTK @ k_BUK.transpose(1, 2) / math.sqrt(q_BTK.shape[-1])
    probability_BTU = torch.softmax(score_BTU.masked_fill(~mask_BU.unsqueeze(1), -1e30), -1)
    return probability_BTU @ (v_BUV * mask_BU.unsqueeze(-1))


def metric_mix(p_BTHK: Tensor, metric_HL: Tensor, mask_BT: Tensor, impl: Impl = "auto") -> Tensor:
    """Metric tensor attention of `textcls_kernels` for heads side by side, [B, T, H, K].

    Zero at padding, whose values are not read. Real tokens come first.
    """
    t_BHTK = metric_attention(p_BTHK.transpose(1, 2), metric_HL, lengths=mask_BT.sum(1), impl=impl)
    return t_BHTK.transpose(1, 2)


def kernel_probabilities(k_BTK: Tensor, mask_BT: Tensor) -> Tensor:
    """phi(k_t) / sum_u phi(k_u) over the real tokens, in place of a softmax over them [B, T, K]."""
    k_BTK = kernel_features(k_BTK) * mask_BT.unsqueeze(-1)
    return k_BTK / k_BTK.sum(1, keepdim=True).clamp_min(TINY)


def lambda_mix(
    q_BTK: Tensor,
    k_BTK: Tensor,
    v_BTV: Tensor,
    mask_BT: Tensor,
    position_KW: Tensor | None,
    kernel: bool = False,
) -> Tensor:
    """Lambda layer with one head (LambdaNetworks, arXiv 2102.08602, section 2 and eq. 1).

    content lambda    l^c   = softmax_t(K)^T V      [K, V], for the whole text; with `kernel` by `kernel_probabilities`
    position lambda   l^p_t = sum_w r_w v_{t+w}^T   [K, V], of a window around each token (r: `position_KW`)
    output            y_t   = (l^c + l^p_t)^T q_t   [V]

    `v_BTV` must be zero at padding. Deviation: positions beyond the window have no embedding, so that a text may have
    any length (the paper's local lambda, a convolution over v); batch norm is left out. O(T W K V) time.
    """
    probability_BTK = kernel_probabilities(k_BTK, mask_BT) if kernel else masked_softmax(k_BTK, mask_BT)
    lambda_BKV = probability_BTK.transpose(1, 2) @ v_BTV
    if position_KW is None:
        return q_BTK @ lambda_BKV
    window = position_KW.shape[1]
    v_BVT = v_BTV.transpose(1, 2)
    near_BVKT = F.conv1d(v_BVT.flatten(0, 1).unsqueeze(1), position_KW.unsqueeze(1), padding=window // 2)
    near_BTKV = near_BVKT.view(*v_BVT.shape[:2], *near_BVKT.shape[1:]).permute(0, 3, 2, 1)
    return (q_BTK.unsqueeze(2) @ (lambda_BKV.unsqueeze(1) + near_BTKV)).squeeze(2)


def spatial_gate(z_BTF: Tensor, filter_W: Tensor, bias: Tensor, mask_BT: Tensor) -> Tensor:
    """f(Z) = W Z + b over tokens with a Toeplitz W (gMLP, arXiv 2105.08050, eq. 2; W[t, u] = filter[u - t]).

    Deviation: W is Toeplitz and banded, so that it serves any length; the paper finds that it learns such matrices.
    """
    z_BTF = z_BTF * mask_BT.unsqueeze(-1)
    # In training a product with W itself is several times faster on a CPU, if texts are not much longer than the band;
    # a saved model, which must accept any length, convolves.
    if z_BTF.shape[1] > MATRIX_TOKENS:
        return _convolved(z_BTF, filter_W) + bias
    return toeplitz(filter_W, z_BTF.shape[1]) @ z_BTF + bias


def toeplitz(filter_W: Tensor, tokens: int) -> Tensor:
    """Return the banded matrix [tokens, tokens] whose entry [t, u] is filter[u - t], zero beyond the filter."""
    reach = filter_W.shape[0] // 2
    place_T = torch.arange(tokens, device=filter_W.device)
    offset_TT = place_T.unsqueeze(0) - place_T.unsqueeze(1) + reach
    inside_TT = (offset_TT >= 0) & (offset_TT < filter_W.shape[0])
    return filter_W[offset_TT.clamp(0, filter_W.shape[0] - 1)].where(inside_TT, 0.0)


def _convolved(z_BTF: Tensor, filter_W: Tensor) -> Tensor:
    z_BFT = z_BTF.transpose(1, 2)
    mixed_B1T = F.conv1d(z_BFT.flatten(0, 1).unsqueeze(1), filter_W.view(1, 1, -1), padding=filter_W.shape[0] // 2)
    return mixed_B1T.view_as(z_BFT).transpose(1, 2)


def full_spatial_gate(z_BTF: Tensor, weight_NN: Tensor, bias_N: Tensor, mask_BT: Tensor) -> Tensor:
    """f(Z) = W Z + b over the first N tokens with a full W, as in the paper (gMLP, arXiv 2105.08050, eq. 2).

    Beyond them nothing is mixed: f is 1, as it is everywhere when training begins. O(N^2 F).
    """
    z_BNF = cut_or_pad(z_BTF * mask_BT.unsqueeze(-1), len(weight_NN))
    moved_BNF = weight_NN @ z_BNF + (bias_N - 1).unsqueeze(1)
    return cut_or_pad(moved_BNF, z_BTF.shape[1]) + 1


def boom(x_BTD: Tensor, enter_XD: Tensor, enter_X: Tensor) -> Tensor:
    """Boom layer (SHA-RNN, arXiv 1911.11423): gelu(W v + b) of width N D, cut into N parts of width D that are summed.

    No matrix projects back.
    """
    u_BTX = F.gelu(F.linear(x_BTD, enter_XD, enter_X))
    return u_BTX.view(*x_BTD.shape[:-1], -1, x_BTD.shape[-1]).sum(-2)
