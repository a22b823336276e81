"""The dynamic word embedding: a token's vector from the bits of its hash, without a table.

A token is hashed with several seeds; `BITS` of the bits, as -1 and 1 and divided by the root of their number, times one
dense matrix are its vector. Every token has one, whether training has seen it or not, and all tokens share all
weights: a matrix of 256 x 32 numbers, where a table has one row a feature. Two tokens have about half of their bits in
common, so their codes are nearly orthogonal; each has the length 1, which is a token's energy.

The source (raberrytv, "Dynamic word embeddings", 2020) claims 10M parameters for a table of 10,000 tokens in 100
dimensions; it is 1M. It is right about the other number: 200 bits need 20,000.

Words alone have codes. Bigrams and n-grams would have theirs, but one matrix of so few weights cannot keep that many
features apart. Nothing is weighted by idf either, which a file without a vocabulary does not know.

Shapes: B texts, T tokens, V distinct tokens, K bits, D width; G and X as in `textcls_training.lexicon`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import mmh3
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor

from textcls import features
from textcls_training.arrays import Bools, Float32, Int64
from textcls_training.encoding import Corpus
from textcls_training.frontend import StringGraphBuilder, token_strings
from textcls_training.graph import make_model
from textcls_training.lexicon import NO_SCORE
from textcls_training.model import TextClassifier
from textcls_training.views import BitView, Fitted

BITS: Final = 256
WORD_BITS: Final = 32
# Seeds of the hashes, none of which `features` uses.
SEEDS: Final = tuple(range(201, 201 + BITS // WORD_BITS))


def codes(tokens: Sequence[str]) -> Float32:
    """Return the codes [V, K]: hash bits, from the lowest one of the first seed on, as -1 and 1, over sqrt(K)."""
    hash_VH = np.array([[mmh3.hash(token, seed, signed=False) for seed in SEEDS] for token in tokens], np.uint32)
    bit_VHW = hash_VH.reshape(len(tokens), len(SEEDS), 1) >> np.arange(WORD_BITS, dtype=np.uint32) & np.uint32(1)
    sign_VK = 2 * bit_VHW.reshape(len(tokens), BITS).astype(np.float32) - 1
    return sign_VK / np.float32(np.sqrt(BITS))


@dataclass(frozen=True, slots=True)
class EncodedBits:
    """A corpus and the codes of its distinct tokens [V, K]."""

    corpus: Corpus
    code_VK: Float32

    def __len__(self) -> int:
        return len(self.corpus)


@dataclass(frozen=True, slots=True)
class BitBatch:
    """Texts as the matrix reads them: which code each token has [B, T], 0 at padding, and which tokens are real."""

    token_BT: Int64
    code_VK: Float32
    mask_BT: Tensor

    def codes(self) -> Tensor:
        """Return the codes [B, T, K], zero at padding."""
        return torch.from_numpy(self.code_VK[self.token_BT]) * self.mask_BT.unsqueeze(-1)


class BitEmbedding:
    """One dense matrix: `textcls_training.table.RowEmbedding` without a table.

    It learns with the other dense weights: `update` only leaves the gradient for their optimizer.
    """

    def __init__(self, dim: int, std: float) -> None:
        # The code has the length 1, so a fresh token vector has entries of `std`, as that of a fresh row.
        self.weight_KD = (torch.randn(BITS, dim) * std).requires_grad_()

    @property
    def dense(self) -> list[Tensor]:
        """The weights that the optimizer of the dense weights moves."""
        return [self.weight_KD]

    def encode(self, corpus: Corpus) -> EncodedBits:
        """Make the codes of all distinct tokens."""
        return EncodedBits(corpus, codes(corpus.types))

    def batch(self, encoded: EncodedBits, text_B: Int64) -> BitBatch:
        """Collect the texts numbered `text_B`, in that order."""
        corpus = encoded.corpus
        length_B = corpus.start[text_B + 1] - corpus.start[text_B]
        mask_BT: Bools = np.arange(max(1, length_B.max(initial=0))) < length_B[:, None]
        token_BT = np.zeros(mask_BT.shape, np.int64)
        token_BT[mask_BT] = corpus.token[corpus.places(text_B)]
        return BitBatch(token_BT, encoded.code_VK, torch.from_numpy(mask_BT))

    @torch.no_grad()
    def read(self, batch: BitBatch) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and energies [B, T, 1], both zero at padding."""
        return batch.codes() @ self.weight_KD, batch.mask_BT.unsqueeze(-1).float()

    def update(self, batch: BitBatch, grad_BTD: Tensor, rate: float) -> None:
        """Leave the gradient of the matrix, given that of the token vectors; the rate is that of the dense weights."""
        self.weight_KD.grad = batch.codes().flatten(0, 1).T @ grad_BTD.flatten(0, 1)

    def view(self, classifier: TextClassifier) -> BitView:
        """Return what has been learned, with the classifier behind it."""
        return BitView(self.weight_KD.detach(), classifier)


@dataclass(frozen=True, slots=True)
class BitLexicon:
    """What stands in a saved model in the place of tables: one matrix, and what padding says.

    Attributes:
        column_KGY: what each bit says: values and scores if folded, else the entries of a vector.
        folded: which of the two.
    """

    column_KGY: Float32
    folded: bool

    @classmethod
    @torch.no_grad()
    def of(cls, fitted: Fitted) -> "BitLexicon":
        """Fold the head and the seeds of a trained model into the matrix where that can be done."""
        (view,) = (view for view in fitted.views if isinstance(view, BitView))
        classifier, matrix_KD = view.classifier, view.matrix_KD
        if not classifier.foldable:
            return cls(matrix_KD.unsqueeze(1).numpy(), False)
        return cls(classifier.fold(matrix_KD).numpy(), True)

    def mark(self) -> Float32:
        """Return what padding says [G, X], as `Lexicon.marks` has it."""
        mark_GX = np.zeros((self.column_KGY.shape[1], self.column_KGY.shape[2] + 1), np.float32)
        if self.folded:
            mark_GX[:, -2] = NO_SCORE
        mark_GX[:, -1] = 1
        return mark_GX

    def read(self, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding [B, T] and token sums [B, T, G, X] as the front end of a saved model does."""
        length = np.diff(corpus.start)
        padding_BT = np.arange(max(1, length.max(initial=0))) >= length[:, None]
        mark_GX = self.mark()
        said_VGY = np.tensordot(codes(corpus.types), self.column_KGY, 1)
        said_VGX = np.concatenate([said_VGY, np.ones((*said_VGY.shape[:2], 1), np.float32)], 2)
        token_BTGX = np.broadcast_to(mark_GX, (*padding_BT.shape, *mark_GX.shape)).copy()
        token_BTGX[~padding_BT] = said_VGX[corpus.token]
        return padding_BT, token_BTGX

    def frontend(self, max_tokens: int) -> onnx.ModelProto:
        """Return the model text [B] -> tokens, known and padding, all [B, T], and the token sums [B, T, G, X].

        Known is every token: none needs to have been seen.
        """
        g = StringGraphBuilder("front")
        tokens_1BT = token_strings(g, max_tokens)
        tokens_BT = g.node("Squeeze", tokens_1BT, g.integers(0))
        g.node("Equal", tokens_BT, g.constant(features.PADDING, object), name="padding")
        g.node("Where", "padding", g.constant("", object), tokens_BT, name="tokens")
        g.node("Equal", "padding", "padding", name="known")
        hashes = [g.node("Unsqueeze", g.murmur(tokens_BT, seed), g.integers(2, 3)) for seed in SEEDS]
        hash_BTH1 = g.node("Concat", *hashes, axis=2)
        shifted = g.node("BitShift", hash_BTH1, g.constant(np.arange(WORD_BITS), np.uint32), direction="RIGHT")
        bit_BTHW = g.node("BitwiseAnd", shifted, g.constant(1, np.uint32))
        bit_BTHW = g.node("Cast", bit_BTHW, to=TensorProto.FLOAT)
        bit_BTK = g.node("Reshape", bit_BTHW, g.integers(0, 0, BITS))
        groups, columns = self.column_KGY.shape[1:]
        # The bits are 0 and 1 here: (2 b - 1) M = b (2 M) - sum of M's rows.
        flat_KX = self.column_KGY.reshape(BITS, -1) / np.sqrt(np.float32(BITS))
        said_BTX = g.node("MatMul", bit_BTK, g.constant(2 * flat_KX, np.float32, "bits"))
        said_BTX = g.node("Sub", said_BTX, g.constant(flat_KX.sum(0), np.float32))
        said_BTGY = g.node("Reshape", said_BTX, g.integers(0, 0, groups, columns))
        # An energy of 1 behind the columns.
        sums_BTGX = g.node("Pad", said_BTGY, g.integers(0, 0, 0, 0, 0, 0, 0, 1), g.constant(1, np.float32))
        padding_BT11 = g.node("Unsqueeze", "padding", g.integers(2, 3))
        g.node("Where", padding_BT11, g.constant(self.mark(), np.float32), sums_BTGX, name="token")
        outputs = [
            helper.make_tensor_value_info(name, kind, ["batch", "tokens"])
            for name, kind in (
                ("tokens", TensorProto.STRING), ("known", TensorProto.BOOL), ("padding", TensorProto.BOOL)
            )
        ]  # fmt: skip
        shape: list[str | int] = ["batch", "tokens", groups, columns + 1]
        outputs.append(helper.make_tensor_value_info("token", TensorProto.FLOAT, shape))
        text = helper.make_tensor_value_info("text", TensorProto.STRING, ["batch"])
        return make_model(helper.make_graph(g.nodes, "frontend", [text], outputs, g.constants))
