"""The share of tokens that the model does not know: the current and the expected one."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from textcls.evaluation.drift.summary import UnknownShare
from textcls.evaluation.intervals import CHANCE, DEVIATE

# A share of unknown tokens that exceeds the expected one by less than this is negligible.
MORE_UNKNOWN: Final = 0.02


class UnknownSums(NamedTuple):
    """Sums over texts, from which the share is computed with its error as a ratio.

    Attributes:
        unknown: tokens that the model does not know.
        tokens: all tokens.
        unknown_squared: the square of the unknown tokens of each text.
        product: the unknown tokens of each text times all of its tokens.
        tokens_squared: the square of the tokens of each text.
    """

    unknown: float
    tokens: float
    unknown_squared: float
    product: float
    tokens_squared: float

    @classmethod
    def of(cls, unknown: Sequence[int], tokens: Sequence[int]) -> Self:
        """Add up texts, given the unknown tokens and all tokens of each."""
        pairs = list(zip(unknown, tokens, strict=True))
        return cls(
            sum(unknown), sum(tokens), sum(u * u for u in unknown), sum(u * t for u, t in pairs),
            sum(t * t for t in tokens),
        )  # fmt: skip


class UnknownTokens(NamedTuple):
    """The share of tokens that the model does not know.

    Attributes:
        before: the share expected of rows like those of the training.
        now: the share in new rows.
        by_chance: the value that it stays below in 97.5 of 100 cases if nothing has changed.
        p_value: the probability of such a difference by chance alone.
    """

    before: float
    now: float
    by_chance: float
    p_value: float

    @property
    def is_sure(self) -> bool:
        """Whether there are more than before, by more than chance and not negligibly."""
        return self.p_value < CHANCE and self.now > self.before + MORE_UNKNOWN

    @classmethod
    def of(cls, before: UnknownShare, now: UnknownSums) -> Self:
        """Compare a share, which is a ratio over texts, with the expected one."""
        every = max(1.0, now.tokens)
        share = now.unknown / every
        squares = now.unknown_squared - 2 * share * now.product + share * share * now.tokens_squared
        # If nothing is unknown, one token might have been.
        error = math.hypot(max(1 / every, math.sqrt(max(0.0, squares)) / every), before.error)
        return cls(
            before.share,
            share,
            min(1.0, before.share + DEVIATE * error),
            math.erfc(abs(share - before.share) / error / math.sqrt(2)),
        )
