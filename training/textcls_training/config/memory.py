"""How much memory a training takes before its rows lie on the disk."""

import os
from pathlib import Path
from typing import Final

from textcls._util import memory
from textcls._util.spill import Spill

# Of what may be used, an array of rows has this part at most. Some five such arrays are there at a time; the rest is
# for what is learned, and for the many smaller arrays.
PART: Final = 16


def spill_of(max_memory: int | None, output: Path) -> Spill:
    """Return where the rows of a training lie whose model is written to `output`.

    Beside the output there is a disk; the system's folder of temporary files, which TMPDIR would name, may be memory.
    """
    most = max_memory or memory.there_is() // 2
    return Spill(most // PART, None if os.environ.get("TMPDIR") else output.resolve().parent)
