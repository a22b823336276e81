"""How much memory there is for this process."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

# Where a container's control group states its limit, in version 2 and 1.
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# Assumed on systems that Python cannot ask.
_ASSUMED: Final = 8 << 30


def limit() -> int | None:
    """Return the memory limit of the container in bytes; None if there is none."""
    for path in _LIMITS:
        with suppress(OSError, ValueError):  # There is no limit, or it is "max".
            return int(path.read_text())
    return None


def there_is() -> int:
    """Return the memory of the machine in bytes, or the container's limit if that is lower; on Windows 8 GiB."""
    if sys.platform == "win32":
        return _ASSUMED
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(machine, limit() or machine)
