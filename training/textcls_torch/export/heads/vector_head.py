"""The scoring head of every other model: the trained module itself. Shapes as in `textcls_training.export.heads`."""

from collections.abc import Sequence
from functools import reduce

import onnx
import torch
from torch import Tensor, nn

from textcls_torch.export.tracer import trace
from textcls_torch.models.classifier import SeedAttention, ViewClassifier
from textcls_torch.models.mixing.building_blocks import StaticVector
from textcls_torch.models.modules import module_of
from textcls_training.data.arrays import Bools, Float32
from textcls_training.export.builder import GraphBuilder
from textcls_training.export.heads.outputs import HeadOutputs, ReadsTables, head_model
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration
from textcls_training.models.ensemble import Classifier


class VectorHead(nn.Module, ReadsTables):
    """Outputs from token sums whose columns are vectors and a squared norm; every view is a group.

    Attributes:
        temperature: with one label per text, the divisor of logits before the softmax.
        scale_C: with several, the factor of each label's logit before the sigmoid; None for one label per text.
        shift_C: what is then added to it.
    """

    temperature: Tensor
    scale_C: Tensor | None
    shift_C: Tensor | None

    def __init__(
        self, classifiers: Sequence[Classifier], ensemble_weights: Sequence[float], calibration: AnyCalibration
    ) -> None:
        super().__init__()
        self.views = [folded_copy(classifier) for classifier in classifiers]
        self.classifiers = nn.ModuleList(self.views)  # so that their weights are those of this module
        self.register_buffer("share_V", torch.tensor(ensemble_weights))
        if isinstance(calibration, LabelSetCalibration):
            self.register_buffer("scale_C", torch.tensor(calibration.scale))
            self.register_buffer("shift_C", torch.tensor(calibration.shift))
        else:
            self.register_buffer("temperature", torch.tensor(calibration.temperature))
            self.scale_C = self.shift_C = None
        self.share_V: Tensor
        self.eval()

    def forward(self, padding_BT: Tensor, token_BTVX: Tensor) -> HeadOutputs:
        """Return probabilities and logits [B, C], attention [B, T], attributions [B, T, C]."""
        mask_BT = ~padding_BT
        token_BTVX = token_BTVX * mask_BT.unsqueeze(-1).unsqueeze(-1)
        parts = []
        for i, classifier in enumerate(self.views):
            x_BTD, squared_norm_BT1 = torch.split(token_BTVX[:, :, i], [token_BTVX.shape[-1] - 1, 1], -1)
            parts.append([part * self.share_V[i] for part in classifier.explain(x_BTD, squared_norm_BT1, mask_BT)])
        logits_BC, attention_BT, attribution_BTC = (
            reduce(torch.add, of_views) for of_views in zip(*parts, strict=True)
        )
        if self.scale_C is None or self.shift_C is None:
            probability_BC = torch.softmax(logits_BC / self.temperature, -1)
        else:
            probability_BC = torch.sigmoid(logits_BC * self.scale_C + self.shift_C)
        return probability_BC, logits_BC, attention_BT, attribution_BTC

    @torch.no_grad()
    def answers(self, padding_BT: Bools, token_BTVX: Float32) -> HeadOutputs:
        """Return `forward` for arrays, as arrays."""
        probability_BC, *others = self(torch.from_numpy(padding_BT), torch.from_numpy(token_BTVX))
        logits_BC, attention_BT, attribution_BTC = (part.numpy() for part in others)
        return probability_BC.numpy(), logits_BC, attention_BT, attribution_BTC

    def graph(self) -> onnx.ModelProto:
        """Return `forward` in ONNX."""
        g = GraphBuilder("core")
        trace(self, g, len(self.views), self.views[0].config.dim + 1)
        return head_model(g, self.views[0].labels)


def folded_copy(classifier: Classifier) -> ViewClassifier:
    """Return a copy on the CPU, as it is saved, with seeds and static vectors folded."""
    found = module_of(classifier).cpu()
    for module in found.modules():
        if isinstance(module, SeedAttention | StaticVector):
            module.fold()
    return found


def bytes_of(classifiers: Sequence[Classifier]) -> int:
    """Return the number of bytes that the weights of classifiers take in a file."""
    weights = [weight for classifier in classifiers for weight in folded_copy(classifier).state_dict().values()]
    return sum(4 * weight.numel() for weight in weights)
