"""Connections that do not get on with it are ended; uvicorn alone would keep them for ever.

A client may open a connection and say nothing, send a request byte by byte, or never take its answer. None of them
holds a thread, but each holds memory and a file descriptor. `sweep` looks at all connections of a worker now and then,
which costs a request nothing.
"""

import asyncio
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from textcls.server import metrics, problems
from textcls.server.service import Service

SWEEP_SECONDS: Final = 0.5


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, which notes since when a request is arriving or an answer is waiting to be taken."""

    def __init__(self, service: Service, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._service = service
        self._arriving_since: float | None = None
        self._unsent, self._unsent_since = 0, 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, or turn the connection away."""
        super().connection_made(transport)
        self._arriving_since = self.loop.time()
        most = self._service.settings.max_connections
        if len(self.connections) > most:
            self._end(429, f"There are {most:,} connections, which is max_connections: try later.")

    def on_message_begin(self) -> None:
        """Note when a request begins."""
        super().on_message_begin()
        self._arriving_since = self.loop.time()

    def on_message_complete(self) -> None:
        """Note that it has arrived."""
        super().on_message_complete()
        self._arriving_since = None

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP in the form of all errors."""
        self._end(400, "This is no valid HTTP request.")

    def sweep(self, now: float) -> None:
        """End the connection if it has been stuck for too long."""
        longest = self._service.settings.receive_seconds
        if self._arriving_since is not None and now - self._arriving_since > longest:
            self._end(408, f"The request did not arrive within receive_seconds, which is {longest:g}.")
            return
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > longest:
            self._service.counts.add(metrics.CLOSED, "answer not taken")
            self.transport.abort()

    def _end(self, status: int, message: str) -> None:
        """Answer, unless an answer is already under way, and hang up."""
        self._service.counts.add(metrics.CLOSED, str(status))
        self._arriving_since = None
        transport = self.transport
        if transport.is_closing():
            return
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            transport.write(_raw(status, message))
        # To the application it looks as if the caller had hung up.
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        transport.close()
        # A caller that does not read, either, would keep a closing connection open.
        self.loop.call_later(SWEEP_SECONDS, transport.abort)


def protocol(service: Service) -> Any:
    """Return the protocol class of `service`, as uvicorn wants it."""
    return partial(Connection, service)


def _raw(status: int, message: str) -> bytes:
    body = problems.body(status, message)
    head = b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % (status, len(body))
    again = b"retry-after: 1\r\n" if status == 429 else b""
    return head + again + b"connection: close\r\n\r\n" + body
