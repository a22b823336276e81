"""What every scoring head reads and gives, and the biases that it starts from. Shapes as in `export.heads`."""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

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
