"""How much memory a training takes before its rows are stored on disk."""

import os
from pathlib import Path
from typing import Final

from textcls._util import memory
from textcls._util.spill import Spill

# The largest share of the usable memory for an array of rows. About five such arrays exist at a time; the rest is for
# what is learned, and for the many smaller arrays.
PART: Final = 16


def spill_of(max_memory: int | None, output: Path) -> Spill:
    """Return where the rows of a training whose model is written to `output` are stored.

    The output is on a disk, whereas the system's folder of temporary files, named by TMPDIR, may be in memory.
    """
    most = max_memory or memory.there_is() // 2
    return Spill(most // PART, None if os.environ.get("TMPDIR") else output.resolve().parent)
