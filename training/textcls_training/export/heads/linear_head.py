"""The scoring head of a linear model whose tables keep token vectors because there are many labels.

Shapes as in `textcls_training.export.heads`; Y columns per group: a value for each label, and a score.
"""

from collections.abc import Sequence

import numpy as np
import onnx

from textcls_training.data.arrays import Bools, Float32
from textcls_training.export.builder import GraphBuilder
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.heads.outputs import HeadOutputs, ReadsTables
from textcls_training.export.tables import NO_SCORE
from textcls_training.models.calibration import AnyCalibration
from textcls_training.models.ensemble import Classifier


class LinearHead(ReadsTables):
    """Outputs from token sums whose columns are vectors and a squared norm; every view is a group.

    One matrix per view, as a formula and in the graph, turns them into what the tables of a folded model contain; from
    there on the head is that of such a model, with every seed of every view as a group.
    """

    def __init__(
        self, classifiers: Sequence[Classifier], ensemble_weights: Sequence[float], calibration: AnyCalibration
    ) -> None:
        self.folded = FoldedHead(classifiers, ensemble_weights, calibration)
        self.weights_DSY: list[Float32] = []
        for classifier, weight in zip(classifiers, ensemble_weights, strict=True):
            weight_DSY = classifier.folded(np.eye(classifier.config.dim, dtype=np.float32))
            weight_DSY[..., :-1] *= np.float32(weight)
            self.weights_DSY.append(weight_DSY)

    @staticmethod
    def bytes_of(classifiers: Sequence[Classifier]) -> int:
        """Return how many bytes the matrices take in a file."""
        return sum(4 * one.config.dim * one.config.seeds * (one.labels + 1) for one in classifiers)

    def answers(self, padding_BT: Bools, token_BTVX: Float32) -> HeadOutputs:
        """Return probabilities and logits [B, C], attention [B, T], attributions [B, T, C]."""
        groups = []
        for view, weight_DSY in enumerate(self.weights_DSY):
            column_BTSY = np.tensordot(token_BTVX[:, :, view, :-1], weight_DSY, 1)
            column_BTSY[padding_BT, :, -1] = NO_SCORE
            squared_norm_BTS1 = np.repeat(token_BTVX[:, :, view, None, -1:], weight_DSY.shape[1], 2)
            groups.append(np.concatenate([column_BTSY, squared_norm_BTS1], 3))
        return self.folded(padding_BT, np.concatenate(groups, 2))

    def graph(self) -> onnx.ModelProto:
        """Return `answers` in ONNX."""
        g = GraphBuilder("core")
        views = g.split("token", [1] * len(self.weights_DSY), axis=2)
        groups = [self._group(g, view, weight) for view, weight in zip(views, self.weights_DSY, strict=True)]
        columns_BTGX = groups[0] if len(groups) == 1 else g.node("Concat", *groups, axis=2)
        return self.folded.graph_of(g, columns_BTGX)

    @staticmethod
    def _group(g: GraphBuilder, token_BT1X: str, weight_DSY: Float32) -> str:
        """Return the columns of the seeds of a view [B, T, S, X]."""
        dim, seeds, columns = weight_DSY.shape
        vector_BT1D, squared_norm_BT11 = g.split(token_BT1X, [dim, 1], axis=3)
        flat_BT1Z = g.node("MatMul", vector_BT1D, g.constant(weight_DSY.reshape(dim, -1), np.float32))
        value_BTSC, score_BTS1 = g.split(
            g.node("Reshape", flat_BT1Z, g.integers(0, 0, seeds, columns)), [columns - 1, 1], axis=3
        )
        padding_BT11 = g.node("Unsqueeze", "padding", g.integers(2, 3))
        score_BTS1 = g.node("Where", padding_BT11, g.constant(NO_SCORE, np.float32), score_BTS1)
        squared_norm_BTS1 = g.node("Tile", squared_norm_BT11, g.integers(1, 1, seeds, 1))
        return g.node("Concat", value_BTSC, score_BTS1, squared_norm_BTS1, axis=3)
