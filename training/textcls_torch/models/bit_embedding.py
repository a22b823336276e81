"""The bit embedding: a token's vector from the bits of its hash, without a table of rows.

A token is hashed with several seeds; `BITS` of the bits, as -1 and 1 and divided by the root of their number, times one
dense matrix are its vector. Every token has one, whether training has seen it or not, and all tokens share all
weights: a matrix of 256 x 32 numbers, whereas a table has one row per feature. Two tokens have about half their bits in
common, so their codes are nearly orthogonal; each has the length 1, so a token's squared feature norm is 1.

The source (raberrytv, "Dynamic word embeddings", 2020) claims 10M parameters for a table of 10,000 tokens in 100
dimensions; it is 1M. It is right about the other number: 200 bits need 20,000.

Only words have codes. Bigrams and n-grams could have theirs, but one matrix with so few weights cannot separate that
many features. Nothing is weighted by idf either, which is unknown without a vocabulary.

Shapes: B texts, T tokens of the longest one, V distinct tokens, K bits, H hashes of W bits each, D width.
"""

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls_torch.models.classifier import ViewClassifier
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.models.bit_codes import BITS, codes
from textcls_training.models.ensemble import BitView


@dataclass(frozen=True, slots=True)
class EncodedBits:
    """A corpus and the codes of its distinct tokens [V, K]."""

    corpus: Corpus
    code_VK: Float32

    def __len__(self) -> int:
        return len(self.corpus)


@dataclass(frozen=True, slots=True)
class BitBatch:
    """Texts as read by the matrix: the number of each token's code [B, T], 0 at padding, and which tokens are real."""

    token_BT: Int64
    code_VK: Float32
    mask_BT: Tensor

    def codes(self) -> Tensor:
        """Return the codes [B, T, K], zero at padding."""
        return torch.from_numpy(self.code_VK[self.token_BT]) * self.mask_BT.unsqueeze(-1)


class BitEmbedding:
    """One dense matrix in place of a table.

    It learns with the other dense weights: `update` only leaves the gradient for their optimizer.
    """

    def __init__(self, dim: int, std: float) -> None:
        # The code has length 1, so a new token vector has entries of `std`, like a new row.
        self.weight_KD = (torch.randn(BITS, dim) * std).requires_grad_()

    @property
    def learns(self) -> bool:
        """True: the matrix learns."""
        return True

    @property
    def dense(self) -> list[Tensor]:
        """Return the weights that the optimizer of the dense weights updates."""
        return [self.weight_KD]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return none: the optimizer of the dense weights updates the matrix."""
        return {}

    def encode(self, corpus: Corpus) -> EncodedBits:
        """Make the codes of all distinct tokens."""
        return EncodedBits(corpus, codes(corpus.types))

    def batch(self, encoded: EncodedBits, text_B: Int64) -> BitBatch:
        """Collect the texts numbered `text_B`, in that order."""
        token_BT, mask_BT = encoded.corpus.padded(text_B)
        return BitBatch(token_BT, encoded.code_VK, torch.from_numpy(mask_BT))

    @torch.no_grad()
    def read(self, batch: BitBatch) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and squared feature norms [B, T, 1], both zero at padding."""
        return batch.codes() @ self.weight_KD, batch.mask_BT.unsqueeze(-1).float()

    def update(self, batch: BitBatch, grad_BTD: Tensor, rate: float) -> None:
        """Leave the gradient of the matrix, given that of the token vectors; the rate is that of the dense weights."""
        self.weight_KD.grad = batch.codes().flatten(0, 1).T @ grad_BTD.flatten(0, 1)

    def view(self, classifier: ViewClassifier) -> BitView:
        """Return what has been learned, followed by the classifier."""
        return BitView(self.weight_KD.detach().cpu().numpy(), classifier)
