"""AdamW for the few dense weights (Loshchilov and Hutter 2019, arXiv 1711.05101), by PyTorch's own function.

`torch.optim.AdamW` does the same sums, but any `torch.optim.Optimizer` imports PyTorch's compiler first, which takes
longer than to train on a thousand texts.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adamw import adamw

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Group:
    """Weights of one learning rate and one decay.

    Attributes:
        params: the weights.
        full_rate: learning rate at its highest.
        weight_decay: share of the learning rate by which weights shrink in a step.
    """

    def __init__(self, params: Iterable[Tensor], full_rate: float, weight_decay: float = 0.0) -> None:
        self.params = list(params)
        self.full_rate = full_rate
        self.weight_decay = weight_decay
        self._mean = [torch.zeros_like(p) for p in self.params]
        self._square = [torch.zeros_like(p) for p in self.params]
        self._steps = [torch.zeros((), device=p.device) for p in self.params]

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Move the weights that have a gradient, at `factor` times the full rate, and forget the gradients."""
        rows = zip(self.params, self._mean, self._square, self._steps, strict=True)
        moved = [(p, p.grad, mean, square, steps) for p, mean, square, steps in rows if p.grad is not None]
        if not moved:
            return
        params, grads, means, squares, steps = (list(part) for part in zip(*moved, strict=True))
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
        for parameter in self.params:
            parameter.grad = None
