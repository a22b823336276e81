"""The share of tokens that the model does not know, now and as it was to be expected."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from textcls.evaluation.drift.summary import UnknownShare
from textcls.evaluation.intervals import CHANCE, DEVIATE

# A share of unknown tokens that is higher than expected by less than this is a small matter.
MORE_UNKNOWN: Final = 0.02


class UnknownSums(NamedTuple):
    """Sums over texts, of which the share is told with its error as that of a ratio.

    Attributes:
        unknown: tokens that the model does not know.
        tokens: all tokens.
        unknown_squared: the square of the unknown tokens of each text.
        product: unknown tokens of each text times all of it.
        tokens_squared: the square of the tokens of each text.
    """

    unknown: float
    tokens: float
    unknown_squared: float
    product: float
    tokens_squared: float

    @classmethod
    def of(cls, unknown: Sequence[int], tokens: Sequence[int]) -> Self:
        """Add up texts, of each its unknown tokens and all of them."""
        pairs = list(zip(unknown, tokens, strict=True))
        return cls(
            sum(unknown), sum(tokens), sum(u * u for u in unknown), sum(u * t for u, t in pairs),
            sum(t * t for t in tokens),
        )  # fmt: skip


class UnknownTokens(NamedTuple):
    """The share of tokens that the model does not know.

    Attributes:
        before: the share to be expected of rows like those of the training.
        now: of new rows.
        by_chance: what it stays below in 97.5 of 100 cases if nothing has changed.
        p_value: how often chance alone makes such a difference.
    """

    before: float
    now: float
    by_chance: float
    p_value: float

    @property
    def is_sure(self) -> bool:
        """Whether there are more than before, by more than chance and by no small matter."""
        return self.p_value < CHANCE and self.now > self.before + MORE_UNKNOWN

    @classmethod
    def of(cls, before: UnknownShare, now: UnknownSums) -> Self:
        """Hold a share, which is a ratio over texts, against the one that was to be expected."""
        every = max(1.0, now.tokens)
        share = now.unknown / every
        squares = now.unknown_squared - 2 * share * now.product + share * share * now.tokens_squared
        # Where nothing is unknown, one token might have been.
        error = math.hypot(max(1 / every, math.sqrt(max(0.0, squares)) / every), before.error)
        return cls(
            before.share,
            share,
            min(1.0, before.share + DEVIATE * error),
            math.erfc(abs(share - before.share) / error / math.sqrt(2)),
        )
