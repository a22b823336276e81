"""The audit trail, in the logger `textcls.audit`: refused keys, and reloads of models and keys. Always on."""

import asyncio
import ipaddress
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from textcls.server.monitoring import logs

if TYPE_CHECKING:
    from starlette.types import Scope

_LOGGER: Final = logging.getLogger(logs.AUDIT)
# At most this many refused keys have their own lines in this many seconds; the others are counted by address.
_LINES, _SECONDS, _ADDRESSES = 10, 10.0, 64
_OTHERS: Final = "others"


class Caller(NamedTuple):
    """The originator of a request or reload.

    Attributes:
        how: "http", "signal", or "watch" if a file was found replaced.
        key: the name of the key.
        client: the address, if it may be logged.
    """

    how: str
    key: str | None = None
    client: str | None = None

    def facts(self) -> dict[str, str]:
        """Return what is known."""
        found = {"by": self.how, "key": self.key, "client": self.client}
        return {name: value for name, value in found.items() if value is not None}


SIGNAL: Final = Caller("signal")
WATCH: Final = Caller("watch")


def address(scope: "Scope") -> str | None:
    """Return the caller's address; None if there is none, as with a Unix domain socket."""
    client = scope.get("client")
    if not client:
        return None
    try:
        return str(ipaddress.ip_address(client[0]))
    except ValueError:
        # A value that a proxy passed on without checking may be anything.
        return "unknown"


def tell(message: str, caller: Caller, result: str, **facts: Any) -> None:
    """Log what a caller asked for, and the result."""
    _LOGGER.info(message, extra={**caller.facts(), "result": result, **facts})


class Refusals:
    """Refused keys: one line each, or one line for many if there are too many. For one event loop."""

    def __init__(self) -> None:
        self._lines = 0
        self._unlogged: Counter[str] = Counter()

    def add(self, client: str | None, **facts: Any) -> None:
        """Log a refused key."""
        if not self._lines:
            asyncio.get_running_loop().call_later(_SECONDS, self.flush)
        if self._lines < _LINES:
            self._lines += 1
            _LOGGER.info("A key was refused", extra=facts if client is None else {"client": client, **facts})
            return
        client = client or _OTHERS
        known = client in self._unlogged or len(self._unlogged) < _ADDRESSES
        self._unlogged[client if known else _OTHERS] += 1

    def flush(self) -> None:
        """Log how many had no line of their own, and start again."""
        if self._unlogged:
            facts = {"count": self._unlogged.total(), "clients": dict(self._unlogged.most_common())}
            _LOGGER.info("More keys were refused", extra=facts)
        self._lines = 0
        self._unlogged.clear()
