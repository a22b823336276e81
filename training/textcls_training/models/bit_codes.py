"""The codes of tokens: bits of their hashes, which `textcls_torch.models.bit_embedding` turns into vectors.

Shapes: V distinct tokens, K bits, H hashes of W bits each.
"""

from collections.abc import Sequence
from typing import Final

import mmh3
import numpy as np

from textcls_training.data.arrays import Float32

BITS: Final = 256
WORD_BITS: Final = 32
# Seeds of the hashes, none of them used by `features`.
SEEDS: Final = tuple(range(201, 201 + BITS // WORD_BITS))


def codes(tokens: Sequence[str]) -> Float32:
    """Return the codes [V, K]: hash bits, from the lowest one of the first seed on, as -1 and 1, over sqrt(K)."""
    hash_VH = np.array([[mmh3.hash(token, seed, signed=False) for seed in SEEDS] for token in tokens], np.uint32)
    bit_VHW = hash_VH.reshape(len(tokens), len(SEEDS), 1) >> np.arange(WORD_BITS, dtype=np.uint32) & np.uint32(1)
    sign_VK = 2 * bit_VHW.reshape(len(tokens), BITS).astype(np.float32) - 1
    return sign_VK / np.float32(np.sqrt(BITS))
