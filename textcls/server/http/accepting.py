"""Accept connections here rather than in the event loop, because of two situations.

At shutdown: an event loop closes its listener while connections wait in the kernel, which resets them although their
clients consider them established. Here new handshakes are stopped, waiting connections are accepted, and then the
listener is closed.

When file descriptors run out: uvloop closes connections without a descriptor, and stops listening if it cannot even do
that. Here they wait in the kernel, and the last descriptors are left for everything else: models, counts, the probes.
"""

import asyncio
import ctypes
import errno
import logging
import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from textcls.server.http.listening import BACKLOG
from textcls.server.system import open_files

_LOGGER: Final = logging.getLogger(__name__)
# Most connections accepted in one turn of the event loop, so that other workers get their share.
_AT_ONCE: Final = 16
# File descriptors that connections leave for everything else.
_RESERVED: Final = 32
_PAUSE_SECONDS: Final = 0.1
_SAID_SECONDS: Final = 10.0
# Time after which handshakes that have started are complete.
_HANDSHAKE_SECONDS: Final = 0.2
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# linux/filter.h: drop TCP segments with the SYN flag, pass all others.
_DROP_SYN: Final = b"".join(
    struct.pack("HBBI", *each) for each in ((0x30, 0, 0, 13), (0x45, 0, 1, 2), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFF))
)
_SO_ATTACH_FILTER: Final = 26


class Acceptor:
    """A server in asyncio's sense: passes each connection of a listener to a protocol. For one event loop."""

    def __init__(self, listener: socket.socket, protocol: Callable[[], Any]) -> None:
        listener.setblocking(False)
        self._listener, self._protocol = listener, protocol
        self._loop = asyncio.get_running_loop()
        self._handing: set[asyncio.Task[Any]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._said = -_SAID_SECONDS
        self._open = True
        self._loop.add_reader(listener, self._accept, _AT_ONCE)

    async def stop(self, *, last: bool) -> None:
        """Accept connections that are established, then stop listening.

        Args:
            last: whether no other worker keeps listening.
        """
        if last and self._open:
            _begin_no_more(self._listener)
            await asyncio.sleep(_HANDSHAKE_SECONDS)
        self.close()
        await self.wait_closed()

    def close(self) -> None:
        """Accept waiting connections, and close the listener."""
        if not self._open:
            return
        self._accept(BACKLOG)
        self._open = False
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Wait until every connection has its protocol."""
        await asyncio.gather(*self._handing, return_exceptions=True)

    def _accept(self, most: int) -> None:
        for _ in range(most):
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                # The client disconnected before it was accepted.
                continue
            except OSError as error:
                if error.errno not in _SHORT:
                    raise
                self._wait(os.strerror(error.errno))
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._hand(connection))
            self._handing.add(task)
            task.add_done_callback(self._handing.discard)
            if connection.fileno() >= _most_files():
                self._wait("there are almost as many open files as there may be")
                return

    async def _hand(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:
            # The client disconnected meanwhile.
            connection.close()

    def _wait(self, why: str) -> None:
        """Leave connections waiting in the kernel until there are file descriptors for them."""
        now = time.monotonic()
        if now - self._said >= _SAID_SECONDS:
            self._said = now
            _LOGGER.error("New connections wait: %s. Raise the limit (ulimit -n), or lower max_connections.", why)
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(_PAUSE_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._has_file():
            self._loop.add_reader(self._listener, self._accept, _AT_ONCE)
        else:
            self._pause = self._loop.call_later(_PAUSE_SECONDS, self._go_on)

    def _has_file(self) -> bool:
        try:
            # The kernel assigns the lowest free number.
            file = os.dup(self._listener.fileno())
        except OSError:
            return False
        os.close(file)
        return file < _most_files()


def _most_files() -> int:
    """Return how many file descriptors may be open before connections have to wait."""
    most = open_files.most()
    return max(most - _RESERVED, most // 2)


def _begin_no_more(listener: socket.socket) -> None:
    """Make the kernel start no more handshakes: clients that connect now retry in a second, and are refused then.

    Without socket filters, a connection made in the microseconds between the last accept and closing is reset.
    """
    code = ctypes.create_string_buffer(_DROP_SYN, len(_DROP_SYN))
    program = struct.pack("HP", len(_DROP_SYN) // 8, ctypes.addressof(code))
    with suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
