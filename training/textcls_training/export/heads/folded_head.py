"""The scoring head of a folded model, as formulas and as a graph. Shapes as in `textcls_training.export.heads`."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from textcls_training.config.settings import Attention
from textcls_training.export.builder import GraphBuilder
from textcls_training.export.heads.outputs import HeadOutputs, ReadsTables, ensemble_bias, head_model
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration
from textcls_training.models.constants import LEAST_SQUARE
from textcls_training.models.ensemble import Classifier


class FoldedHead(ReadsTables):
    """Outputs from token sums whose columns are values, a score and a squared norm; every seed of every view is a
    group.

    The ensemble weight of a view is part of its values. Padding has the lowest score, so no mask is needed.

    Attributes:
        kind: how scores become weights.
        bias_C: the bias of all views together.
        ensemble_G1: the weight of each group in the attention.
        calibration: from logits to probabilities.
    """

    def __init__(
        self, classifiers: Sequence[Classifier], ensemble_weights: Sequence[float], calibration: AnyCalibration
    ) -> None:
        self.kind: Attention = classifiers[0].config.attention
        self.bias_C = ensemble_bias(classifiers, ensemble_weights)
        shares = [
            np.float32(weight) * one.attention_S for one, weight in zip(classifiers, ensemble_weights, strict=True)
        ]
        self.ensemble_G1 = np.concatenate(shares)[:, None]
        self.calibration = calibration

    def __call__(self, padding_BT: Any, token_BTGX: Any, xp: Any = np) -> HeadOutputs:
        """Return probabilities and logits [B, C], attention [B, T], attributions [B, T, C].

        The formulas are the same for NumPy arrays (`xp` is NumPy) and for PyTorch tensors, through which gradients
        flow.
        """
        value_BTGC, score_BTG1, squared_norm_BTG1 = token_BTGX[..., :-2], token_BTGX[..., -2:-1], token_BTGX[..., -1:]
        power_BTG1 = xp.exp(score_BTG1 - xp.amax(score_BTG1, 1, keepdims=True))
        probability_BTG1 = power_BTG1 / power_BTG1.sum(1, keepdims=True)
        if self.kind == "norm":
            square_BTG1 = probability_BTG1 * probability_BTG1 * squared_norm_BTG1
            square_B1G1 = xp.clip(square_BTG1.sum(1, keepdims=True), LEAST_SQUARE, None)
            # Where all squared norms are zero values are, too, so the floor under the sum of squares does no harm.
            token_logit_BTGC = probability_BTG1 / xp.sqrt(square_B1G1) * value_BTGC
            # As in `ops.norm_attributions`.
            weakened_BTGC = square_BTG1 / square_B1G1 * token_logit_BTGC.sum(1, keepdims=True)
            attribution_BTC = (1.5 * token_logit_BTGC - 0.5 * weakened_BTGC).sum(2)
        else:
            token_logit_BTGC = probability_BTG1 * value_BTGC
            attribution_BTC = token_logit_BTGC.sum(2)
        logits_BC = xp.asarray(self.bias_C) + token_logit_BTGC.sum(1).sum(1)
        attention_BT = (probability_BTG1 * xp.asarray(self.ensemble_G1)).sum(2)[..., 0] * ~padding_BT
        return self._probabilities(logits_BC, xp), logits_BC, attention_BT, attribution_BTC

    answers = __call__

    def _probabilities(self, logits_BC: Any, xp: Any) -> Any:
        found = self.calibration
        if isinstance(found, LabelSetCalibration):
            scale_C, shift_C = (xp.asarray(np.array(line, np.float32)) for line in (found.scale, found.shift))
            # The sigmoid, in a form that does not overflow.
            return 0.5 + 0.5 * xp.tanh(0.5 * (logits_BC * scale_C + shift_C))
        scaled_BC = logits_BC / np.float32(found.temperature).item()
        power_BC = xp.exp(scaled_BC - xp.amax(scaled_BC, 1, keepdims=True))
        return power_BC / power_BC.sum(1, keepdims=True)

    def graph(self) -> onnx.ModelProto:
        """Return `answers` in ONNX."""
        return self.graph_of(GraphBuilder("core"), "token")

    def graph_of(self, g: GraphBuilder, token_BTGX: str) -> onnx.ModelProto:
        """Return `answers` for a value of `g`, including the nodes of `g` before it."""
        number = partial(g.constant, dtype=np.float32)
        value_BTGC, score_BTG1, squared_norm_BTG1 = g.split(token_BTGX, [len(self.bias_C), 1, 1], axis=3)
        probability_BTG1 = g.node("Softmax", score_BTG1, axis=1, name=None if self.kind == "norm" else "weights")
        if self.kind == "norm":
            sum_BC = _norm_attributions(g, probability_BTG1, squared_norm_BTG1, value_BTGC)
        else:
            token_logit_BTGC = g.node("Mul", probability_BTG1, value_BTGC)
            g.node("ReduceSum", token_logit_BTGC, g.integers(2), keepdims=0, name="contributions")
            sum_BC = g.node("ReduceSum", "contributions", g.integers(1), keepdims=0)
        g.node("Add", sum_BC, number(self.bias_C), name="logits")
        part_BTG1 = g.node("Mul", probability_BTG1, number(self.ensemble_G1))
        attention_BT = g.node("ReduceSum", part_BTG1, g.integers(2, 3), keepdims=0)
        g.node("Where", "padding", number(0), attention_BT, name="attention")
        found = self.calibration
        if isinstance(found, LabelSetCalibration):
            scaled_BC = g.node("Mul", "logits", number(found.scale))
            g.node("Sigmoid", g.node("Add", scaled_BC, number(found.shift)), name="probabilities")
        else:
            g.node("Softmax", g.node("Div", "logits", number(found.temperature)), axis=1, name="probabilities")
        weights = helper.make_tensor_value_info("weights", TensorProto.FLOAT, ["batch", "tokens", "groups", 1])
        return head_model(g, len(self.bias_C), weights)


def _norm_attributions(g: GraphBuilder, probability_BTG1: str, squared_norm_BTG1: str, value_BTGC: str) -> str:
    """Name `weights` and `contributions` of `norm` attention; return the logits without the biases [B, C]."""
    square_BTG1 = g.node("Mul", g.node("Mul", probability_BTG1, probability_BTG1), squared_norm_BTG1)
    square_sum = g.node("ReduceSum", square_BTG1, g.integers(1))
    square_B1G1 = g.node("Max", square_sum, g.constant(LEAST_SQUARE, np.float32))
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
