"""The numeric core of a saved model: from what tokens say to probabilities, logits, attention and contributions.

Where a view is `foldable`, its head and its seeds have gone into the tables, and a dozen ONNX nodes are left: they are
written down here, beside the PyTorch module that they must agree with. Every other core is exported by PyTorch from the
very module that was trained, so that no mixer is written twice; that takes seconds.

Shapes: B texts, T tokens, V views, C labels, S seeds, D width; G and X as in `textcls_training.lexicon`.
"""

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from textcls.errors import ArtifactError
from textcls_training import ops
from textcls_training.choices import Attention
from textcls_training.graph import OPSET, GraphBuilder, make_model
from textcls_training.mixing.parts import StaticVector
from textcls_training.model import SeedAttention, TextClassifier
from textcls_training.views import Fitted

INPUTS = ("padding", "token")
OUTPUTS = ("probabilities", "logits", "attention", "contributions")

Answers = tuple[Tensor, Tensor, Tensor, Tensor]


class FoldedCore(nn.Module):
    """Answers from token sums whose columns are values, a score and an energy; every seed of every view is a group.

    The share of a view in the logits is part of its values. Padding has the lowest of all scores, so no mask is needed.
    """

    def __init__(self, classifiers: Sequence[TextClassifier], shares: Sequence[float], temperature: float) -> None:
        super().__init__()
        config = classifiers[0].config
        self.kind: Attention = config.attention
        self.register_buffer("bias_C", _bias(classifiers, shares))
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


class VectorCore(nn.Module):
    """Answers from token sums whose columns are vectors and an energy; every view is a group."""

    def __init__(self, classifiers: Sequence[TextClassifier], shares: Sequence[float], temperature: float) -> None:
        super().__init__()
        self.views = [folded_copy(classifier) for classifier in classifiers]
        self.classifiers = nn.ModuleList(self.views)  # so that their weights are those of this module
        self.register_buffer("share_V", torch.tensor(shares))
        self.register_buffer("temperature", torch.tensor(temperature))
        self.share_V: Tensor
        self.temperature: Tensor

    def forward(self, padding_BT: Tensor, token_BTVX: Tensor) -> Answers:
        """Return probabilities and logits [B, C], attention [B, T], contributions [B, T, C]."""
        mask_BT = ~padding_BT
        token_BTVX = token_BTVX * mask_BT.unsqueeze(-1).unsqueeze(-1)
        parts = []
        for i, classifier in enumerate(self.views):
            x_BTD, energy_BT1 = torch.split(token_BTVX[:, :, i], [token_BTVX.shape[-1] - 1, 1], -1)
            parts.append([part * self.share_V[i] for part in classifier.explain(x_BTD, energy_BT1, mask_BT)])
        logits_BC, attention_BT, contributions_BTC = (
            torch.stack(of_views).sum(0) for of_views in zip(*parts, strict=True)
        )
        return torch.softmax(logits_BC / self.temperature, -1), logits_BC, attention_BT, contributions_BTC

    def graph(self) -> onnx.ModelProto:
        """Return `forward` in ONNX, by PyTorch's exporter.

        Raises:
            ArtifactError: the exporter gave nothing.
        """
        batch, tokens = torch.export.Dim("batch", min=2), torch.export.Dim("tokens", min=2)
        ragged = {0: batch, 1: tokens}
        example = torch.zeros(2, 5, dtype=torch.bool), torch.zeros(2, 5, len(self.views), self.views[0].config.dim + 1)
        with _quiet_exporter(), torch.no_grad():
            program = torch.onnx.export(
                self,
                example,
                dynamo=True,
                opset_version=OPSET,
                verbose=False,
                input_names=list(INPUTS),
                output_names=list(OUTPUTS),
                dynamic_shapes=(ragged, ragged),
            )
        if program is None:
            raise ArtifactError("The export to ONNX gave nothing; nothing was written.")
        model: onnx.ModelProto = program.model_proto
        # Source positions and shapes of PyTorch's tracer: twice the size of a small model, and they hold local paths.
        for node in model.graph.node:
            del node.metadata_props[:]
        del model.graph.value_info[:]
        del model.graph.metadata_props[:]
        del model.metadata_props[:]
        return model


Core = FoldedCore | VectorCore


def serving_core(fitted: Fitted, temperature: float) -> Core:
    """Return the core of the saved model in PyTorch."""
    classifiers = [view.classifier for view in fitted.views]
    kind = FoldedCore if classifiers[0].foldable else VectorCore
    return kind(classifiers, fitted.shares, temperature).eval()


def empty_text_logits(fitted: Fitted) -> tuple[float, ...]:
    """What the model says of a text without tokens: the biases."""
    return tuple(_bias([view.classifier for view in fitted.views], fitted.shares).tolist())


@torch.no_grad()
def _bias(classifiers: Sequence[TextClassifier], shares: Sequence[float]) -> Tensor:
    bias_VC = torch.stack([classifier.head.bias.cpu() for classifier in classifiers])
    return torch.tensor(shares) @ bias_VC


def folded_copy(classifier: TextClassifier) -> TextClassifier:
    """Return a copy on the CPU, as it is saved: of seeds and static vectors it has nothing but what they come to."""
    classifier = copy.deepcopy(classifier).cpu()
    for module in classifier.modules():
        if isinstance(module, SeedAttention | StaticVector):
            module.fold()
    return classifier


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """The exporter warns of its own internals and of packages that are not needed; what matters is the parity check."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
