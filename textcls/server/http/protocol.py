"""A connection: what it may send and hold before a key is checked, and when it is closed.

uvicorn's own protocol passes everything that arrives to the parser: heads and trailers of any size, and any number of
pipelined requests. Here the parser gets one request at a time. A head is first collected, within limits, and whatever
follows a request waits, first here and then at the sender, until the client has read the answer. A connection never
holds more than a head, `MAX_HEAD_BYTES` of what follows, and one answer.
"""

import asyncio
from collections import OrderedDict
from typing import Any, Final

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from textcls.server import problems
from textcls.server.admission.budget import UNCOUNTED
from textcls.server.http.exchange import ENDED
from textcls.server.monitoring import metrics
from textcls.server.problems import RefusalError
from textcls.server.service import Service

MAX_HEAD_BYTES: Final = 16_384
MAX_URL_BYTES: Final = 8_192
MAX_HEADERS: Final = 100
SWEEP_SECONDS: Final = 0.5
_BODY_BYTES: Final = 65_536
# The end of a chunked body must be searched for, which is most expensive if there are many empty lines.
_CHUNKED_BYTES: Final = 8_192
# Connections beyond `max_connections` that get an answer saying why they are refused.
_TURNED_AWAY: Final = 100
_EMPTY_LINE: Final = b"\r\n\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
# Headers that decide how to read the rest of the request.
_HEEDED: Final = frozenset({b"content-length", b"expect", b"host", b"transfer-encoding", b"upgrade"})
_HEAD, _WITHIN_HEAD, _BODY = range(3)
# The idle connections of a worker, and since when they are idle; the one idle for longest first.
_Idle = OrderedDict["Connection", float]


class _UpgradeError(Exception):
    """The client offers another protocol."""


class _Flow(FlowControl):
    """uvicorn's flow control, which resumes reading for each request, except while the next one waits here."""

    holding = False

    def resume_reading(self) -> None:
        if self.read_paused and not self.holding:
            super().resume_reading()


class _Together:
    """A transport that writes the head of an answer together with the start of its body.

    Each write is a system call, which takes a tenth of the time of a short answer.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self._written = False

    def write(self, data: bytes) -> None:
        if self._written or data == _CONTINUE:
            self._transport.write(data)
        elif self._head is None:
            self._head = data
        else:
            self._written = True
            self._transport.writelines((self._head, data))

    def close(self) -> None:
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, fed one request at a time."""

    flow: _Flow

    def __init__(self, service: Service, idle: _Idle, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._service = service
        self._idle = idle
        # What has arrived and is not parsed yet: the start of a head, or what follows a request.
        self._waiting = b""
        self._place = _HEAD
        # Of the body: the bytes still to come, None if it is chunked; its last bytes; and the bytes since any content.
        self._left: int | None = None
        self._tail = b""
        self._beside = 0
        self._arriving_since: float | None = None
        self._unsent, self._unsent_since = 0, 0.0
        self._ended = False

    # Called by asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request; with too many connections, close the one idle for longest, or this one."""
        super().connection_made(transport)
        # If an answer exceeds `high`, wait until the client has read all of it: it is held in memory until then.
        transport.set_write_buffer_limits(high=UNCOUNTED, low=0)
        self.flow = _Flow(transport)
        now = self._arriving_since = self.loop.time()
        most = self._service.settings.max_connections
        if len(self.connections) > most:
            if self._idle:
                longest, _ = self._idle.popitem(last=False)
                longest.make_room()
            elif len(self.connections) > most + _TURNED_AWAY:
                transport.abort()
                return
            else:
                self._end(429, f"There are {most:,} connections, which is max_connections: try later.")
                return
        self._idle[self] = now

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._idle.pop(self, None)
        self._waiting = b""

    @property
    def expects_head(self) -> bool:
        """Whether the next byte would start a request."""
        return self._place == _HEAD and not self._waiting

    def wanted(self) -> int:
        """Return how many bytes may be read: at least one, and no more than may be held."""
        if self._place == _BODY and not self._ended:
            return _CHUNKED_BYTES if self._left is None else min(self._left, _BODY_BYTES)
        # One byte more than the limit, so that a head that is too long is noticed and refused.
        return max(1, MAX_HEAD_BYTES + 1 - len(self._waiting))

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, up to the end of a request."""
        if self._ended:
            return
        if self._waiting:
            data = self._waiting + data
        elif self._place == _HEAD:
            # The time limit of a request starts with its first byte.
            self._arriving_since = None
        self._parse(data)

    def resume_writing(self) -> None:
        """Continue with the next request, since the client has read the answers."""
        super().resume_writing()
        if not self._is_busy():
            self._go_on()

    # Called by the parser and the request cycle

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers are dropped, as RFC 9110 (6.5.1) allows: one could pose as a key."""
        if self._place != _WITHIN_HEAD:
            return
        name = name.lower()
        if name in _HEEDED:
            self._heed(name, value)
        self.headers.append((name, value))

    def _heed(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self._left = int(value)
        elif name == b"upgrade":
            raise _UpgradeError
        elif name == b"host" and any(one == name for one, _ in self.headers):
            raise RefusalError(400, "There are two Host headers, and it is not clear which is meant: send one.")
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise RefusalError(501, "Of transfer codings chunked alone is understood: send the body without others.")
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True

    def on_headers_complete(self) -> None:
        """Start to answer. The answer to HEAD has no body for its head to wait for."""
        if self.parser.get_http_version() == "1.1" and not any(name == b"host" for name, _ in self.headers):
            raise RefusalError(400, "The Host header is missing, which HTTP/1.1 requires.")
        super().on_headers_complete()
        if self.scope["method"] != "HEAD":
            self.cycle.transport = _Together(self.transport)  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, unless the request has already been answered."""
        self._beside = 0
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_message_complete(self) -> None:
        """Note that the request has arrived."""
        self._place, self._arriving_since = _HEAD, None
        cycle = self.cycle
        if cycle.response_complete:
            self._idle[self] = self.loop.time()
        else:
            cycle.more_body = False
            cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Drop the request, which would otherwise be kept until the next one, and continue."""
        self.server_state.total_requests += 1
        cycle = self.cycle
        if cycle.body:
            cycle.body = bytearray()
        cycle.scope = self.scope = {}  # type: ignore[typeddict-item]
        self.headers = []
        self._go_on()

    # Parsing

    def _is_busy(self) -> bool:
        """Return whether the answer to a request is not finished, or not yet read by the client."""
        return self.flow.write_paused or (self.cycle is not None and not self.cycle.response_complete)

    def _go_on(self) -> None:
        """Parse the next request if it has arrived, else wait for it."""
        if self.flow.write_paused or self._ended or self.transport.is_closing():
            return
        if self._place == _HEAD:
            self._idle[self] = self.loop.time()
        if self.flow.read_paused:
            self.flow.holding = False
            self.flow.resume_reading()
        if self._waiting:
            self._parse(self._waiting)

    def _parse(self, data: bytes) -> None:
        at = 0
        try:
            while at < len(data):
                if self._place == _BODY:
                    end = self._end_of_body(data, at)
                    self.parser.feed_data(memoryview(data)[at:end])
                elif self._is_busy():
                    # From now on the sender has to wait.
                    self.flow.holding = True
                    self.flow.pause_reading()
                    break
                else:
                    data, at = data[at:], 0
                    if data[0] in b"\r\n":
                        data = data.lstrip(b"\r\n")
                    if data and not data[:1].isalpha():  # as of TLS, which would be waited for
                        raise RefusalError(400, "This is not a valid HTTP request; TLS is not spoken here.")
                    end = _end_of_head(data)
                    if self._arriving_since is None:
                        self._arriving_since = self.loop.time()
                    if not end:
                        break
                    self._parse_head(data[:end], len(data) - end)
                at = end
        except RefusalError as refusal:
            self._end(refusal.status_code, refusal.detail)
            return
        except httptools.HttpParserError:
            self._end(400, "This is not a valid HTTP request.")
            return
        self._waiting = data[at:]

    def _parse_head(self, head: bytes, more: int) -> None:
        """Parse a head; `more` bytes after it have arrived already."""
        before = self.cycle
        self._place, self._left = _WITHIN_HEAD, None
        self._idle.pop(self, None)
        try:
            self.parser.feed_data(head)
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, RefusalError):
                raise error.__context__ from None
            if not isinstance(error.__context__, _UpgradeError):
                raise
            self.parser = _parser(self)
            self.parser.feed_data(_without_upgrade(head))
        except httptools.HttpParserUpgrade as error:  # of CONNECT, which asks for a tunnel
            raise RefusalError(400, "This is not a proxy: there is no CONNECT.") from error
        if self._place == _WITHIN_HEAD:
            if self.cycle is before:
                raise RefusalError(400, "This is not a valid HTTP request.")
            self._place, self._tail, self._beside = _BODY, b"", 0
            if self._left is None or self._left > more:
                # The rest is read when the application asks for it, which it does not if the key is missing.
                self.flow.pause_reading()

    def _end_of_body(self, data: bytes, at: int) -> int:
        """Return the end of the data that the parser may get without passing the end of the body.

        Raises:
            RefusalError: too much has arrived that is not content: trailers or chunk extensions.
        """
        if self._left is not None:
            end = min(len(data), at + self._left)
            self._left -= end - at
            return end
        # A chunked body ends with an empty line; stopping at one inside the body does no harm.
        across = (self._tail + data[at : at + 3]).find(_EMPTY_LINE)
        if across >= 0:
            end = at - len(self._tail) + across + len(_EMPTY_LINE)
        elif (begin := data.find(_EMPTY_LINE, at)) >= 0:
            end = begin + len(_EMPTY_LINE)
        else:
            end = len(data)
        self._tail = (self._tail + data[max(at, end - 3) : end])[-3:]
        self._beside += end - at
        if self._beside > MAX_HEAD_BYTES:
            raise RefusalError(431, f"The trailers have more than {MAX_HEAD_BYTES:,} bytes: send none.")
        return end

    # Ending

    def sweep(self, now: float) -> None:
        """Close the connection if it has been stuck for too long."""
        longest = self._service.settings.receive_seconds
        if self._arriving_since is not None and now - self._arriving_since > longest:
            self._end(408, f"The request did not arrive within receive_seconds, which is {longest:g}.")
            return
        since = self._idle.get(self)
        if since is not None and self._arriving_since is None and now - since > self.timeout_keep_alive:
            self.transport.close()
            return
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > longest:
            self._service.counts.add(metrics.CLOSED, "answer not taken")
            self.transport.abort()

    def make_room(self) -> None:
        """Close this idle connection in favour of a new one."""
        self._service.counts.add(metrics.CLOSED, "idle")
        self._ended = True
        self.transport.close()

    def _end(self, status: int, message: str) -> None:
        """Answer, unless an answer is already under way, and close the connection."""
        self._service.counts.add(metrics.CLOSED, str(status))
        self._arriving_since, self._ended, self._waiting = None, True, b""
        self._idle.pop(self, None)
        transport = self.transport
        if transport.is_closing():
            return
        # If the request was already answered in full while its body is still arriving, do not send a second answer.
        cycle = self.cycle
        if cycle is None or not cycle.response_started or (cycle.response_complete and self._place != _BODY):
            transport.write(_raw(status, message))
        # To the application it looks as if the client had disconnected.
        if cycle is not None and not cycle.response_complete:
            cycle.scope[ENDED] = status  # type: ignore[typeddict-unknown-key]
            cycle.disconnected = True
            cycle.message_event.set()
        # Keep reading and dropping data for a moment: if closed at once, the kernel would reset the connection and the
        # client might never see the answer.
        transport.write_eof()
        self.flow.holding = False
        self.flow.resume_reading()
        self.loop.call_later(SWEEP_SECONDS, transport.abort)


class Reader(asyncio.BufferedProtocol):
    """Reads no more for a connection than it wants; `asyncio.Protocol` would read 256 KiB at once."""

    def __init__(self, buffer: memoryview, connection: Connection) -> None:
        self._buffer, self._head = buffer, buffer[: MAX_HEAD_BYTES + 1]
        self._connection = connection
        self.pause_writing = connection.pause_writing  # type: ignore[method-assign]
        self.resume_writing = connection.resume_writing  # type: ignore[method-assign]
        self.connection_lost = connection.connection_lost  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass the transport on."""
        self._connection.connection_made(transport)  # type: ignore[arg-type]

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for incoming data."""
        connection = self._connection
        return self._head if connection.expects_head else self._buffer[: connection.wanted()]

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what has arrived."""
        self._connection.data_received(bytes(self._buffer[:nbytes]))


def protocol(service: Service) -> Any:
    """Return the protocol factory for connections to `service`, in the form that uvicorn expects."""
    idle: _Idle = OrderedDict()
    # One buffer for all connections: data is passed on before anything else is read.
    buffer = memoryview(bytearray(_BODY_BYTES))

    def make(*args: Any, **kwargs: Any) -> Reader:
        return Reader(buffer, Connection(service, idle, *args, **kwargs))

    return make


def _end_of_head(data: bytes) -> int:
    """Return where a head ends, or 0 if it is not complete.

    Raises:
        RefusalError: the head or its URL is too long, or there are too many headers.
    """
    found = data.find(_EMPTY_LINE)
    end = found + len(_EMPTY_LINE) if found >= 0 else 0
    size = end or len(data)
    if size > MAX_URL_BYTES and not 0 <= data.find(b"\r\n") <= MAX_URL_BYTES:
        raise RefusalError(414, f"The URL has more than {MAX_URL_BYTES:,} bytes: send texts in the body.")
    if size > MAX_HEAD_BYTES:
        raise RefusalError(431, f"The head has more than {MAX_HEAD_BYTES:,} bytes: send fewer or shorter headers.")
    # Two lines are not headers: the first and the empty one.
    if size > 4 * MAX_HEADERS and data.count(b"\r\n", 0, size) - 2 > MAX_HEADERS:
        raise RefusalError(431, f"There are more than {MAX_HEADERS:,} headers: send fewer.")
    return end


def _without_upgrade(head: bytes) -> bytes:
    """Return a head without the offer of another protocol, which a server may ignore (RFC 9110, 7.8).

    With it, the parser would treat the body as data of that protocol.
    """
    return b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"upgrade:"))


def _parser(connection: Connection) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(connection)
    # As in uvicorn.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def _raw(status: int, message: str) -> bytes:
    body = problems.body(status, message)
    head = b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % (status, len(body))
    again = b"retry-after: 1\r\n" if status == 429 else b""
    return head + again + b"connection: close\r\n\r\n" + body
