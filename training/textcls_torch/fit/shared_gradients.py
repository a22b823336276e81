"""The gradient of a step whose texts are dealt to shards, in PyTorch; how many processes compute it changes no bit.

A shard's gradient has two kinds of arrays. What all texts share, as dense weights, has the same shape in every shard
and is added up in the order of the shards. What each text has for itself, as the vectors of its tokens, is laid end to
end in the order of the texts: of it nothing is added up before the table moves, which takes the whole batch.

Shapes: K shards, N tokens of a shard or a batch, D width, B texts, T tokens of the longest one.
"""

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls_training.fit.processes import Processes


class SharedGradient(NamedTuple):
    """The gradient of some texts.

    Attributes:
        total: of what all texts share, and the loss: each summed over the texts.
        own: of what each text has for itself [N, D].
    """

    total: Sequence[Tensor]
    own: Sequence[Tensor]


class Layout(NamedTuple):
    """The shapes of a gradient.

    Attributes:
        total: the shape of each array that all texts share.
        widths: of the rows of each array that texts have for themselves.
    """

    total: Sequence[Sequence[int]]
    widths: Sequence[int]

    def sizes(self, rows: Sequence[int]) -> list[int]:
        """Return how many numbers each array has, with so many rows of each that texts have for themselves."""
        return [*map(math.prod, self.total), *(n * width for n, width in zip(rows, self.widths, strict=True))]


def gradient_of_shards(
    layout: Layout,
    rows_K: Sequence[Sequence[int]],
    compute: Callable[[int], SharedGradient],
    processes: Processes,
) -> SharedGradient:
    """Return the gradient of a batch.

    Args:
        layout: the shapes of all gradients.
        rows_K: of each shard how many rows texts have for themselves, an array each.
        compute: the number of a shard -> its gradient.
        processes: who computes them.
    """
    sizes_K = [layout.sizes(rows) for rows in rows_K]
    flat_K = processes.shared([*map(sum, sizes_K)], lambda k: _flat(compute(k)))
    array_K = [torch.split(flat, sizes) for flat, sizes in zip(flat_K, sizes_K, strict=True)]
    shared = len(layout.total)
    total = [_sum(arrays[i] for arrays in array_K).view(tuple(shape)) for i, shape in enumerate(layout.total)]
    own = [
        torch.cat([arrays[shared + i] for arrays in array_K]).view(-1, width) for i, width in enumerate(layout.widths)
    ]
    return SharedGradient(total, own)


def padded(grad_ND: Tensor, mask_BT: Tensor) -> Tensor:
    """Lay the gradients of tokens, text by text, into a padded batch [B, T, D], zero at padding, on their device."""
    grad_BTD = torch.zeros(*mask_BT.shape, grad_ND.shape[1], device=grad_ND.device)
    grad_BTD[mask_BT.to(grad_ND.device)] = grad_ND
    return grad_BTD


def taken(weights: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients of weights, zero where there is none, and take them away."""
    found = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in weights]
    for weight in weights:
        weight.grad = None
    return found


def arrays_of(weights: Sequence[Tensor]) -> list[NDArray[Any]]:
    """Return weights as arrays of this machine's memory."""
    return [weight.detach().cpu().numpy() for weight in weights]


def checksums(arrays: Sequence[NDArray[Any]]) -> list[int]:
    """Return a number of each array that another array hardly has."""
    return [zlib.crc32(np.ascontiguousarray(array).data.cast("B")) for array in arrays]


def _flat(gradient: SharedGradient) -> Tensor:
    return torch.cat([each.detach().reshape(-1).cpu() for each in (*gradient.total, *gradient.own)])


def _sum(arrays: Iterable[Tensor]) -> Tensor:
    """Add up one after the other."""
    first, *others = arrays
    total = first.clone()
    for each in others:
        total += each
    return total
