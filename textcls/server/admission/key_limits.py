"""Limits on the rate and concurrency of each key's requests: a token bucket and a count per name."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from textcls.server.problems import RefusalError
from textcls.server.settings import Settings

# Beyond this number, names whose keys no longer exist are forgotten.
_MOST_NAMES: Final = 2000


@dataclass(slots=True)
class _State:
    """The remaining allowance of a name as of `at`, and its requests in progress."""

    tokens: float
    at: float
    active: int = 0


class KeyLimits:
    """The limits of a worker, for use in the event loop's thread only."""

    def __init__(
        self, rate: float, burst: int, concurrency: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._concurrency = rate, concurrency
        self._burst = burst or max(1, math.ceil(rate))
        self._clock = clock
        self._states: dict[str, _State] = {}

    @classmethod
    def of(cls, settings: Settings) -> "KeyLimits | None":
        """Return the limits that are set; None if there are none."""
        if not (settings.key_rate or settings.key_concurrency):
            return None
        return cls(settings.key_rate, settings.key_burst, settings.key_concurrency)

    def enter(self, name: str) -> None:
        """Start a request of the key called `name`, to be ended by `leave`.

        Raises:
            RefusalError: 429; the request was not started, so `leave` must not be called.
        """
        now = self._clock()
        state = self._states.get(name) or self._begin(name, now)
        if self._concurrency and state.active >= self._concurrency:
            raise RefusalError(
                429,
                f"The key {name} already has as many requests in progress as key_concurrency allows per worker, "
                f"{self._concurrency:,}: wait for one to finish.",
                retry_after="1",
            )
        if self._rate:
            state.tokens = min(float(self._burst), state.tokens + (now - state.at) * self._rate)
            state.at = now
            if state.tokens < 1:
                wait = (1 - state.tokens) / self._rate
                raise RefusalError(
                    429,
                    f"The key {name} exceeds key_rate, which is {self._rate:g} a second to a worker, "
                    f"{self._burst:,} at once: try again in {wait:.2g} s.",
                    retry_after=str(math.ceil(wait)),
                )
            state.tokens -= 1
        state.active += 1

    def leave(self, name: str) -> None:
        """End a request started by `enter`."""
        self._states[name].active -= 1

    def _begin(self, name: str, now: float) -> _State:
        if len(self._states) >= _MOST_NAMES:
            self._states = {name: state for name, state in self._states.items() if state.active}
        state = self._states[name] = _State(float(self._burst), now)
        return state
