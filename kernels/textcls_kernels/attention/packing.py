"""The metric of a head as K(K + 1)/2 numbers: the upper triangle of a symmetric K x K matrix, row by row.

    l(i, j) = i K - i (i - 1)/2 + (j - i)    for i <= j

Letters of the suffixes: H heads, K width of a head, L = K(K + 1)/2 packed numbers.
"""

import math

import torch


def packed_width(numbers: int) -> int | None:
    """Return K when `numbers` = K(K + 1)/2 for a whole K, else None."""
    width = (math.isqrt(8 * numbers + 1) - 1) // 2
    return width if width * (width + 1) // 2 == numbers else None


def _places(width: int, device: torch.device) -> torch.Tensor:
    """The index of each entry of the full matrix among the packed numbers; int64 [K, K], symmetric."""
    row, column = torch.arange(width, device=device)[:, None], torch.arange(width, device=device)[None, :]
    low, high = torch.minimum(row, column), torch.maximum(row, column)
    return low * width - low * (low - 1) // 2 + high - low


def symmetric(metric_HKK: torch.Tensor) -> torch.Tensor:
    """Return the symmetric part (M + M^T) / 2 of a full metric [H, K, K], same type."""
    return (metric_HKK + metric_HKK.mT) / 2


def pack_metric(metric_HKK: torch.Tensor) -> torch.Tensor:
    """Return the packed numbers of a full metric.

    Args:
        metric_HKK: [H, K, K], any floating type. Its upper triangle is read, the rest is not.

    Returns:
        [H, K(K + 1)/2], the upper triangle row by row, same type; differentiable.

    Raises:
        ValueError: the tensor is not [H, K, K].
    """
    if metric_HKK.dim() != 3 or metric_HKK.shape[1] != metric_HKK.shape[2]:
        raise ValueError(f"a full metric is [H, K, K]; expected a square matrix a head, got {list(metric_HKK.shape)}")
    row, column = torch.triu_indices(metric_HKK.shape[1], metric_HKK.shape[1], device=metric_HKK.device).unbind()
    return metric_HKK[:, row, column]


def unpack_metric(metric_HL: torch.Tensor) -> torch.Tensor:
    """Return the full symmetric metric of packed numbers.

    The gradient of a number is the full gradient's entry on the diagonal and the sum of its two entries off it.
    On a GPU that sum is an atomic addition of at most two terms, which is bitwise the same in either order.

    Args:
        metric_HL: [H, K(K + 1)/2], any floating type.

    Returns:
        [H, K, K], exactly symmetric, same type; differentiable.

    Raises:
        ValueError: the tensor is not [H, L], or L is not K(K + 1)/2 for any K.
    """
    width = packed_width(metric_HL.shape[1]) if metric_HL.dim() == 2 else None
    if width is None:
        raise ValueError(
            f"a packed metric is [H, K(K + 1)/2]; expected L = 36, 300, 528, ..., got {list(metric_HL.shape)}"
        )
    flat = _places(width, metric_HL.device).flatten()
    return metric_HL.index_select(1, flat).view(-1, width, width)


def full_metric(metric: torch.Tensor) -> torch.Tensor:
    """Return a metric, packed [H, K(K + 1)/2] or full [H, K, K] already, as the full one [H, K, K], same type.

    Raises:
        ValueError: the packed numbers are not K(K + 1)/2 for any K.
    """
    return metric if metric.dim() == 3 else unpack_metric(metric)
