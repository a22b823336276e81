"""What every scoring head reads and gives, and where it begins and ends alike: biases, and probabilities of logits.

Shapes as in `export.heads`.
"""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn

from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration
from textcls_training.models.classifier import ViewClassifier

# Their names in a saved graph.
INPUTS: Final = ("padding", "token")
OUTPUTS: Final = ("probabilities", "logits", "attention", "contributions")

# Probabilities and logits [B, C], attention [B, T], attributions [B, T, C]: the output `contributions`.
HeadOutputs = tuple[Tensor, Tensor, Tensor, Tensor]


@torch.no_grad()
def ensemble_bias(classifiers: Sequence[ViewClassifier], ensemble_weights: Sequence[float]) -> Tensor:
    """Return the biases of all views together [C], each view's times its ensemble weight."""
    bias_VC = torch.stack([classifier.head.bias.cpu() for classifier in classifiers])
    return torch.tensor(ensemble_weights) @ bias_VC


class CalibratedHead(nn.Module):
    """A scoring head, which makes probabilities of logits as validation rows have fitted it.

    Attributes:
        temperature: of one label a text, what logits are divided by before the softmax.
        scale_C: of several, what the logit of each label is multiplied by before the sigmoid; None for one label a
            text.
        shift_C: what is added to it.
    """

    temperature: Tensor
    scale_C: Tensor | None
    shift_C: Tensor | None

    def calibrate(self, calibration: AnyCalibration) -> None:
        """Take over what was fitted."""
        if isinstance(calibration, LabelSetCalibration):
            self.register_buffer("scale_C", torch.tensor(calibration.scale))
            self.register_buffer("shift_C", torch.tensor(calibration.shift))
        else:
            self.register_buffer("temperature", torch.tensor(calibration.temperature))
            self.scale_C = self.shift_C = None

    def probabilities(self, logits_BC: Tensor) -> Tensor:
        """Return the probabilities of logits [B, C]."""
        if self.scale_C is None or self.shift_C is None:
            return torch.softmax(logits_BC / self.temperature, -1)
        return torch.sigmoid(logits_BC * self.scale_C + self.shift_C)
