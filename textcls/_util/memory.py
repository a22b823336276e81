"""How much memory there is for this process."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

# What a container's control group says of its own limit, in version 2 and 1.
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# Taken to be there where the system cannot be asked in Python.
_ASSUMED: Final = 8 << 30


def limit() -> int | None:
    """Return the bytes that the container may have, None where none are named."""
    for path in _LIMITS:
        with suppress(OSError, ValueError):  # There is none, or it is "max".
            return int(path.read_text())
    return None


def there_is() -> int:
    """Return the bytes of the machine, or of the container if it may have fewer; on Windows 8 GiB."""
    if sys.platform == "win32":
        return _ASSUMED
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(machine, limit() or machine)
