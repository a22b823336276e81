"""The model, top to bottom: hashed rows -> token vectors -> one mixing layer -> seed attention -> linear head.

It has: no vocabulary, no position embedding, no batch norm, no non-linearity after the attention weights. Because the
readout is linear in the values u_t, the logits split exactly over tokens:

    logit_c = b_c + sum_t sum_s a_ts (w_sc . u_t)        what token t says for label c: the summand

What it adds is what it says; under `norm` attention also how much it weakens the others (`ops.norm_contributions`).
With `values="token"` u_t is the token's own vector and the mixing layer speaks to the scores alone: it decides how much
each token counts in its context, and a contribution belongs to that token alone. With `values="mixed"` u_t is the mixed
vector, mixing shapes scores and values, and a contribution belongs to the position.

Shapes: B texts, T tokens, R rows of a token, D width, S seeds, C labels, V rows of the table.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from textcls.errors import ConfigError
from textcls_kernels import resolve_impl
from textcls_kernels.metric_attention import Impl
from textcls_kernels.validation import MAX_SEEDS, MAX_WIDTH, MIN_WIDTH
from textcls_training import ops
from textcls_training.choices import ATTENTIONS, EMBEDDINGS, VALUES, Attention, EmbeddingKind, Values
from textcls_training.mixing import MIXERS


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """What the model is made of.

    Attributes:
        dim: width D of a token's vector.
        mixing: name of the mixing layer, see `textcls_training.mixing.MIXERS`.
        attention: how scores become weights. `norm` (`ops.norm_weights`) and `softmax` weigh scalar products s . x_t,
            or metric scores; `metric` is the softmax of metric scores; `cosine` the softmax of `ops.cosine_scores`,
            `kernel` that of `ops.kernel_scores`.
        embedding: how a token gets its vector: from `rows` of a table (`textcls_training.table`), or from the `bits` of
            its hash (`textcls_training.bits`).
        metric: whether `norm` and `softmax` weigh metric scores, see `SeedAttention`; None is decided before training
            (`textcls_training.config.resolve`), and is no until then.
        values: what the attention sums up, the token's own vector or the mixed one.
        seeds: number S of learned queries.
        dropout: share of the pooled vector's entries dropped in training.
        seed_dropout: chance that a whole seed is dropped in training; needs at least two seeds.
        gate: start of the mixing layer's gate.
    """

    dim: int = 32
    mixing: str = "none"
    attention: Attention = "norm"
    embedding: EmbeddingKind = "rows"
    metric: bool | None = None
    values: Values = "token"
    seeds: int = 1
    dropout: float = 0.0
    seed_dropout: float = 0.0
    gate: float = 0.1

    def __post_init__(self) -> None:
        if self.mixing not in MIXERS:
            raise ConfigError(f"There is no mixing {self.mixing!r}; choose one of {', '.join(MIXERS)}.")
        if self.attention not in ATTENTIONS:
            raise ConfigError(f"There is no attention {self.attention!r}; choose one of {', '.join(ATTENTIONS)}.")
        if self.embedding not in EMBEDDINGS:
            raise ConfigError(f"There is no embedding {self.embedding!r}; choose one of {', '.join(EMBEDDINGS)}.")
        if self.values not in VALUES:
            raise ConfigError(f"There are no values {self.values!r}; choose one of {', '.join(VALUES)}.")
        if not (1 <= self.dim <= 1024 and 1 <= self.seeds <= 64):
            raise ConfigError(f"dim must be 1 to 1024 and seeds 1 to 64, not {self.dim} and {self.seeds}.")
        for name, share in (("dropout", self.dropout), ("seed_dropout", self.seed_dropout)):
            if not 0 <= share < 1:
                raise ConfigError(f"{name} must be a share from 0 and below 1, not {share}.")
        if not math.isfinite(self.gate):
            raise ConfigError(f"gate must be a finite number, not {self.gate}.")
        if self.seed_dropout and self.seeds == 1:
            raise ConfigError("seed_dropout drops whole seeds, so it needs at least two of them.")

    @property
    def metric_scores(self) -> bool:
        """Whether the scores are s M x_t / sqrt(D), see `SeedAttention`."""
        return self.attention == "metric" or (bool(self.metric) and self.linear_scores)

    @property
    def linear_scores(self) -> bool:
        """Whether scores are linear in what is scored."""
        return self.attention not in ("cosine", "kernel")


class Answer(NamedTuple):
    """What the model says of a batch."""

    logits_BC: Tensor
    attention_BT: Tensor
    contributions_BTC: Tensor


class SeedAttention(nn.Module):
    """A few learned queries, the seeds, score every token; scores become the weights with which values are summed.

    Metric scores are s M x_t / sqrt(D) with a learned symmetric M: metric tensor attention (`textcls_kernels`) with
    seeds as its queries. M starts as sqrt(D) * I, where they are the scalar products s . x_t. Because a seed is alike
    for all texts, s M / sqrt(D) is one vector: folded, such a model is as any other. On a GPU one fused pass pools and
    gives the weights (`pool`). Deviation: M is not stored packed, it is the symmetric part of `metric_DD`; unpacking
    takes longer than all else here.

    Args:
        config: what the model is made of.
        impl: what pools under metric scores, see `textcls_kernels.metric_attention`; `auto` is the fused pass on a GPU.
    """

    def __init__(self, config: ModelConfig, impl: Impl = "auto") -> None:
        super().__init__()
        self.kind = config.attention
        self.impl = impl
        self.seed_SD = nn.Parameter(torch.randn(config.seeds, config.dim))
        self.forget_DD = nn.Parameter(torch.randn(config.dim, config.dim) * config.dim**-0.5)
        self.candidate_DD = nn.Parameter(torch.randn(config.dim, config.dim) * config.dim**-0.5)
        self.metric_DD = nn.Parameter(math.sqrt(config.dim) * torch.eye(config.dim)) if config.metric_scores else None
        self.scale = nn.Parameter(torch.tensor(5.0)) if self.kind == "cosine" else None
        self.folded_SD: Tensor | None
        self.register_buffer("folded_SD", None)

    def plain_seeds(self) -> Tensor:
        """Return the over-parameterised seeds [S, D] without the metric."""
        return ops.fold_seed(self.seed_SD, self.forget_DD, self.candidate_DD)

    def seeds(self) -> Tensor:
        """Return the queries [S, D], the metric folded into them; or the plain vectors that they were folded to."""
        if self.folded_SD is not None:
            return self.folded_SD
        seed_SD = self.plain_seeds()
        return seed_SD if self.metric_DD is None else ops.metric_seed(seed_SD, self.metric_DD)

    @torch.no_grad()
    def fold(self) -> None:
        """Keep of the seeds and the metric nothing but what they come to, once training is over."""
        self.folded_SD = self.seeds().clone()
        for name in ("seed_SD", "forget_DD", "candidate_DD"):
            delattr(self, name)
        self.metric_DD = None

    def scores(self, x_BTD: Tensor, added_BTS: Tensor | None = None) -> Tensor:
        """Return the score [B, T, S] of each token for each seed, and what a mixing layer adds to it."""
        if self.scale is not None:
            score_BTS = ops.cosine_scores(x_BTD, self.seeds(), self.scale)
        elif self.kind == "kernel":
            score_BTS = ops.kernel_scores(x_BTD, self.seeds())
        else:
            score_BTS = x_BTD @ self.seeds().T
        return score_BTS if added_BTS is None else score_BTS + added_BTS

    def weights(self, score_BTS: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Return each token's share of the attention, which sums to 1, and its weight, both [B, T, S]."""
        share_BTS = ops.masked_softmax(score_BTS, mask_BT)
        return share_BTS, ops.norm_weights(share_BTS, energy_BT1) if self.kind == "norm" else share_BTS

    def fuses(self, device: torch.device) -> bool:
        """Whether `pool` is one fused pass on `device` where nothing is added to the scores.

        It is for metric scores, before seeds are folded, at widths and numbers of seeds that the kernel takes, where
        `impl` means Triton; all else is plain PyTorch.
        """
        if self.metric_DD is None:
            return False
        seeds, width = self.seed_SD.shape
        within = MIN_WIDTH <= width <= MAX_WIDTH and seeds <= MAX_SEEDS
        return within and resolve_impl(device, self.impl) == "triton"

    def pool(self, x_BTD: Tensor, added_BTS: Tensor | None, energy_BT1: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the weighted sums [B, S, D] of the vectors that are scored.

        Args:
            x_BTD: keys and values.
            added_BTS: what a mixing layer adds to the scores, if anything.
            energy_BT1: as for `TextClassifier.forward`.
            mask_BT: True at real tokens, which come first.
        """
        if self.metric_DD is None or added_BTS is not None or not self.fuses(x_BTD.device):
            _, weight_BTS = self.weights(self.scores(x_BTD, added_BTS), energy_BT1, mask_BT)
            return weight_BTS.transpose(1, 2) @ x_BTD
        pooled_BSD, share_BTS = ops.metric_pool(self.plain_seeds(), x_BTD, self.metric_DD, mask_BT, self.impl)
        norm = self.kind == "norm"
        return pooled_BSD / ops.share_norm(share_BTS, energy_BT1).transpose(1, 2) if norm else pooled_BSD


class MixingLayer(nn.Module):
    """gate * mixer(norm(x)). The gate tells how much mixing the model has learned to use.

    The norm has no bias, so padding, which is zero, stays zero. No gradient goes back into the token vectors: they
    are small when training begins, and the norm would blow their gradients up.
    """

    def __init__(self, dim: int, out: int, mixer: nn.Module, gate: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, bias=False)
        self.mixer = mixer
        self.gate_X = nn.Parameter(torch.full((out,), gate))

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        mixed_BTX: Tensor = self.gate_X * self.mixer(self.norm(x_BTD.detach()), mask_BT)
        return mixed_BTX


class TextClassifier(nn.Module):
    """One view: from token vectors to logits and what each token added to them."""

    def __init__(self, config: ModelConfig, labels: int) -> None:
        super().__init__()
        self.config = config
        self.mixing = _mixing_layer(config)
        self.attention = SeedAttention(config)
        self.head = nn.Linear(config.seeds * config.dim, labels)
        nn.init.zeros_(self.head.bias)

    def mix(self, x_BTD: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the values [B, T, D], and what the mixing layer adds to the scores [B, T, S], if anything."""
        if self.mixing is None:
            return x_BTD, None
        mixed_BTX = self.mixing(x_BTD, mask_BT)
        if self.config.values == "mixed":
            return x_BTD + mixed_BTX * mask_BT.unsqueeze(-1), None
        return x_BTD, mixed_BTX

    def attend(self, x_BTD: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the attention's shares and weights, both [B, T, S], and the values [B, T, D]."""
        value_BTD, added_BTS = self.mix(x_BTD, mask_BT)
        score_BTS = self.attention.scores(value_BTD, added_BTS)
        return *self.attention.weights(score_BTS, energy_BT1, mask_BT), value_BTD

    def forward(self, x_BTD: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the logits [B, C]; the way of training.

        Args:
            x_BTD: token vectors, zero at padding.
            energy_BT1: q_t of `ops.norm_weights`, the sum of the squared weights of the token's rows.
            mask_BT: True at real tokens, which come first.
        """
        pooled_BSD = self.attention.pool(*self.mix(x_BTD, mask_BT), energy_BT1, mask_BT)
        if self.config.seed_dropout:
            pooled_BSD = F.dropout1d(pooled_BSD, self.config.seed_dropout, self.training)
        pooled_BSD = F.dropout(pooled_BSD, self.config.dropout, self.training)
        logits_BC: Tensor = self.head(pooled_BSD.flatten(1))
        return logits_BC

    def explain(self, x_BTD: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> Answer:
        """Return logits, attention and contributions; the way of the saved model. Arguments as for `forward`."""
        share_BTS, weight_BTS, value_BTD = self.attend(x_BTD, energy_BT1, mask_BT)
        # The head is linear: applied to each token's values before they are summed, it gives the split.
        said_BTSC = weight_BTS.unsqueeze(-1) * self._said(value_BTD)
        logits_BC = self.head.bias + said_BTSC.sum((1, 2))
        if self.attention.kind == "norm":
            contributions_BTC = ops.norm_contributions(said_BTSC, ops.norm_shares(share_BTS, energy_BT1))
        else:
            contributions_BTC = said_BTSC.sum(2)
        return Answer(logits_BC, share_BTS.mean(2).where(mask_BT, 0.0), contributions_BTC)

    @property
    def foldable(self) -> bool:
        """Whether scores and values are linear in the token vectors, and not much wider: see `fold`."""
        linear = self.mixing is None and self.config.linear_scores
        return linear and self.config.seeds * (self.head.out_features + 1) <= 2 * self.config.dim

    def fold(self, table_VD: Tensor) -> Tensor:
        """Return what each row of a table says itself, to each seed [V, S, C + 1]: a value for each label, and a score.

        Where `foldable`, a sum of such rows is all that a saved model needs of a token.
        """
        return torch.cat([self._said(table_VD), self.attention.scores(table_VD).unsqueeze(2)], 2)

    def _said(self, value_XD: Tensor) -> Tensor:
        """The head of each seed on values [..., D]: [..., S, C]."""
        weight_SDC = self.head.weight.T.view(self.config.seeds, self.config.dim, -1)
        return torch.stack([value_XD @ weight_DC for weight_DC in weight_SDC.unbind(0)], -2)


def _mixing_layer(config: ModelConfig) -> MixingLayer | None:
    make_mixer = MIXERS[config.mixing]
    out = config.dim if config.values == "mixed" else config.seeds
    return MixingLayer(config.dim, out, make_mixer(config.dim, out), config.gate) if make_mixer else None
