"""Which tokens of texts are masked. Shapes: B texts, N tokens of all of them, concatenated."""

import numpy as np

from textcls_training.data.arrays import Bools, Int64


def masked_tokens(length_B: Int64, rate: float, rng: np.random.Generator) -> Bools:
    """Return which tokens of some texts are masked [N]: each at random, and at least one per text.

    In a text of one token none is, as nothing would be left to guess it from; in any other, at least one is left.

    Args:
        length_B: the number of tokens of each text.
        rate: the probability for a token.
        rng: the source of randomness.
    """
    draw_N = rng.random(int(length_B.sum()))
    masked_N: Bools = draw_N < rate
    full_B = length_B > 0
    first_F = (np.cumsum(length_B) - length_B)[full_B]
    if not len(first_F):
        return masked_N
    text_N = np.repeat(np.arange(len(first_F)), length_B[full_B])
    masked_N |= draw_N == np.minimum.reduceat(draw_N, first_F)[text_N]
    masked_N &= draw_N != np.maximum.reduceat(draw_N, first_F)[text_N]
    return masked_N
