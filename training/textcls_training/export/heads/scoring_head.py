"""Which scoring head a trained model is saved with. Shapes as in `textcls_training.export.heads`."""

from typing import Protocol

import onnx

from textcls_training.data.arrays import Bools, Float32
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.heads.outputs import HeadOutputs, ensemble_bias
from textcls_training.models.calibration import AnyCalibration
from textcls_training.models.ensemble import TrainedModel


class ScoringHead(Protocol):
    """From token sums to outputs: as formulas, and as a graph that must agree with them."""

    def answers(self, padding_BT: Bools, token_BTGX: Float32) -> HeadOutputs:
        """Return probabilities and logits [B, C], attention [B, T], attributions [B, T, C]."""

    def graph(self) -> onnx.ModelProto:
        """Return the same in ONNX."""


def scoring_head(model: TrainedModel, calibration: AnyCalibration) -> ScoringHead:
    """Return the scoring head of the saved model."""
    if model.foldable:
        return FoldedHead(model.classifiers, model.ensemble_weights, calibration)
    from textcls_training.export.heads.vector_head import VectorHead

    return VectorHead(model.classifiers, model.ensemble_weights, calibration)


def empty_text_logits(model: TrainedModel) -> tuple[float, ...]:
    """Return the logits of a text without tokens: the biases."""
    return tuple(ensemble_bias(model.classifiers, model.ensemble_weights).tolist())
