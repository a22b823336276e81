"""The losses of steps, told when they are read: on a GPU many at once, as reading one waits for the steps before it."""

import math
from typing import Final, NamedTuple

import torch
from torch import Tensor

from textcls_training.fit.any_trainer import diverged
from textcls_training.fit.callbacks import Callback

# Steps whose losses a GPU keeps: more would bring little, and a training that has diverged would go on for longer.
STEPS_ON_A_GPU: Final = 50


class _Pending(NamedTuple):
    step: int
    rows: int
    shares: int
    loss: Tensor


class PendingLosses:
    """Losses that nobody has read yet."""

    def __init__(self, callback: Callback, at_once: int) -> None:
        """Tell `callback` of so many steps at once."""
        self._callback, self._at_once = callback, at_once
        self._pending: list[_Pending] = []

    def add(self, step: int, rows: int, views: int, loss: Tensor) -> None:
        """Take the loss of a step, summed over its rows and views.

        Raises:
            ConfigError: it, or one before it, has been read and is not finite.
        """
        self._pending.append(_Pending(step, rows, rows * views, loss))
        if len(self._pending) >= self._at_once:
            self.read()

    def read(self) -> None:
        """Read what is pending, and tell of each step its mean loss of a text and a view.

        Raises:
            ConfigError: a loss is not finite.
        """
        pending, self._pending = self._pending, []
        if not pending:
            return
        for each, loss in zip(pending, torch.stack([each.loss for each in pending]).tolist(), strict=True):
            mean = loss / each.shares
            if not math.isfinite(mean):
                raise diverged(f" at step {each.step}: the loss is not finite")
            self._callback.step(each.rows, mean)
