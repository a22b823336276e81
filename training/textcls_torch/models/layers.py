"""PyTorch's layers, created without drawing weights: `textcls_torch.models.initial_weights` draws all of them."""

from torch import nn


class Linear(nn.Linear):
    """A linear layer that is made with uninitialised weights."""

    def reset_parameters(self) -> None:
        """Draw nothing."""


class LSTM(nn.LSTM):
    """An LSTM that is made with uninitialised weights."""

    def reset_parameters(self) -> None:
        """Draw nothing."""
