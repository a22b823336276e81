"""The model, top to bottom: hashed rows -> token vectors -> one mixing layer -> seed attention -> linear head.

It has: no vocabulary, no position embedding, no batch norm, no non-linearity after the attention weights. Because the
readout is linear in the values u_t, the logits split exactly over tokens:

    logit_c = b_c + sum_t sum_s a_ts (w_sc . u_t)        contribution of token t to label c: the summand

With `values="token"` u_t is the token's own vector and the mixing layer speaks to the scores alone: it decides how much
each token counts in its context, and a contribution belongs to that token alone. With `values="mixed"` u_t is the mixed
vector, mixing shapes scores and values, and a contribution belongs to the position.

Shapes: B texts, T tokens, R rows of a token, D width, S seeds, C labels, V rows of the table.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from textcls.errors import ConfigError
from textcls_training import ops
from textcls_training.mixing import MIXERS

Attention = Literal["norm", "softmax", "cosine"]
Values = Literal["token", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """What the model is made of.

    Attributes:
        dim: width D of a token's vector.
        mixing: name of the mixing layer, see `textcls_training.mixing.MIXERS`.
        attention: how scores become weights.
        values: what the attention sums up, the token's own vector or the mixed one.
        seeds: number S of learned queries.
        dropout: share of the pooled vector's entries dropped in training.
        seed_dropout: chance that a whole seed is dropped in training; needs at least two seeds.
        gate: start of the mixing layer's gate.
    """

    dim: int = 32
    mixing: str = "none"
    attention: Attention = "norm"
    values: Values = "token"
    seeds: int = 1
    dropout: float = 0.0
    seed_dropout: float = 0.0
    gate: float = 0.1

    def __post_init__(self) -> None:
        if self.mixing not in MIXERS:
            raise ConfigError(f"There is no mixing {self.mixing!r}; choose one of {', '.join(MIXERS)}.")
        if self.attention not in ("norm", "softmax", "cosine"):
            raise ConfigError(f"There is no attention {self.attention!r}; choose norm, softmax or cosine.")
        if self.values not in ("token", "mixed"):
            raise ConfigError(f"values must be token or mixed, not {self.values!r}.")
        if not (1 <= self.dim <= 1024 and 1 <= self.seeds <= 64):
            raise ConfigError(f"dim must be 1 to 1024 and seeds 1 to 64, not {self.dim} and {self.seeds}.")
        if self.seed_dropout and self.seeds == 1:
            raise ConfigError("seed_dropout drops whole seeds, so it needs at least two of them.")


class Answer(NamedTuple):
    """What the model says of a batch."""

    logits_BC: Tensor
    attention_BT: Tensor
    contributions_BTC: Tensor


class SeedAttention(nn.Module):
    """A few learned queries, the seeds, score every token; scores become the weights with which values are summed."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.attention
        self.seed_SD = nn.Parameter(torch.randn(config.seeds, config.dim))
        self.forget_DD = nn.Parameter(torch.randn(config.dim, config.dim) * config.dim**-0.5)
        self.candidate_DD = nn.Parameter(torch.randn(config.dim, config.dim) * config.dim**-0.5)
        self.scale = nn.Parameter(torch.tensor(5.0))
        self.folded_SD: Tensor | None = None

    def seeds(self) -> Tensor:
        """Return the queries [S, D]: over-parameterised seeds, or the plain vectors that they were folded to."""
        if self.folded_SD is not None:
            return self.folded_SD
        return ops.fold_seed(self.seed_SD, self.forget_DD, self.candidate_DD)

    @torch.no_grad()
    def fold(self) -> None:
        """Replace the over-parameterised seeds by their values, once training is over."""
        self.folded_SD = self.seeds().clone()

    def scores(self, x_BTD: Tensor) -> Tensor:
        """Return the score [B, T, S] of each token for each seed."""
        if self.kind == "cosine":
            return ops.cosine_scores(x_BTD, self.seeds(), self.scale)
        return x_BTD @ self.seeds().T

    def weights(self, score_BTS: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Return each token's share of the attention, which sums to 1, and its weight, both [B, T, S]."""
        share_BTS = ops.masked_softmax(score_BTS, mask_BT)
        return share_BTS, ops.norm_weights(share_BTS, energy_BT1) if self.kind == "norm" else share_BTS


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

    def attend(self, x_BTD: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the attention's shares and weights, both [B, T, S], and the values [B, T, D]."""
        mixed = self.mixing(x_BTD, mask_BT) if self.mixing else None
        if self.config.values == "mixed" and mixed is not None:
            x_BTD = x_BTD + mixed * mask_BT.unsqueeze(-1)
            score_BTS = self.attention.scores(x_BTD)
        else:
            score_BTS = self.attention.scores(x_BTD)
            score_BTS = score_BTS if mixed is None else score_BTS + mixed
        return *self.attention.weights(score_BTS, energy_BT1, mask_BT), x_BTD

    def forward(self, x_BTD: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the logits [B, C]; the way of training.

        Args:
            x_BTD: token vectors, zero at padding.
            energy_BT1: q_t of `ops.norm_weights`, the sum of the squared weights of the token's rows.
            mask_BT: True at real tokens.
        """
        _, weight_BTS, value_BTD = self.attend(x_BTD, energy_BT1, mask_BT)
        pooled_BSD = weight_BTS.transpose(1, 2) @ value_BTD
        if self.config.seed_dropout:
            pooled_BSD = F.dropout1d(pooled_BSD, self.config.seed_dropout, self.training)
        pooled_BSD = F.dropout(pooled_BSD, self.config.dropout, self.training)
        logits_BC: Tensor = self.head(pooled_BSD.flatten(1))
        return logits_BC

    def explain(self, x_BTD: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> Answer:
        """Return logits, attention and contributions; the way of the saved model. Arguments as for `forward`."""
        share_BTS, weight_BTS, value_BTD = self.attend(x_BTD, energy_BT1, mask_BT)
        # The head is linear: applied to each token's values before they are summed, it gives the split.
        contributions_BTC = (weight_BTS.unsqueeze(-1) * self._said(value_BTD)).sum(2)
        logits_BC = self.head.bias + contributions_BTC.sum(1)
        return Answer(logits_BC, share_BTS.mean(2).where(mask_BT, 0.0), contributions_BTC)

    @property
    def foldable(self) -> bool:
        """Whether scores and values are linear in the token vectors, and not much wider: see `fold`."""
        linear = self.mixing is None and self.config.attention != "cosine"
        return linear and self.config.seeds * (self.head.out_features + 1) <= 2 * self.config.dim

    def fold(self, table_VD: Tensor) -> Tensor:
        """Return what each row of a table says itself [V, S * (C + 1)]: S * C values, one a seed and label, S scores.

        Where `foldable`, a sum of such rows is all that a saved model needs of a token.
        """
        return torch.cat([self._said(table_VD).flatten(1), self.attention.scores(table_VD)], 1)

    def _said(self, value_XD: Tensor) -> Tensor:
        """The head of each seed on values [..., D]: [..., S, C]."""
        weight_SDC = self.head.weight.T.view(self.config.seeds, self.config.dim, -1)
        return torch.stack([value_XD @ weight_DC for weight_DC in weight_SDC.unbind(0)], -2)


def _mixing_layer(config: ModelConfig) -> MixingLayer | None:
    make_mixer = MIXERS[config.mixing]
    out = config.dim if config.values == "mixed" else config.seeds
    return MixingLayer(config.dim, out, make_mixer(config.dim, out), config.gate) if make_mixer else None
