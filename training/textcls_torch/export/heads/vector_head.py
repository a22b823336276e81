"""The scoring head of every other model: the trained module itself. Shapes as in `textcls_training.export.heads`."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import onnx
import torch
from torch import Tensor, nn

from textcls.errors import ArtifactError
from textcls_torch.models.classifier import SeedAttention, ViewClassifier
from textcls_torch.models.mixing.building_blocks import StaticVector
from textcls_torch.models.modules import module_of
from textcls_training.data.arrays import Bools, Float32
from textcls_training.data.corpus import Corpus
from textcls_training.export.heads.outputs import INPUTS, OUTPUTS, HeadOutputs, Tables
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration
from textcls_training.models.ensemble import Classifier
from textcls_training.models.opset import OPSET


class VectorHead(nn.Module):
    """Outputs from token sums whose columns are vectors and a squared norm; every view is a group.

    Attributes:
        temperature: of one label a text, what logits are divided by before the softmax.
        scale_C: of several, what the logit of each label is multiplied by before the sigmoid; None for one label a
            text.
        shift_C: what is added to it.
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
        self.register_buffer("share_V", torch.tensor(ensemble_weights))  # by this name in the file
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
            torch.stack(of_views).sum(0) for of_views in zip(*parts, strict=True)
        )
        if self.scale_C is None or self.shift_C is None:
            probability_BC = torch.softmax(logits_BC / self.temperature, -1)
        else:
            probability_BC = torch.sigmoid(logits_BC * self.scale_C + self.shift_C)
        return probability_BC, logits_BC, attention_BT, attribution_BTC

    def inputs(self, tables: Tables, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding and token sums of texts."""
        return tables.read(corpus)

    @torch.no_grad()
    def answers(self, padding_BT: Bools, token_BTVX: Float32) -> HeadOutputs:
        """Return `forward` of arrays, as arrays."""
        probability_BC, *others = self(torch.from_numpy(padding_BT), torch.from_numpy(token_BTVX))
        logits_BC, attention_BT, attribution_BTC = (part.numpy() for part in others)
        return probability_BC.numpy(), logits_BC, attention_BT, attribution_BTC

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


def folded_copy(classifier: Classifier) -> ViewClassifier:
    """Return a copy on the CPU, as it is saved: of seeds and static vectors it has nothing but what they come to."""
    found = module_of(classifier).cpu()
    for module in found.modules():
        if isinstance(module, SeedAttention | StaticVector):
            module.fold()
    return found


def bytes_of(classifiers: Sequence[Classifier]) -> int:
    """Return how many bytes the weights of classifiers take in a file."""
    weights = [weight for classifier in classifiers for weight in folded_copy(classifier).state_dict().values()]
    return sum(4 * weight.numel() for weight in weights)


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
