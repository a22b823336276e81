"""AdamW for the few dense weights (Loshchilov and Hutter 2019, arXiv 1711.05101).

AdamW is PyTorch's own function. `torch.optim.AdamW` computes the same, but any `torch.optim.Optimizer` imports
PyTorch's compiler first, which takes longer than training on a thousand texts.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from textcls_torch.models.classifier import ViewClassifier
from textcls_training.config.settings import OptimConfig
from textcls_training.fit.schedule import BETA1, BETA2, EPSILON


class AdamWGroup:
    """Weights with one learning rate and one decay.

    Attributes:
        params: the weights.
        full_rate: the highest learning rate.
        weight_decay: the share of the learning rate by which weights shrink per step.
    """

    def __init__(self, params: Iterable[Tensor], full_rate: float, weight_decay: float = 0.0) -> None:
        self.params = list(params)
        self.full_rate = full_rate
        self.weight_decay = weight_decay
        self._mean = [torch.zeros_like(p) for p in self.params]
        self._square = [torch.zeros_like(p) for p in self.params]
        self._steps = [torch.zeros((), device=p.device) for p in self.params]

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights, and everything else that later steps depend on, by name."""
        lists = (("weight", self.params), ("mean", self._mean), ("square", self._square), ("steps", self._steps))
        return {f"{name}.{i}": tensor for name, tensors in lists for i, tensor in enumerate(tensors)}

    @torch.no_grad()
    def step(self, factor: float | Tensor) -> None:
        """Update the weights that have a gradient, at `factor` times the full rate, and clear the gradients.

        In a recorded step the factor is a tensor, which is read anew each time.
        """
        params, grads, means, squares, steps = [], [], [], [], []
        for i, parameter in enumerate(self.params):
            if parameter.grad is not None:
                params.append(parameter)
                grads.append(parameter.grad)
                means.append(self._mean[i])
                squares.append(self._square[i])
                steps.append(self._steps[i])
        if not params:
            return
        adamw(
            params,
            grads,
            means,
            squares,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=BETA1,
            beta2=BETA2,
            lr=factor * self.full_rate,
            weight_decay=self.weight_decay,
            eps=EPSILON,
            maximize=False,
        )
        self.forget()

    def forget(self) -> None:
        """Clear the gradients."""
        for parameter in self.params:
            parameter.grad = None


def dense_groups(
    models: Sequence[ViewClassifier], embeddings: Sequence[Tensor], config: OptimConfig
) -> list[AdamWGroup]:
    """Return the groups of all dense weights: those of the classifiers, and those that embeddings leave to AdamW."""
    heads, mixing, others = [], [], []
    for model in models:
        heads.append(model.head.weight)
        others += [*model.attention.parameters(), model.head.bias]
        if model.mixing is not None:
            mixing += list(model.mixing.parameters())
    groups = [AdamWGroup(others, config.rate), AdamWGroup(heads, config.rate, config.head_decay)]
    if mixing:
        groups.append(AdamWGroup(mixing, config.mixing_rate))
    if embeddings:
        groups.append(AdamWGroup(embeddings, config.bits_rate))
    return groups
