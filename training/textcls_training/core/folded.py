"""The core of a folded model, as a module and as a graph. Shapes as in `textcls_training.core`."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from textcls_training import ops
from textcls_training.choices import Attention
from textcls_training.core.answers import OUTPUTS, Answers, shared_bias
from textcls_training.graph import GraphBuilder, make_model
from textcls_training.model import TextClassifier


class FoldedCore(nn.Module):
    """Answers from token sums whose columns are values, a score and an energy; every seed of every view is a group.

    The share of a view in the logits is part of its values. Padding has the lowest of all scores, so no mask is needed.
    """

    def __init__(self, classifiers: Sequence[TextClassifier], shares: Sequence[float], temperature: float) -> None:
        super().__init__()
        config = classifiers[0].config
        self.kind: Attention = config.attention
        self.register_buffer("bias_C", shared_bias(classifiers, shares))
        share_G = torch.tensor(shares).repeat_interleave(config.seeds) / config.seeds
        self.register_buffer("share_G1", share_G.unsqueeze(1))
        self.register_buffer("temperature", torch.tensor(temperature))
        self.bias_C: Tensor
        self.share_G1: Tensor
        self.temperature: Tensor

    def forward(self, padding_BT: Tensor, token_BTGX: Tensor) -> Answers:
        """Return probabilities and logits [B, C], attention [B, T], contributions [B, T, C]."""
        value_BTGC, score_BTG1, energy_BTG1 = torch.split(token_BTGX, [len(self.bias_C), 1, 1], -1)
        share_BTG1 = torch.softmax(score_BTG1, 1)
        norm = self.kind == "norm"
        weight_BTG1 = ops.norm_weights(share_BTG1, energy_BTG1) if norm else share_BTG1
        said_BTGC = weight_BTG1 * value_BTGC
        contributions_BTC = said_BTGC.sum(2)
        if norm:
            norm_share_BTG = ops.norm_shares(share_BTG1, energy_BTG1).squeeze(3)
            contributions_BTC = ops.norm_contributions(said_BTGC, norm_share_BTG)
        logits_BC = self.bias_C + said_BTGC.sum((1, 2))
        attention_BT = (share_BTG1 * self.share_G1).sum((2, 3)).masked_fill(padding_BT, 0.0)
        return torch.softmax(logits_BC / self.temperature, -1), logits_BC, attention_BT, contributions_BTC

    def graph(self) -> onnx.ModelProto:
        """Return `forward` in ONNX."""
        g = GraphBuilder("core")
        number = partial(g.constant, dtype=np.float32)
        value_BTGC, score_BTG1, energy_BTG1 = g.split("token", [len(self.bias_C), 1, 1], axis=3)
        share_BTG1 = g.node("Softmax", score_BTG1, axis=1, name=None if self.kind == "norm" else "weights")
        if self.kind == "norm":
            square_BTG1 = g.node("Mul", g.node("Mul", share_BTG1, share_BTG1), energy_BTG1)
            square_B1G1 = g.node("Max", g.node("ReduceSum", square_BTG1, g.integers(1)), number(ops.LEAST_SQUARE))
            weight_BTG1 = g.node("Div", share_BTG1, g.node("Sqrt", square_B1G1), name="weights")
            said_BTGC = g.node("Mul", weight_BTG1, value_BTGC)
            said_BTC = g.node("ReduceSum", said_BTGC, g.integers(2), keepdims=0)
            sum_BGC = g.node("ReduceSum", said_BTGC, g.integers(1), keepdims=0)
            # A text without any energy says nothing either, so the floor under its square does no harm.
            half_BTG1 = g.node("Div", square_BTG1, g.node("Mul", square_B1G1, number(2)))
            weakened_BTC = g.node("MatMul", g.node("Squeeze", half_BTG1, g.integers(3)), sum_BGC)
            g.node("Sub", g.node("Mul", said_BTC, number(1.5)), weakened_BTC, name="contributions")
            sum_BC = g.node("ReduceSum", sum_BGC, g.integers(1), keepdims=0)
        else:
            said_BTGC = g.node("Mul", share_BTG1, value_BTGC)
            g.node("ReduceSum", said_BTGC, g.integers(2), keepdims=0, name="contributions")
            sum_BC = g.node("ReduceSum", "contributions", g.integers(1), keepdims=0)
        g.node("Add", sum_BC, number(self.bias_C.numpy()), name="logits")
        part_BTG1 = g.node("Mul", share_BTG1, number(self.share_G1.numpy()))
        attention_BT = g.node("ReduceSum", part_BTG1, g.integers(2, 3), keepdims=0)
        g.node("Where", "padding", number(0), attention_BT, name="attention")
        g.node("Softmax", g.node("Div", "logits", number(self.temperature.numpy())), axis=1, name="probabilities")
        labels = len(self.bias_C)
        shapes: tuple[Sequence[str | int], ...] = (
            ("batch", labels),
            ("batch", labels),
            ("batch", "tokens"),
            ("batch", "tokens", labels),
        )
        values = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip(OUTPUTS, shapes, strict=True)
        ]
        values.append(helper.make_tensor_value_info("weights", TensorProto.FLOAT, ["batch", "tokens", "groups", 1]))
        given = [helper.make_tensor_value_info("padding", TensorProto.BOOL, ["batch", "tokens"])]
        given.append(helper.make_tensor_value_info("token", TensorProto.FLOAT, None))
        return make_model(helper.make_graph(g.nodes, "core", given, values, g.constants))
