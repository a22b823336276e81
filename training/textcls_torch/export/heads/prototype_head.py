"""The scoring head of a prototype model, as a module and as a graph: `textcls_torch.models.ops.prototypes`.

The columns of a view are values, the entries of a vector, a score and a squared norm, as in a folded model; after the
views comes the spelling, the weighted codes of the words. Each part is scaled by its weight over the root mean square
of its length in training, and the whole is normalised to length 1. With the attention over support rows and all lengths
held constant, a logit is a sum over tokens, so contributions are exact.

Shapes as in `textcls_training.export.heads`; D entries of a view, H of the spelling, F of all together, K the most
support rows of any label, S those of all labels together.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from textcls.model import artifact
from textcls.model.prototypes import Prototypes
from textcls.model.teaching.centres import Float32
from textcls.model.teaching.scores import padded
from textcls_torch.models.ops.attention import norm_weights
from textcls_torch.models.ops.prototypes import LEAST_LENGTH, prototype_scores, text_vectors
from textcls_torch.models.prototypes import TextEncoder
from textcls_training.data.corpus import Corpus
from textcls_training.export.builder import make_model
from textcls_training.export.heads.outputs import HeadOutputs
from textcls_training.export.tables import LookupTables
from textcls_training.export.token_nodes import StringGraphBuilder, hash_bits
from textcls_training.models.bit_codes import BITS, codes
from textcls_training.models.constants import LEAST_SQUARE

_NEVER: Final = -1e9


class PrototypeHead(nn.Module):
    """Outputs from token sums and the spelling of tokens.

    Args:
        encoder: the encoder that the token sums come from.
        lengths: the root mean square length of each part in training.
        support_SF: the vectors of all support rows, label by label, of length 1; stored in 16 bits.
        prototypes: the number of support rows of each label, and the scale.
        bias_C: the bias of each label.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        lengths: Sequence[float],
        support_SF: Float32,
        prototypes: Prototypes,
        bias_C: Sequence[float],
    ) -> None:
        super().__init__()
        found = encoder.calibration
        self.support_SF = support_SF.astype(np.float16)
        self.count_C = np.array(prototypes.counts, np.int64)
        self.scale, self.temperature = prototypes.scale, found.temperature
        self.width, self.views = encoder.width, len(encoder.model.views)
        self.norm = encoder.model.classifiers[0].config.attention == "norm"
        self.ensemble_G1 = torch.tensor(found.ensemble_weights).unsqueeze(1)
        factors = np.sqrt(np.array(found.parts)) / np.array(lengths)
        self.factor_F = torch.from_numpy(np.repeat(factors, [*[self.width] * self.views, BITS]).astype(np.float32))
        self.bias_C = torch.tensor(bias_C)
        support_CKF, real_CK = padded(self.support_SF.astype(np.float32), self.count_C)
        self.support_CKF, self.real_CK = torch.from_numpy(support_CKF), torch.from_numpy(real_CK)

    def forward(self, padding_BT: Tensor, token_BTGX: Tensor, spelling_BTH: Tensor) -> HeadOutputs:
        """Return probabilities and logits [B, C], attention [B, T], attributions [B, T, C]."""
        probability_BTG1, token_BTF = self.weighted(token_BTGX, spelling_BTH)
        found = text_vectors(token_BTF, self.factor_F)
        cosine_BC, _, prototype_BCF = prototype_scores(found.vector_BF, self.support_CKF, self.real_CK, self.scale)
        logits_BC = self.scale * cosine_BC + self.bias_C
        attribution_BTC = self.scale * torch.einsum("btf,bcf->btc", found.token_BTF, prototype_BCF)
        attention_BT = (probability_BTG1 * self.ensemble_G1).sum((2, 3)).masked_fill(padding_BT, 0.0)
        return torch.softmax(logits_BC / self.temperature, -1), logits_BC, attention_BT, attribution_BTC

    def weighted(self, token_BTGX: Tensor, spelling_BTH: Tensor) -> tuple[Tensor, Tensor]:
        """Return attention probabilities [B, T, G, 1], and weighted tokens, part by part [B, T, F]."""
        value_BTGD, score_BTG1, squared_norm_BTG1 = torch.split(token_BTGX, [self.width, 1, 1], -1)
        probability_BTG1 = torch.softmax(score_BTG1, 1)
        weight_BTG1 = norm_weights(probability_BTG1, squared_norm_BTG1) if self.norm else probability_BTG1
        return probability_BTG1, torch.cat([(weight_BTG1 * value_BTGD).flatten(2), spelling_BTH], 2)

    @torch.no_grad()
    def part_lengths(self, tables: LookupTables, corpus: Corpus) -> list[float]:
        """Return the root mean square length of each part in texts; 1 if no text has it."""
        _, token_BTF = self.weighted(*self.inputs(tables, corpus)[1:])
        parts = torch.split(token_BTF.sum(1), [*[self.width] * self.views, BITS], 1)
        return [float(part_BD.square().sum(1).mean().sqrt()) or 1.0 for part_BD in parts]

    def inputs(self, tables: LookupTables, corpus: Corpus) -> tuple[Tensor, Tensor, Tensor]:
        """Return the inputs of `forward` for texts, as produced by the graph."""
        padding_BT, token_BTGX = tables.read(corpus)
        weight_V = tables.word_weights(corpus.types)
        code_VH = codes(corpus.types) * weight_V[:, None]
        spelling_BTH = np.zeros((*padding_BT.shape, BITS), np.float32)
        spelling_BTH[~padding_BT] = code_VH[corpus.token]
        weight_BT = np.zeros(padding_BT.shape, np.float32)
        weight_BT[~padding_BT] = weight_V[corpus.token]
        length_B1 = np.linalg.norm(weight_BT, axis=1, keepdims=True)
        spelling_BTH /= np.maximum(length_B1, np.float32(LEAST_LENGTH))[..., None]
        return torch.from_numpy(padding_BT), torch.from_numpy(token_BTGX), torch.from_numpy(spelling_BTH)

    @torch.no_grad()
    def answers(self, padding_BT: Tensor, token_BTGX: Tensor, spelling_BTH: Tensor) -> HeadOutputs:
        """Return `forward` as arrays."""
        probability_BC, logits_BC, attention_BT, attribution_BTC = self(padding_BT, token_BTGX, spelling_BTH)
        return probability_BC.numpy(), logits_BC.numpy(), attention_BT.numpy(), attribution_BTC.numpy()

    def graph(self) -> onnx.ModelProto:
        """Return `forward` in ONNX, and also the vectors of texts and the attention over support rows."""
        g = StringGraphBuilder("core")
        token_BTF = self._token_nodes(g)
        scaled_BTF = self._vector_nodes(g, token_BTF)
        support_CKF, real_CK, shape_2 = self._support_nodes(g)
        unit_CBF = self._score_nodes(g, support_CKF, real_CK, shape_2)
        unit_BFC = g.node("Transpose", unit_CBF, perm=[1, 2, 0])
        share_BTC = g.node("MatMul", scaled_BTF, unit_BFC)
        g.node("Mul", share_BTC, g.constant(self.scale, np.float32), name="contributions")
        return make_model(helper.make_graph(g.nodes, "head", _inputs(), _outputs(), g.constants))

    def _token_nodes(self, g: StringGraphBuilder) -> str:
        """Add `attention`; return what each token adds to the vector of its text, before normalisation [B, T, F]."""
        value_BTGD, score_BTG1, squared_norm_BTG1 = g.split("token", [self.width, 1, 1], axis=3)
        weight_BTG1 = probability_BTG1 = g.node("Softmax", score_BTG1, axis=1)
        part_BTG1 = g.node("Mul", probability_BTG1, g.constant(self.ensemble_G1.numpy(), np.float32))
        attention_BT = g.node("ReduceSum", part_BTG1, g.integers(2, 3), keepdims=0)
        g.node("Where", "padding", g.constant(0, np.float32), attention_BT, name="attention")
        if self.norm:
            square_BTG1 = g.node("Mul", g.node("Mul", probability_BTG1, probability_BTG1), squared_norm_BTG1)
            weight_BTG1 = g.node("Div", probability_BTG1, _length(g, square_BTG1, LEAST_SQUARE))
        weighted_BTGD = g.node("Mul", weight_BTG1, value_BTGD)
        views_BTF = g.node("Reshape", weighted_BTGD, g.integers(0, 0, self.views * self.width))
        parts_BTF = g.node("Concat", views_BTF, _spelling(g), axis=2)
        return g.node("Mul", parts_BTF, g.constant(self.factor_F.numpy(), np.float32))

    def _vector_nodes(self, g: StringGraphBuilder, token_BTF: str) -> str:
        """Add `embedding`; return what tokens add to it [B, T, F]."""
        sum_BF = g.node("ReduceSum", token_BTF, g.integers(1), keepdims=0)
        square_B1 = g.node("ReduceSumSquare", sum_BF, g.integers(1))
        length_B1 = g.node("Max", g.node("Sqrt", square_B1), g.constant(LEAST_LENGTH, np.float32))
        g.node("Div", sum_BF, length_B1, name=artifact.EMBEDDING)
        return g.node("Div", token_BTF, g.node("Unsqueeze", length_B1, g.integers(1)))

    def _support_nodes(self, g: StringGraphBuilder) -> tuple[str, str, str]:
        """Return support rows by label [C, K, F], which of them are real [C, K], and that shape; all constant."""
        support_SF = g.exchangeable(self.support_SF, np.float16, artifact.SUPPORT_ROWS)
        count_C = g.exchangeable(self.count_C, np.int64, artifact.SUPPORT_COUNTS)
        zero, one = g.constant(0, np.int64), g.constant(1, np.int64)
        wide_SF = g.node("Cast", support_SF, to=TensorProto.FLOAT)
        none_1F = g.constant(np.zeros((1, self.support_SF.shape[1])), np.float32)
        table_RF = g.node("Concat", wide_SF, none_1F, axis=0)
        count_C1 = g.node("Unsqueeze", count_C, g.integers(1))
        start_C1 = g.node("Unsqueeze", g.node("CumSum", count_C, zero, exclusive=1), g.integers(1))
        place_K = g.node("Range", zero, g.node("ReduceMax", count_C, keepdims=0), one)
        real_CK = g.node("Less", place_K, count_C1)
        # After the rows of a label comes the row of zeros, which is the last one.
        place_CK = g.node("Where", real_CK, g.node("Add", start_C1, place_K), g.constant(-1, np.int64))
        return g.node("Gather", table_RF, place_CK), real_CK, g.node("Shape", real_CK)

    def _score_nodes(self, g: StringGraphBuilder, support_CKF: str, real_CK: str, shape_2: str) -> str:
        """Add `support`, `logits` and `probabilities`; return the prototypes, of length 1 [C, B, F]."""
        scale = g.constant(self.scale, np.float32)
        row_MF = g.node("Reshape", support_CKF, g.integers(-1, self.support_SF.shape[1]))
        cosine_BM = g.node("MatMul", artifact.EMBEDDING, g.node("Transpose", row_MF, perm=[1, 0]))
        cosine_BCK = g.node("Reshape", cosine_BM, g.node("Concat", g.integers(-1), shape_2, axis=0))
        never_CK = g.node("Where", real_CK, g.constant(0, np.float32), g.constant(_NEVER, np.float32))
        score_BCK = g.node("Add", g.node("Mul", cosine_BCK, scale), never_CK)
        attention_BCK = g.node("Softmax", score_BCK, axis=2, name=artifact.SUPPORT)
        prototype_CBF = g.node("MatMul", g.node("Transpose", attention_BCK, perm=[1, 0, 2]), support_CKF)
        square_CB1 = g.node("ReduceSumSquare", prototype_CBF, g.integers(2))
        length_CB1 = g.node("Max", g.node("Sqrt", square_CB1), g.constant(LEAST_LENGTH, np.float32))
        length_BC = g.node("Transpose", g.node("Squeeze", length_CB1, g.integers(2)), perm=[1, 0])
        product_BC = g.node("ReduceSum", g.node("Mul", attention_BCK, cosine_BCK), g.integers(2), keepdims=0)
        scaled_BC = g.node("Mul", g.node("Div", product_BC, length_BC), scale)
        bias_C = g.exchangeable(self.bias_C.numpy(), np.float32, artifact.LABEL_BIAS)
        g.node("Add", scaled_BC, bias_C, name="logits")
        divided_BC = g.node("Div", "logits", g.constant(self.temperature, np.float32))
        g.node("Softmax", divided_BC, axis=1, name="probabilities")
        return g.node("Div", prototype_CBF, length_CB1)


def _spelling(g: StringGraphBuilder) -> str:
    """Return the code of each token times its weight [B, T, H], zero at padding."""
    # The squared weight of a token's word in the first view is that of its row; a word without a row has 1, the most.
    from_, to = g.integers(0, 0, -1), g.integers(1, 1, 2**31)
    square_1BT11 = g.node("Slice", "rows", from_, to, g.integers(0, 3, 4))
    square_BT1 = g.node("Squeeze", square_1BT11, g.integers(0, 4))
    absent = g.node("Equal", square_BT1, g.constant(0, np.float32))
    weight_BT1 = g.node("Sqrt", g.node("Where", absent, g.constant(1, np.float32), square_BT1))
    padding_BT1 = g.node("Unsqueeze", "padding", g.integers(2))
    weight_BT1 = g.node("Where", padding_BT1, g.constant(0, np.float32), weight_BT1)
    length_B11 = _length(g, g.node("Mul", weight_BT1, weight_BT1), LEAST_LENGTH**2)
    weight_BT1 = g.node("Div", weight_BT1, length_B11)
    # The bits are 0 and 1 here: signs are 2 b - 1.
    root = math.sqrt(BITS)
    sign_BTH = g.node(
        "Sub", g.node("Mul", hash_bits(g, "tokens"), g.constant(2 / root, np.float32)), g.constant(1 / root, np.float32)
    )
    return g.node("Mul", sign_BTH, weight_BT1)


def _length(g: StringGraphBuilder, square: str, least: float) -> str:
    """Return the root of the sum of squares over tokens, which are axis 1; the sum is taken to be at least `least`."""
    return g.node("Sqrt", g.node("Max", g.node("ReduceSum", square, g.integers(1)), g.constant(least, np.float32)))


def _inputs() -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info("tokens", TensorProto.STRING, ["batch", "tokens"]),
        helper.make_tensor_value_info("padding", TensorProto.BOOL, ["batch", "tokens"]),
        helper.make_tensor_value_info("token", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("rows", TensorProto.FLOAT, None),
    ]


def _outputs() -> list[onnx.ValueInfoProto]:
    shapes: dict[str, list[str | int]] = {
        "probabilities": ["batch", "labels"],
        "logits": ["batch", "labels"],
        "attention": ["batch", "tokens"],
        "contributions": ["batch", "tokens", "labels"],
        artifact.EMBEDDING: ["batch", "entries"],
        artifact.SUPPORT: ["batch", "labels", "support"],
    }
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
