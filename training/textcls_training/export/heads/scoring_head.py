"""The choice of the scoring head that a trained model is saved with. Shapes as in `textcls_training.export.heads`."""

from typing import Any, Protocol

import onnx

from textcls_training.data.corpus import Corpus
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.heads.linear_head import LinearHead
from textcls_training.export.heads.outputs import HeadOutputs, ensemble_bias
from textcls_training.models.calibration import AnyCalibration
from textcls_training.models.ensemble import TrainedModel
from textcls_training.torch_parts import torch_part


class ScoringHead(Protocol):
    """From token sums to outputs: as formulas, and as a graph that must agree with them."""

    def inputs(self, tables: Any, corpus: Corpus) -> tuple[Any, ...]:
        """Return the inputs of `answers` for texts, as produced by the text graph of `tables`."""

    def answers(self, *given: Any) -> HeadOutputs:
        """Return probabilities and logits [B, C], attention [B, T], attributions [B, T, C]."""

    def graph(self) -> onnx.ModelProto:
        """Return the same in ONNX."""


def scoring_head(model: TrainedModel, calibration: AnyCalibration) -> ScoringHead:
    """Return the scoring head of the saved model, whose labels have a linear head."""
    if model.foldable:
        return FoldedHead(model.classifiers, model.ensemble_weights, calibration)
    if model.linear:
        return LinearHead(model.classifiers, model.ensemble_weights, calibration)
    vector_head = torch_part("export.heads.vector_head").VectorHead
    head: ScoringHead = vector_head(model.classifiers, model.ensemble_weights, calibration)
    return head


def empty_text_logits(model: TrainedModel) -> tuple[float, ...]:
    """Return the logits of a text without tokens: the biases."""
    return tuple(ensemble_bias(model.classifiers, model.ensemble_weights).tolist())
