"""The losses of steps, told when they are read: on a GPU many at once, as reading one waits for the steps before it."""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor

from textcls.errors import ConfigError
from textcls_training.fit.any_trainer import diverged
from textcls_training.fit.callbacks import Callback

# Steps whose losses a GPU keeps: more would bring little, and a training that has diverged would go on for longer.
STEPS_ON_A_GPU: Final = 50


class _Pending(NamedTuple):
    step: int
    rows: int
    shares: int
    loss: Tensor | None


class PendingLosses:
    """Losses that nobody has read yet."""

    def __init__(self, callback: Callback, at_once: int, error: Callable[[str], ConfigError] = diverged) -> None:
        """Tell `callback` of so many steps at once; `error` makes one of what is not finite, and where."""
        self._callback, self._at_once, self._error = callback, at_once, error
        self._pending: list[_Pending] = []

    def add(self, step: int, rows: int, loss: Tensor | None, shares: int) -> None:
        """Take the loss of a step, summed over so many shares; None if it has learned nothing.

        Raises:
            ConfigError: it, or one before it, has been read and is not finite.
        """
        self._pending.append(_Pending(step, rows, shares, loss))
        if len(self._pending) >= self._at_once:
            self.read()

    def read(self) -> None:
        """Read what is pending, and tell of each step its mean loss of a share: of a text and a view, say.

        Raises:
            ConfigError: a loss is not finite.
        """
        pending, self._pending = self._pending, []
        losses = [each.loss for each in pending if each.loss is not None]
        sums = iter(torch.stack(losses).tolist() if losses else [])
        for each in pending:
            mean = None if each.loss is None else next(sums) / each.shares
            if mean is not None and not math.isfinite(mean):
                raise self._error(f" at step {each.step}: the loss is not finite")
            self._callback.step(each.rows, mean)
