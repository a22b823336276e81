"""The losses of steps, reported when read: many at once on a GPU, as reading one waits for the steps before it."""

import math
from typing import Final, NamedTuple

import torch
from torch import Tensor

from textcls_training.fit.any_trainer import diverged
from textcls_training.fit.callbacks import Callback

# Steps whose losses a GPU keeps: more would save little, and a training that has diverged would go on for longer.
STEPS_ON_A_GPU: Final = 50


class _Pending(NamedTuple):
    step: int
    rows: int
    shares: int
    loss: Tensor


class PendingLosses:
    """Losses that have not been read yet."""

    def __init__(self, callback: Callback, at_once: int) -> None:
        """Report `at_once` steps at a time to `callback`."""
        self._callback, self._at_once = callback, at_once
        self._pending: list[_Pending] = []

    def add(self, step: int, rows: int, loss: Tensor, shares: int) -> None:
        """Add the loss of a step, summed over `shares` shares.

        Raises:
            ConfigError: this loss or an earlier one was read and is not finite.
        """
        self._pending.append(_Pending(step, rows, shares, loss))
        if len(self._pending) >= self._at_once:
            self.read()

    def read(self) -> None:
        """Read the pending losses, and report the mean loss per share of each step: per text and view, say.

        Raises:
            ConfigError: a loss is not finite.
        """
        pending, self._pending = self._pending, []
        sums = torch.stack([each.loss for each in pending]).tolist() if pending else []
        for each, loss in zip(pending, sums, strict=True):
            mean = loss / each.shares
            if not math.isfinite(mean):
                raise diverged(f" at step {each.step}: the loss is not finite")
            self._callback.step(each.rows, mean)
