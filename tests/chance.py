"""How much of what chance draws is tried: a part at every run, with other seeds each time, and all before a release."""

import os
from typing import Final

# Said by `make thorough`.
THOROUGH: Final = os.environ.get("TEXTCLS_THOROUGH") == "1"


def draws(number: int) -> int:
    """Return how many of so many draws are tried: a fifth, unless all are asked for."""
    return number if THOROUGH else -(-number // 5)
