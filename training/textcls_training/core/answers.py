"""What every core reads and answers, and the biases that it starts from. Shapes as in `textcls_training.core`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from textcls_training.model import TextClassifier

INPUTS = ("padding", "token")
OUTPUTS = ("probabilities", "logits", "attention", "contributions")

Answers = tuple[Tensor, Tensor, Tensor, Tensor]


@torch.no_grad()
def shared_bias(classifiers: Sequence[TextClassifier], shares: Sequence[float]) -> Tensor:
    """Return the biases of all views together [C], each view's weighed by its share."""
    bias_VC = torch.stack([classifier.head.bias.cpu() for classifier in classifiers])
    return torch.tensor(shares) @ bias_VC
