"""The scoring head of a folded model, as a module and as a graph. Shapes as in `textcls_training.export.heads`."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor

from textcls_training.config.settings import Attention
from textcls_training.export.builder import GraphBuilder, make_model
from textcls_training.export.heads.outputs import OUTPUTS, CalibratedHead, HeadOutputs, ensemble_bias
from textcls_training.models import ops
from textcls_training.models.calibration import AnyCalibration
from textcls_training.models.classifier import ViewClassifier


class FoldedHead(CalibratedHead):
    """Outputs from token sums whose columns are values, a score and a squared norm; every seed of every view is a
    group.

    The ensemble weight of a view is part of its values. Padding has the lowest of all scores, so no mask is needed.
    """

    def __init__(
        self, classifiers: Sequence[ViewClassifier], ensemble_weights: Sequence[float], calibration: AnyCalibration
    ) -> None:
        super().__init__()
        config = classifiers[0].config
        self.kind: Attention = config.attention
        self.register_buffer("bias_C", ensemble_bias(classifiers, ensemble_weights))
        weight_G = torch.tensor(ensemble_weights).repeat_interleave(config.seeds) / config.seeds
        self.register_buffer("ensemble_G1", weight_G.unsqueeze(1))
        self.calibrate(calibration)
        self.bias_C: Tensor
        self.ensemble_G1: Tensor

    def forward(self, padding_BT: Tensor, token_BTGX: Tensor) -> HeadOutputs:
        """Return probabilities and logits [B, C], attention [B, T], attributions [B, T, C]."""
        value_BTGC, score_BTG1, squared_norm_BTG1 = torch.split(token_BTGX, [len(self.bias_C), 1, 1], -1)
        probability_BTG1 = torch.softmax(score_BTG1, 1)
        norm = self.kind == "norm"
        weight_BTG1 = ops.norm_weights(probability_BTG1, squared_norm_BTG1) if norm else probability_BTG1
        token_logit_BTGC = weight_BTG1 * value_BTGC
        attribution_BTC = token_logit_BTGC.sum(2)
        if norm:
            fraction_BTG = ops.norm_fractions(probability_BTG1, squared_norm_BTG1).squeeze(3)
            attribution_BTC = ops.norm_attributions(token_logit_BTGC, fraction_BTG)
        logits_BC = self.bias_C + token_logit_BTGC.sum((1, 2))
        attention_BT = (probability_BTG1 * self.ensemble_G1).sum((2, 3)).masked_fill(padding_BT, 0.0)
        return self.probabilities(logits_BC), logits_BC, attention_BT, attribution_BTC

    def graph(self) -> onnx.ModelProto:
        """Return `forward` in ONNX."""
        g = GraphBuilder("core")
        number = partial(g.constant, dtype=np.float32)
        value_BTGC, score_BTG1, squared_norm_BTG1 = g.split("token", [len(self.bias_C), 1, 1], axis=3)
        probability_BTG1 = g.node("Softmax", score_BTG1, axis=1, name=None if self.kind == "norm" else "weights")
        if self.kind == "norm":
            sum_BC = _norm_attributions(g, probability_BTG1, squared_norm_BTG1, value_BTGC)
        else:
            token_logit_BTGC = g.node("Mul", probability_BTG1, value_BTGC)
            g.node("ReduceSum", token_logit_BTGC, g.integers(2), keepdims=0, name="contributions")
            sum_BC = g.node("ReduceSum", "contributions", g.integers(1), keepdims=0)
        g.node("Add", sum_BC, number(self.bias_C.numpy()), name="logits")
        part_BTG1 = g.node("Mul", probability_BTG1, number(self.ensemble_G1.numpy()))
        attention_BT = g.node("ReduceSum", part_BTG1, g.integers(2, 3), keepdims=0)
        g.node("Where", "padding", number(0), attention_BT, name="attention")
        if self.scale_C is None or self.shift_C is None:
            g.node("Softmax", g.node("Div", "logits", number(self.temperature.numpy())), axis=1, name="probabilities")
        else:
            scaled_BC = g.node("Mul", "logits", number(self.scale_C.numpy()))
            g.node("Sigmoid", g.node("Add", scaled_BC, number(self.shift_C.numpy())), name="probabilities")
        return make_model(helper.make_graph(g.nodes, "head", _inputs(), _outputs(len(self.bias_C)), g.constants))


def _norm_attributions(g: GraphBuilder, probability_BTG1: str, squared_norm_BTG1: str, value_BTGC: str) -> str:
    """Name `weights` and `contributions` of `norm` attention; return the logits without the biases [B, C]."""
    square_BTG1 = g.node("Mul", g.node("Mul", probability_BTG1, probability_BTG1), squared_norm_BTG1)
    square_sum = g.node("ReduceSum", square_BTG1, g.integers(1))
    square_B1G1 = g.node("Max", square_sum, g.constant(ops.LEAST_SQUARE, np.float32))
    weight_BTG1 = g.node("Div", probability_BTG1, g.node("Sqrt", square_B1G1), name="weights")
    token_logit_BTGC = g.node("Mul", weight_BTG1, value_BTGC)
    token_logit_BTC = g.node("ReduceSum", token_logit_BTGC, g.integers(2), keepdims=0)
    sum_BGC = g.node("ReduceSum", token_logit_BTGC, g.integers(1), keepdims=0)
    # Where all squared norms are zero values are, too, so the floor under the sum of squares does no harm.
    half_BTG1 = g.node("Div", square_BTG1, g.node("Mul", square_B1G1, g.constant(2, np.float32)))
    weakened_BTC = g.node("MatMul", g.node("Squeeze", half_BTG1, g.integers(3)), sum_BGC)
    more_BTC = g.node("Mul", token_logit_BTC, g.constant(1.5, np.float32))
    g.node("Sub", more_BTC, weakened_BTC, name="contributions")
    return g.node("ReduceSum", sum_BGC, g.integers(1), keepdims=0)


def _inputs() -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info("padding", TensorProto.BOOL, ["batch", "tokens"]),
        helper.make_tensor_value_info("token", TensorProto.FLOAT, None),
    ]


def _outputs(labels: int) -> list[onnx.ValueInfoProto]:
    shapes: tuple[Sequence[str | int], ...] = (
        ("batch", labels),
        ("batch", labels),
        ("batch", "tokens"),
        ("batch", "tokens", labels),
    )
    values = []
    for name, shape in zip(OUTPUTS, shapes, strict=True):
        values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    values.append(helper.make_tensor_value_info("weights", TensorProto.FLOAT, ["batch", "tokens", "groups", 1]))
    return values
