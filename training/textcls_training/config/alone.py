"""A check that training is one process: several, as torchrun starts them, would all write the same file."""

import os

from textcls.errors import ConfigError


def check_alone() -> None:
    """Refuse to train as one of several processes started by torchrun.

    Raises:
        ConfigError: there are other processes.
    """
    number = os.environ.get("WORLD_SIZE", "1")
    if "RANK" in os.environ and number != "1":
        raise ConfigError(
            f"torchrun has started {number} processes, and a training is one: each would write the same file. Start "
            "the command by itself."
        )
