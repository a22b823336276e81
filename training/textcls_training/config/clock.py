"""The durations of the steps of a run."""

import time
from collections.abc import Mapping


class Clock:
    """The duration of each step, in seconds, since the clock was created."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    def lap(self, name: str, inner: Mapping[str, float] | None = None) -> None:
        """Record the step `name`, which ends now; the steps `inner`, which it contains, are reported separately."""
        inner, now = inner or {}, time.perf_counter()
        self.seconds |= {name: now - self._began - sum(inner.values()), **inner}
        self._began = now

    def __str__(self) -> str:
        steps = ", ".join(f"{name} {taken:.1f}" for name, taken in self.seconds.items())
        return f"{steps}, {sum(self.seconds.values()):.1f} in all"
