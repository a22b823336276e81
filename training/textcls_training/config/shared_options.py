"""The training options shared by several commands."""

from collections.abc import Callable
from typing import Any, TypeVar

from textcls.cli.checked_options import config_options
from textcls_training.config.settings import OPTIONS

Command = TypeVar("Command", bound=Callable[..., Any])


def train_options(*left_out: str) -> Callable[[Command], Command]:
    """Return the decorator that gives a command all options of training except `left_out`, in order."""
    return config_options({name: option for name, option in OPTIONS.items() if name not in left_out})
