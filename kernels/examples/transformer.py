"""A small causal transformer whose attention is metric or scaled dot product; all else is the same.

    x = token + position;   x += attention(norm(x));   x += W2 gelu(W1 norm(x));   scores = W norm(x)

Letters: B sequences, N positions, D width of the model, H heads, K width of a head, L = K(K + 1)/2 packed numbers of a
metric, F width of the feed-forward layer, V tokens.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

from textcls_kernels import metric_attention, pack_metric, unpack_metric

Attention = Literal["dot", "metric", "semidefinite"]
IGNORED = -100  # a target that does not count


@dataclass(frozen=True)
class Shape:
    """What a model is made of.

    Args:
        tokens: V.
        positions: N, the longest sequence.
        width: D.
        heads: H.
        head_width: K, 8 to 128.
        hidden: F.
        blocks: how many blocks follow each other.
        attention: "dot", "metric", or "semidefinite", whose metric is L L^T: a scalar product.
    """

    tokens: int
    positions: int
    width: int
    heads: int
    head_width: int
    hidden: int
    blocks: int
    attention: Attention


class DotAttention(nn.Module):
    """Scaled dot product: three projections in, one out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = 3, shape.heads, shape.head_width
        flat = shape.heads * shape.head_width
        self.enter = nn.Linear(shape.width, 3 * flat, bias=False)
        self.leave = nn.Linear(flat, shape.width, bias=False)

    def forward(self, x_BND: Tensor) -> Tensor:
        """Return [B, N, D]."""
        q_BHNK, k_BHNK, v_BHNK = self.enter(x_BND).unflatten(-1, self.heads).permute(2, 0, 3, 1, 4)
        t_BHNK = scaled_dot_product_attention(q_BHNK, k_BHNK, v_BHNK, is_causal=True)
        y_BND: Tensor = self.leave(t_BHNK.transpose(1, 2).flatten(2))
        return y_BND


class MetricAttention(nn.Module):
    """Metric tensor attention: one projection in, one metric a head, one projection out.

    A metric starts with 1 and -1 in turn on its diagonal: half of the directions bring like to like, half keep them
    apart. From the identity, which is where L L^T starts, a position sees itself most, and learning is slower.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads, shape.head_width
        self.semidefinite = shape.attention == "semidefinite"
        flat = shape.heads * shape.head_width
        self.enter = nn.Linear(shape.width, flat, bias=False)
        start_K = torch.ones(shape.head_width)
        start_K[1::2] = 1 if self.semidefinite else -1
        self.metric_HL = nn.Parameter(pack_metric(start_K.diag().repeat(shape.heads, 1, 1)))
        self.leave = nn.Linear(flat, shape.width, bias=False)

    def project(self, x_BND: Tensor) -> Tensor:
        """Return p [B, H, N, K]."""
        p_BHNK: Tensor = self.enter(x_BND).unflatten(-1, self.heads).transpose(1, 2)
        return p_BHNK

    def metric(self) -> Tensor:
        """Return the full metric of each head, [H, K, K]."""
        full_HKK = unpack_metric(self.metric_HL)
        return full_HKK.tril() @ full_HKK.tril().mT if self.semidefinite else full_HKK

    def forward(self, x_BND: Tensor) -> Tensor:
        """Return [B, N, D]."""
        t_BHNK = metric_attention(self.project(x_BND), self.metric_HL, semidefinite=self.semidefinite, causal=True)
        y_BND: Tensor = self.leave(t_BHNK.transpose(1, 2).flatten(2))
        return y_BND


class Block(nn.Module):
    """Attention, then a feed-forward layer, both added to what came in."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm, self.norm_2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = DotAttention(shape) if shape.attention == "dot" else MetricAttention(shape)
        self.widen, self.narrow = nn.Linear(shape.width, shape.hidden), nn.Linear(shape.hidden, shape.width)

    def forward(self, x_BND: Tensor) -> Tensor:
        """Return [B, N, D]."""
        x_BND = x_BND + self.attention(self.norm(x_BND))
        y_BND: Tensor = x_BND + self.narrow(gelu(self.widen(self.norm_2(x_BND))))
        return y_BND


class Transformer(nn.Module):
    """Scores of the next token at each position."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.token = nn.Embedding(shape.tokens, shape.width)
        self.position = nn.Embedding(shape.positions, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.blocks))
        self.norm = nn.LayerNorm(shape.width)
        self.answer = nn.Linear(shape.width, shape.tokens, bias=False)
        for embedding in (self.token, self.position):
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, token_BN: Tensor) -> Tensor:
        """Return scores [B, N, V] of int64 tokens [B, N]."""
        x_BND = self.token(token_BN) + self.position.weight[: token_BN.shape[1]]
        for block in self.blocks:
            x_BND = block(x_BND)
        scores_BNV: Tensor = self.answer(self.norm(x_BND))
        return scores_BNV

    def loss(self, token_BN: Tensor, target_BN: Tensor) -> Tensor:
        """Return the mean cross entropy in nats of the targets that are not `IGNORED`."""
        return cross_entropy(self(token_BN).flatten(0, 1), target_BN.flatten(), ignore_index=IGNORED)


def make(shape: Shape, seed: int) -> Transformer:
    """Return a model whose first weights `seed` alone decides; PyTorch's own generator stays where it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(shape)


def train(
    model: Transformer,
    batch: Callable[[], tuple[Tensor, Tensor]],
    steps: int,
    rate: float,
    after: Callable[[int], None] = lambda step: None,
) -> None:
    """Train with AdamW; the rate rises to `rate` over the first tenth of the steps, then falls to 0 as a cosine.

    Args:
        model: what is trained, in place.
        batch: gives tokens and targets, int64 [B, N].
        steps: how many batches, at least 1.
        rate: the highest learning rate.
        after: is told each step that is done, from 1.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.99))
    rising = max(1, steps // 10)
    for step in range(1, steps + 1):
        share = (step - rising) / max(1, steps - rising)
        now = rate * (step / rising if step < rising else (1 + math.cos(math.pi * share)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = now
        optimizer.zero_grad()
        model.loss(*batch()).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        after(step)


# What a model costs


def weights(shape: Shape) -> int:
    """Return the number of weights of the whole model."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Transformer(shape).parameters())


def attention_weights(shape: Shape) -> int:
    """Return the number of weights of the attention of one block."""
    width, heads, head_width = shape.width, shape.heads, shape.head_width
    if shape.attention == "dot":
        return 4 * width * heads * head_width
    return 2 * width * heads * head_width + heads * head_width * (head_width + 1) // 2


def attention_products(shape: Shape) -> int:
    """Return the multiplications a token of the attention of one block without those of pairs, 2 H K a pair in both."""
    width, heads, head_width = shape.width, shape.heads, shape.head_width
    if shape.attention == "dot":
        return 4 * width * heads * head_width
    return 2 * width * heads * head_width + heads * head_width**2


def cache(shape: Shape) -> int:
    """Return the numbers that a block keeps of a token while text is generated: keys and values, or p for both."""
    return (2 if shape.attention == "dot" else 1) * shape.heads * shape.head_width


def as_heavy_as(shape: Shape, other: Shape) -> Shape:
    """Return `shape` with the feed-forward width at which it has as many weights as `other`, to the nearest unit."""
    unit = shape.blocks * (2 * shape.width + 1)
    return replace(shape, hidden=shape.hidden + round((weights(other) - weights(shape)) / unit))
