"""The model, top to bottom: hashed rows -> token vectors -> one mixing layer -> seed attention -> linear head.

It has: no vocabulary, no position embedding, no batch norm, no non-linearity after the attention weights. Because the
readout is linear in the values u_t, the logits split exactly over tokens:

    logit_c = b_c + sum_t sum_s a_ts (w_sc . u_t)        the summand: the per-token logit of token t for label c

The attribution of a token is its per-token logit; under `norm` attention also how much it weakens the others
(`ops.norm_attributions`). With `values="token"` u_t is the token's own vector and the mixing layer only changes the
scores: it decides how much each token counts in its context, and an attribution belongs to that token alone. With
`values="mixed"` u_t is the mixed vector, mixing shapes scores and values, and an attribution belongs to the position.

Shapes: B texts, T tokens of the longest text, D width of a token's vector, S seeds, C labels, V rows of the embedding
table, X columns of the mixing layer's result: D if values are mixed, else S. `mask_BT` is True at real tokens, which
come first.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from textcls_kernels import resolve_impl
from textcls_kernels.attention.validation import MAX_SEEDS, MAX_WIDTH, MIN_WIDTH
from textcls_kernels.impl import Impl
from textcls_torch.models.initial_weights import init_weights
from textcls_torch.models.layers import Linear
from textcls_torch.models.mixing import MIXERS
from textcls_torch.models.ops import attention as ops
from textcls_training.config.settings import ModelConfig
from textcls_training.data.arrays import Float32
from textcls_training.models.linear_classifier import LinearClassifier, foldable


class ViewOutputs(NamedTuple):
    """Logits, attention and attributions of a batch by one view."""

    logits_BC: Tensor
    attention_BT: Tensor
    attribution_BTC: Tensor


class SeedAttention(nn.Module):
    """A few learned queries, the seeds, score every token; scores become the weights with which values are summed.

    Metric scores are s M x_t / sqrt(D) with a learned symmetric M: metric tensor attention (`textcls_kernels`) with
    seeds as its queries. M starts as sqrt(D) * I, where they are the scalar products s . x_t. Because a seed is the
    same for all texts, s M / sqrt(D) is one vector: folded, such a model is like any other. On a GPU one fused pass
    pools and returns the weights (`pool`). Deviation: M is not stored packed, it is the symmetric part of `metric_DD`;
    unpacking takes longer than everything else here.

    Args:
        config: the configuration of the model.
        impl: what pools with metric scores, see `textcls_kernels.metric_attention`; `auto` is the fused pass on a GPU.
        plain: whether the seeds themselves are learned, without over-parameterisation.
    """

    def __init__(self, config: ModelConfig, impl: Impl = "auto", *, plain: bool = False) -> None:
        super().__init__()
        self.kind = config.attention
        self.impl = impl
        self.plain_SD = nn.Parameter(torch.empty(config.seeds, config.dim)) if plain else None
        if not plain:
            self.seed_SD = nn.Parameter(torch.empty(config.seeds, config.dim))
            self.forget_DD = nn.Parameter(torch.empty(config.dim, config.dim))
            self.candidate_DD = nn.Parameter(torch.empty(config.dim, config.dim))
        self.metric_DD = nn.Parameter(torch.empty(config.dim, config.dim)) if config.metric_scores else None
        self.scale = nn.Parameter(torch.empty(())) if self.kind == "cosine" else None
        self.folded_SD: Tensor | None
        self.register_buffer("folded_SD", None)

    def plain_seeds(self) -> Tensor:
        """Return the seeds [S, D] without the metric; most kinds of seeds are over-parameterised."""
        if self.plain_SD is not None:
            return self.plain_SD
        return ops.fold_seed(self.seed_SD, self.forget_DD, self.candidate_DD)

    def seeds(self) -> Tensor:
        """Return the queries [S, D], with the metric folded in; or the plain vectors that they were folded into."""
        if self.folded_SD is not None:
            return self.folded_SD
        seed_SD = self.plain_seeds()
        return seed_SD if self.metric_DD is None else ops.metric_seed(seed_SD, self.metric_DD)

    @torch.no_grad()
    def fold(self) -> None:
        """Replace the seeds and the metric by the vectors that result from them, once training is over."""
        self.folded_SD = self.seeds().clone()
        if self.plain_SD is None:
            for name in ("seed_SD", "forget_DD", "candidate_DD"):
                delattr(self, name)
        self.metric_DD = self.plain_SD = None

    def scores(self, x_BTD: Tensor, added_BTS: Tensor | None = None) -> Tensor:
        """Return the score [B, T, S] of each token for each seed, including what a mixing layer adds to it."""
        if self.scale is not None:
            score_BTS = ops.cosine_scores(x_BTD, self.seeds(), self.scale)
        elif self.kind == "kernel":
            score_BTS = ops.kernel_scores(x_BTD, self.seeds())
        else:
            score_BTS = x_BTD @ self.seeds().T
        return score_BTS if added_BTS is None else score_BTS + added_BTS

    def weights(self, score_BTS: Tensor, squared_norm_BT1: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Return each token's attention probability, and its weight in the sum of values, both [B, T, S]."""
        probability_BTS = ops.masked_softmax(score_BTS, mask_BT)
        return probability_BTS, ops.norm_weights(
            probability_BTS, squared_norm_BT1
        ) if self.kind == "norm" else probability_BTS

    def fuses(self, device: torch.device) -> bool:
        """Whether `pool` is one fused pass on `device` if nothing is added to the scores.

        It is for metric scores, before seeds are folded, at widths and numbers of seeds supported by the kernel, if
        `impl` means Triton; everything else is plain PyTorch.
        """
        if self.metric_DD is None:
            return False
        seeds, width = (self.seed_SD if self.plain_SD is None else self.plain_SD).shape
        within = MIN_WIDTH <= width <= MAX_WIDTH and seeds <= MAX_SEEDS
        return within and resolve_impl(device, self.impl) == "triton"

    def pool(self, x_BTD: Tensor, added_BTS: Tensor | None, squared_norm_BT1: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the weighted sums [B, S, D] of the vectors that are scored.

        Args:
            x_BTD: keys and values.
            added_BTS: what a mixing layer adds to the scores, if anything.
            squared_norm_BT1: as for `ViewClassifier.forward`.
            mask_BT: True at real tokens, which come first.
        """
        if self.metric_DD is None or added_BTS is not None or not self.fuses(x_BTD.device):
            _, weight_BTS = self.weights(self.scores(x_BTD, added_BTS), squared_norm_BT1, mask_BT)
            return weight_BTS.transpose(1, 2) @ x_BTD
        pooled_BSD, probability_BTS = ops.metric_pool(self.plain_seeds(), x_BTD, self.metric_DD, mask_BT, self.impl)
        norm = self.kind == "norm"
        return pooled_BSD / ops.pooled_norm(probability_BTS, squared_norm_BT1).transpose(1, 2) if norm else pooled_BSD


class MixingLayer(nn.Module):
    """gate * mixer(norm(x)); the gate shows how much mixing the model has learned to use.

    The norm has no bias, so padding, which is zero, stays zero. No gradient goes back into the token vectors:
    they are small when training begins, and the norm would blow up their gradients.

    Attributes:
        start: the initial value of the gate.
        in_bfloat16: whether its products are in that type during training, as PyTorch's autocast chooses.
    """

    in_bfloat16 = False

    def __init__(self, dim: int, out: int, mixer: nn.Module, gate: float) -> None:
        super().__init__()
        self.start = gate
        self.norm = nn.LayerNorm(dim, bias=False)
        self.mixer = mixer
        self.gate_X = nn.Parameter(torch.empty(out))

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        with self._precision(x_BTD.device):
            mixed_BTX = self.mixer(self.norm(x_BTD.detach()), mask_BT)
        gated_BTX: Tensor = self.gate_X * mixed_BTX
        return gated_BTX

    def _precision(self, device: torch.device) -> AbstractContextManager[object]:
        if not (self.in_bfloat16 and self.training):
            return nullcontext()
        # Without a cache of weights, which in a CUDA graph would keep those of one step.
        return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


class ViewClassifier(nn.Module):
    """One view of a text: from token vectors to logits and what each token added to them.

    Args:
        config: its configuration.
        labels: the number of labels.
        even_attention: whether seeds, which are then plain, begin at zero: equal weights for all tokens.
        from_zero: whether the head also begins at zero: all tokens equal, and without effect. That suits vectors that
            are large when training begins, like those of a file.
    """

    def __init__(
        self, config: ModelConfig, labels: int, *, even_attention: bool = False, from_zero: bool = False
    ) -> None:
        super().__init__()
        self.config = config
        self.mixing = _mixing_layer(config)
        self.attention = SeedAttention(config, plain=even_attention or from_zero)
        self.head = Linear(config.seeds * config.dim, labels)
        init_weights(self)
        if from_zero:
            nn.init.zeros_(self.head.weight)

    def mix(self, x_BTD: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the values [B, T, D], and what the mixing layer adds to the scores [B, T, S], if anything."""
        if self.mixing is None:
            return x_BTD, None
        mixed_BTX = self.mixing(x_BTD, mask_BT)
        if self.config.values == "mixed":
            return x_BTD + mixed_BTX * mask_BT.unsqueeze(-1), None
        return x_BTD, mixed_BTX

    def attend(self, x_BTD: Tensor, squared_norm_BT1: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return attention probabilities and weights, both [B, T, S], and the values [B, T, D]."""
        value_BTD, added_BTS = self.mix(x_BTD, mask_BT)
        score_BTS = self.attention.scores(value_BTD, added_BTS)
        return *self.attention.weights(score_BTS, squared_norm_BT1, mask_BT), value_BTD

    def forward(self, x_BTD: Tensor, squared_norm_BT1: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the logits [B, C], as in training.

        Args:
            x_BTD: token vectors, zero at padding.
            squared_norm_BT1: squared feature norms, q_t of `ops.norm_weights`: the sum of the squared weights of the
                token's rows.
            mask_BT: True at real tokens, which come first.
        """
        pooled_BSD = self.attention.pool(*self.mix(x_BTD, mask_BT), squared_norm_BT1, mask_BT)
        logits_BC: Tensor = self.head(self.dropped(pooled_BSD).flatten(1))
        return logits_BC

    def dropped(self, pooled_BSD: Tensor) -> Tensor:
        """Return the sums of the seeds after dropout, in training."""
        if self.config.seed_dropout:
            pooled_BSD = F.dropout1d(pooled_BSD, self.config.seed_dropout, self.training)
        return F.dropout(pooled_BSD, self.config.dropout, self.training)

    def explain(self, x_BTD: Tensor, squared_norm_BT1: Tensor, mask_BT: Tensor) -> ViewOutputs:
        """Return logits, attention and attributions, as in the saved model. Arguments as for `forward`."""
        probability_BTS, weight_BTS, value_BTD = self.attend(x_BTD, squared_norm_BT1, mask_BT)
        # The head is linear: applied to each token's values before they are summed, it yields the split.
        token_logit_BTSC = weight_BTS.unsqueeze(-1) * self._label_values(value_BTD)
        logits_BC = self.head.bias + token_logit_BTSC.sum((1, 2))
        if self.attention.kind == "norm":
            attribution_BTC = ops.norm_attributions(
                token_logit_BTSC, ops.norm_fractions(probability_BTS, squared_norm_BT1)
            )
        else:
            attribution_BTC = token_logit_BTSC.sum(2)
        return ViewOutputs(logits_BC, probability_BTS.mean(2).where(mask_BT, 0.0), attribution_BTC)

    @classmethod
    def of(cls, linear: LinearClassifier) -> "ViewClassifier":
        """Return the module equivalent to a linear classifier."""
        made = cls(replace(linear.config, metric=False), linear.labels, even_attention=True).eval()
        with torch.no_grad():
            for weight, found in (
                (made.attention.plain_SD, linear.query_SD),
                (made.head.weight, linear.head_CX),
                (made.head.bias, linear.bias_C),
            ):
                if weight is not None:
                    weight.copy_(torch.from_numpy(found))
        return made

    @property
    def labels(self) -> int:
        """The number of labels."""
        return self.head.out_features

    @property
    def bias_C(self) -> Float32:  # noqa: N802
        """Return the biases of the head [C]."""
        bias_C: Float32 = self.head.bias.detach().cpu().numpy()
        return bias_C

    @property
    def numbers(self) -> int:
        """The number of learned numbers."""
        return sum(weight.numel() for weight in self.parameters())

    @property
    def mixing_numbers(self) -> int:
        """How many of the learned numbers belong to the mixing layer."""
        return 0 if self.mixing is None else sum(weight.numel() for weight in self.mixing.parameters())

    @property
    def gate(self) -> float | None:
        """Return the largest gate of the mixing layer; None without any."""
        return None if self.mixing is None else float(self.mixing.gate_X.detach().abs().max())

    @property
    def attention_S(self) -> Float32:  # noqa: N802
        """The weight of each seed in the reported attention [S]: all the same."""
        share_S: Float32 = torch.full((self.config.seeds,), 1 / self.config.seeds).numpy()
        return share_S

    @property
    def foldable(self) -> bool:
        """Return whether scores and values are linear in the token vectors, and not much wider: see `fold`."""
        return foldable(self.config, self.labels)

    @torch.no_grad()
    def folded(self, table_VD: Float32) -> Float32:
        """Return `fold` of a NumPy table."""
        folded_VSY: Float32 = self.fold(torch.from_numpy(table_VD)).numpy()
        return folded_VSY

    def fold(self, table_VD: Tensor) -> Tensor:
        """Fold head and seeds into each row of a table [V, S, C + 1]: per seed C values and a score.

        If `foldable`, a sum of such rows is all that a saved model needs of a token.
        """
        return torch.cat([self._label_values(table_VD), self.attention.scores(table_VD).unsqueeze(2)], 2)

    def _label_values(self, value_D: Tensor) -> Tensor:
        """Apply the head of each seed to values [..., D]: [..., S, C], before any weight of the attention."""
        weight_SDC = self.head.weight.T.view(self.config.seeds, self.config.dim, -1)
        return torch.stack([value_D @ weight_DC for weight_DC in weight_SDC.unbind(0)], -2)


def _mixing_layer(config: ModelConfig) -> MixingLayer | None:
    make_mixer = MIXERS[config.mixing]
    out = config.dim if config.values == "mixed" else config.seeds
    return MixingLayer(config.dim, out, make_mixer(config.dim, out), config.gate) if make_mixer else None
