"""From a trained model to the vectors of texts that prototypes compare: its views without their linear heads.

The vector of a text consists of parts: what the attention of each view sums, and its spelling, the sum of the codes of
its words. Words not seen in training have no row, but each has a code, so that any words that a text shares with an
example count.

Shapes: V vectors of words, D width of a part.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.layers import Linear
from textcls_torch.models.modules import module_of
from textcls_training.models.calibration import PrototypeCalibration
from textcls_training.models.ensemble import Classifier, TrainedModel, VectorView


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """An encoder that computes vectors of texts.

    Attributes:
        model: views whose heads give the entries of a vector instead of logits, all of the same width.
        calibration: the weights of its views and of the spelling.
    """

    model: TrainedModel
    calibration: PrototypeCalibration

    @property
    def width(self) -> int:
        """The number of entries per view."""
        return self.model.classifiers[0].labels


def text_encoder(model: TrainedModel, calibration: PrototypeCalibration) -> TextEncoder:
    """Return the encoder within a trained model.

    Args:
        model: its views have tables of rows, linear scores, one seed, and no mixing layer.
        calibration: the weights of its parts, found on validation rows.
    """
    width = model.hashed_views[0].classifier.config.dim
    views: list[Any] = []
    for view in model.table_views:
        weight = torch.eye(width) if not isinstance(view, VectorView) else _directions(view, width)
        views.append(replace(view, classifier=_with_head(view.classifier, weight)))
    return TextEncoder(replace(model, views=views), calibration)


def _directions(view: VectorView, width: int) -> torch.Tensor:
    """Return the directions [D, F] in which the words of a file differ most: all of them if there are no more."""
    row_VF = view.space.vectors.row_VD.astype(np.float64)
    _, direction_FF = np.linalg.eigh(row_VF.T @ row_VF)
    found_FD = direction_FF[:, ::-1][:, :width]
    # The decomposition leaves the sign of a direction open: make its largest entry positive.
    sign_D = np.sign(found_FD[np.abs(found_FD).argmax(0), np.arange(found_FD.shape[1])])
    weight_DF = np.zeros((width, row_VF.shape[1]))
    weight_DF[: found_FD.shape[1]] = (found_FD * sign_D).T
    return torch.from_numpy(weight_DF.astype(np.float32))


def _with_head(classifier: Classifier, weight_DF: torch.Tensor) -> ViewClassifier:
    """Return the classifier with a head that maps the sums of the attention linearly, without biases."""
    found = module_of(classifier)
    found.head = Linear(weight_DF.shape[1], len(weight_DF))
    found.head.weight = nn.Parameter(weight_DF)
    found.head.bias = nn.Parameter(torch.zeros(len(weight_DF)))
    return found.eval()
