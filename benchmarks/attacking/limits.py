"""A memory limit that the kernel keeps: a control group, of version 2 or 1. It takes root, or a group that is ours.

Where none can be made, the processes are watched instead and killed once they are above the limit, which comes some
milliseconds late.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# How each version calls the limit, the limit of memory and swap, the peak, and the file with the count of kills.
_VERSION_2: Final = {"limit": "memory.max", "swap": "memory.swap.max", "kills": "memory.events"}
_VERSION_1: Final = {
    "limit": "memory.limit_in_bytes",
    "swap": "memory.memsw.limit_in_bytes",
    "kills": "memory.oom_control",
}


@dataclass(frozen=True)
class Limit:
    """A limit for the processes that `prefix` starts.

    Attributes:
        mib: the limit in 2^20 bytes.
        group: folder of the control group; None where the processes are watched instead.
        files: what the files in it are called.
    """

    mib: int
    group: Path | None = None
    files: Mapping[str, str] | None = None

    @property
    def kept_by(self) -> str:
        """Who keeps the limit."""
        if self.group is None:
            return "watching resident memory every 20 ms"
        return f"control group, version {1 if self.files is _VERSION_1 else 2}"

    @property
    def prefix(self) -> tuple[str, ...]:
        """What stands in front of a command line that is to run under the limit, in the same process."""
        if self.group is None:
            return ()
        return ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.group / "cgroup.procs"))

    def kills(self) -> int:
        """Return how many processes the kernel has killed because of the limit."""
        if self.group is None or self.files is None:
            return 0
        found = re.search(r"^oom_kill (\d+)", (self.group / self.files["kills"]).read_text(), re.MULTILINE)
        return int(found[1]) if found else 0


@contextmanager
def limited(mib: int) -> Iterator[Limit]:
    """Make a limit of `mib` 2^20 bytes, and remove it when the processes have ended."""
    for parent, files in _parents():
        group = parent / f"textcls-attacks-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / files["limit"]).write_text(str(mib << 20))
            with suppress(OSError):  # Not every kernel counts swap.
                (group / files["swap"]).write_text("0" if files is _VERSION_2 else str(mib << 20))
            yield Limit(mib, group, files)
        finally:
            _remove(group)
        return
    yield Limit(mib)


def _parents() -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Yield the groups under which one of ours may be made."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        root = Path(folder)
        if kind == "cgroup2" and "memory" in (root / "cgroup.subtree_control").read_text().split():
            yield root, _VERSION_2
        elif kind == "cgroup" and "memory" in options.split(","):
            yield root, _VERSION_1


def _remove(group: Path) -> None:
    """Remove a group; the last of its processes may still be ending."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.1)
    print(f"{group} is left behind: its processes do not end.")
