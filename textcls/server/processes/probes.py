"""A separate port for monitoring: liveness, readiness and metrics.

It is served by a thread with its own event loop, in the only process or in the supervisor of several. No connections,
requests or texts sent to the main port can delay a probe here. The state of the workers comes from their shared
numbers: each worker regularly records that its event loop is running.
"""

import asyncio
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from textcls.server import problems
from textcls.server.http.listening import listen
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import logs, metrics
from textcls.server.monitoring.exposition import exposition
from textcls.server.settings import Settings

# A worker whose event loop has not run for this long is not ready, or is dead: longer than anything it may do.
READY_SECONDS: Final = 5.0
LIVE_SECONDS: Final = 20.0
_CONNECTIONS, _HEAD_BYTES, _SECONDS = 64, 4096, 1.0
# A probe has to get the interpreter many times, and waits this long, in seconds, each time the service is busy.
_TURN_SECONDS: Final = 0.0003
_LOGGER: Final = logging.getLogger(__name__)
_Response = tuple[int, str, bytes]
_JSON: Final = "application/json"


@contextmanager
def probes(store: GenerationStore, settings: Settings) -> Iterator[None]:
    """Answer probes during this block, if there is a port for them.

    Raises:
        SurroundingsError: the port cannot be listened on.
    """
    if not settings.probe_port:
        yield
        return
    with listen(settings.host, settings.probe_port, "--probe-port") as listener:
        sys.setswitchinterval(_TURN_SECONDS)
        loop = asyncio.new_event_loop()
        stopping = asyncio.Event()
        thread = threading.Thread(
            target=loop.run_until_complete, args=(_Probes(store).run(listener, stopping),), name="textcls-probes"
        )
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stopping.set)
            thread.join()
            loop.close()


class _Probes:
    """The server of the probes, with a limit on its connections."""

    def __init__(self, store: GenerationStore) -> None:
        self._store = store
        self._begun = time.monotonic()
        # The open connections, oldest first.
        self._open: dict[asyncio.Task[None] | None, None] = {}

    async def run(self, listener: socket.socket, stopping: asyncio.Event) -> None:
        """Answer until `stopping` is set."""
        server = await asyncio.start_server(self._serve, sock=listener, limit=_HEAD_BYTES)
        await stopping.wait()
        server.close()
        tasks = [task for task in self._open if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the single request of a connection."""
        me = asyncio.current_task()
        self._open[me] = None
        if len(self._open) > _CONNECTIONS and (oldest := next(iter(self._open))) is not None:
            # At once, so that the next connection does not pick the same one.
            self._open.pop(oldest)
            oldest.cancel()
        # With this, `drain` waits until everything written has been sent.
        writer.transport.set_write_buffer_limits(0)
        try:
            async with asyncio.timeout(_SECONDS):
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    writer.write(_raw(431, _JSON, problems.body(431, f"A head has at most {_HEAD_BYTES:,} bytes.")))
                else:
                    writer.write(self._respond(head))
                await writer.drain()
            writer.close()
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            writer.transport.abort()
        finally:
            self._open.pop(me, None)
            if not writer.is_closing():
                writer.transport.abort()

    def _respond(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        try:
            status, kind, body = self._answer(method, path)
        except Exception as error:
            # The last line of defence: one failing probe does not end the others.
            _LOGGER.error("%s while answering a probe", type(error).__name__, extra={"where": logs.places(error)})
            status, kind, body = _problem(500, problems.UNEXPECTED)
        return _raw(status, kind, body, with_body=method != b"HEAD")

    def _answer(self, method: bytes, path: bytes) -> _Response:
        if path not in (b"/livez", b"/readyz", b"/metrics"):
            return _problem(404, "Here are /livez, /readyz and /metrics; all else is on the other port.")
        if method not in (b"GET", b"HEAD"):
            return _problem(405, "This path answers GET.")
        if path == b"/livez":
            return self._live()
        if path == b"/readyz":
            return self._ready()
        content = exposition(*metrics.read_all(self._store.folder), self._store.shown())
        return 200, "text/plain; version=0.0.4; charset=utf-8", content

    def _live(self) -> _Response:
        # Including dead workers: it takes a while until they are replaced.
        latest = max([self._begun, *(heartbeat.seconds for heartbeat in metrics.heartbeats(self._store.folder))])
        if (age := time.monotonic() - latest) > LIVE_SECONDS:
            return _problem(503, f"No worker has responded for {age:.0f} seconds: restart the service.")
        return 200, _JSON, b'{"status":"live"}'

    def _ready(self) -> _Response:
        if self._store.draining:
            return _problem(503, "The service is stopping; ask another.")
        since = time.monotonic() - READY_SECONDS
        if not any(
            heartbeat.lives and heartbeat.seconds > since for heartbeat in metrics.heartbeats(self._store.folder)
        ):
            return _problem(503, f"No worker has been ready within the last {READY_SECONDS:.0f} seconds.")
        return 200, _JSON, b'{"status":"ready"}'


def _problem(status: int, message: str) -> _Response:
    return status, _JSON, problems.body(status, message)


def _raw(status: int, kind: str, body: bytes, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
