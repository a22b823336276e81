"""What this machine's processors have used, where Linux tells it: powercap's counters of Intel's and AMD's processors.

Source: the kernel's documentation, power/powercap/powercap. Most systems let administrators alone read them.
"""

from pathlib import Path
from typing import Final

_ZONES: Final = Path("/sys/class/powercap")


class EnergyMeter:
    """Counts watt-seconds from the moment it is made, of whatever runs on this machine.

    Args:
        zones: where the system keeps its counters.
    """

    def __init__(self, zones: Path = _ZONES) -> None:
        # A zone for each processor, as intel-rapl:0; its parts, as intel-rapl:0:0, are counted in it.
        self._processors = [zone for zone in sorted(zones.glob("intel-rapl:*")) if _is_processor(zone)]
        self._before = self._read()

    def watt_seconds(self) -> float | None:
        """Return what was used so far; None where the system does not tell."""
        now = self._read()
        if not now or len(now) != len(self._before):
            return None
        # A counter that has reached its end begins anew: once in some minutes.
        used = [(after - before) % end for (after, end), (before, _) in zip(now, self._before, strict=True)]
        return sum(used) / 1e6

    def _read(self) -> list[tuple[int, int]]:
        """Return microjoules, and where each counter ends; nothing where they may not be read."""
        try:
            return [(_number(one / "energy_uj"), _number(one / "max_energy_range_uj") + 1) for one in self._processors]
        except OSError:
            return []


def _is_processor(zone: Path) -> bool:
    try:
        return (zone / "name").read_text(encoding="ascii").startswith("package")
    except OSError:
        return False


def _number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))
