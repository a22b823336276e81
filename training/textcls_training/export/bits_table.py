"""The replacement of lookup tables in a saved model whose token vectors are computed from the bits of hashes.

Shapes: B texts, T tokens, V distinct tokens, K bits; G, X and Y as in
`textcls_training.export`.
"""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from textcls_training.data.arrays import Bools, Float32
from textcls_training.data.corpus import Corpus
from textcls_training.export.builder import make_model
from textcls_training.export.tables import NO_SCORE
from textcls_training.export.token_nodes import (
    StringGraphBuilder,
    hash_bits,
    name_tokens,
    text_graph_values,
    token_strings,
)
from textcls_training.models.bit_codes import BITS, codes
from textcls_training.models.ensemble import BitView, TrainedModel


@dataclass(frozen=True, slots=True)
class BitsTable:
    """A matrix of what each bit adds to a token, the same for all tokens.

    Attributes:
        column_KGY: a row for each bit: values and scores if folded, else the entries of a vector.
        folded: whether they are values and scores.
    """

    column_KGY: Float32
    folded: bool

    @classmethod
    def of(cls, model: TrainedModel) -> "BitsTable":
        """Fold the head and the seeds of a trained model into the matrix, if possible."""
        (view,) = (view for view in model.views if isinstance(view, BitView))
        if not view.classifier.foldable:
            return cls(view.matrix_KD[:, None], False)
        return cls(view.classifier.folded(view.matrix_KD), True)

    @property
    def shape(self) -> tuple[int, int]:
        """Groups and columns (G, X)."""
        _, groups, columns = self.column_KGY.shape
        return groups, columns + 1

    def padding_row(self) -> Float32:
        """Return the row of padding [G, X], as in `LookupTables.reserved_rows`."""
        padding_GX = np.zeros(self.shape, np.float32)
        if self.folded:
            padding_GX[:, -2] = NO_SCORE
        padding_GX[:, -1] = 1
        return padding_GX

    def read(self, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding [B, T] and token sums [B, T, G, X] as the text graph of a saved model does."""
        length = np.diff(corpus.start)
        padding_BT = np.arange(max(1, length.max(initial=0))) >= length[:, None]
        padding_GX = self.padding_row()
        token_VGY = np.tensordot(codes(corpus.types), self.column_KGY, 1)
        token_VGX = np.concatenate([token_VGY, np.ones((*token_VGY.shape[:2], 1), np.float32)], 2)
        token_BTGX = np.broadcast_to(padding_GX, (*padding_BT.shape, *padding_GX.shape)).copy()
        token_BTGX[~padding_BT] = token_VGX[corpus.token]
        return padding_BT, token_BTGX

    def text_graph(self, max_tokens: int) -> onnx.ModelProto:
        """Return the model text [B] -> tokens, known and padding, all [B, T], and the token sums [B, T, G, X].

        Every token counts as known: none needs to have been seen.
        """
        g = StringGraphBuilder("front")
        tokens_BT = name_tokens(g, token_strings(g, max_tokens))
        g.node("Equal", "padding", "padding", name="known")
        bit_BTK = hash_bits(g, tokens_BT)
        groups, columns = self.column_KGY.shape[1:]
        # The bits are 0 and 1 here: (2 b - 1) M = b (2 M) - sum of M's rows.
        flat_KX = self.column_KGY.reshape(BITS, -1) / np.sqrt(np.float32(BITS))
        sum_BTX = g.node("MatMul", bit_BTK, g.constant(2 * flat_KX, np.float32, "bits"))
        sum_BTX = g.node("Sub", sum_BTX, g.constant(flat_KX.sum(0), np.float32))
        sum_BTGY = g.node("Reshape", sum_BTX, g.integers(0, 0, groups, columns))
        # A squared norm of 1 after the columns.
        sum_BTGX = g.node("Pad", sum_BTGY, g.integers(0, 0, 0, 0, 0, 0, 0, 1), g.constant(1, np.float32))
        padding_BT11 = g.node("Unsqueeze", "padding", g.integers(2, 3))
        g.node("Where", padding_BT11, g.constant(self.padding_row(), np.float32), sum_BTGX, name="token")
        text, outputs = text_graph_values(*self.shape)
        return make_model(helper.make_graph(g.nodes, "text", [text], outputs, g.constants))
