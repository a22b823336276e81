"""The options of training on the command lines of several commands."""

from collections.abc import Callable
from typing import Any, TypeVar

from textcls.cli.checked_options import config_options
from textcls_training.config.settings import OPTIONS

Command = TypeVar("Command", bound=Callable[..., Any])


def train_options(*left_out: str) -> Callable[[Command], Command]:
    """Return the decorator that gives a command all options of training but `left_out`, in their order."""
    return config_options({name: option for name, option in OPTIONS.items() if name not in left_out})
