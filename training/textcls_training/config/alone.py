"""A training is one process: several, as torchrun starts them, would each train the whole and write the same file."""

import os

from textcls.errors import ConfigError


def check_alone() -> None:
    """Refuse to train as one of several processes that torchrun has started.

    Raises:
        ConfigError: there are others.
    """
    number = os.environ.get("WORLD_SIZE", "1")
    if "RANK" in os.environ and number != "1":
        raise ConfigError(
            f"torchrun has started {number} processes, and a training is one: each would write the same file. Start "
            "the command by itself."
        )
