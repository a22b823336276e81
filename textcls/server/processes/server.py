"""One server process: uvicorn's server, with this service's background tasks and shutdown."""

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, Final

import uvicorn

from textcls.errors import SurroundingsError, TextclsError
from textcls.server.application import application
from textcls.server.http.accepting import Acceptor
from textcls.server.http.listening import BACKLOG
from textcls.server.http.protocol import SWEEP_SECONDS, Connection, protocol
from textcls.server.models import watching
from textcls.server.monitoring import logs, metrics
from textcls.server.problems import RefusalError
from textcls.server.service import Service
from textcls.server.system import memory, signals

_LOGGER: Final = logging.getLogger(__name__)
# At shutdown, kept connections are closed with their next answer; without a request for this long they are idle.
_LINGER_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 0.05


def config(service: Service) -> uvicorn.Config:
    """Return the uvicorn configuration that serves `service`."""
    settings = service.settings
    return uvicorn.Config(
        application(service),
        http=protocol(service),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application reads them, from trusted proxies
        backlog=BACKLOG,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.stop_seconds,
    )


class Server(uvicorn.Server):
    """uvicorn's server, which closes stuck connections, loads new models, and stops without losing a request."""

    def __init__(self, service: Service, *, drain_seconds: float, supervisor: int | None = None) -> None:
        super().__init__(config(service))
        self.service = service
        service.connections = self.server_state.connections
        self._drain_seconds = drain_seconds
        self._hurry = False
        self._supervisor = supervisor
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, to sweep connections and to watch for new models."""
        self.service.counts.set(metrics.HEARTBEAT, time.monotonic())
        self._begin(self._sweep())
        self._begin(self.service.watch())
        store, seconds = self.service.store, self.service.settings.watch_seconds
        if seconds:
            self._begin(watching.follow(store, seconds, self.service.reload))
        if threading.current_thread() is threading.main_thread():
            # A single process cannot be replaced: SIGHUP reloads the models instead, which loses no request either.
            reloading = (signal.SIGUSR1,) if self._supervisor is not None else (signal.SIGUSR1, signal.SIGHUP)
            for number in reloading:
                asyncio.get_running_loop().add_signal_handler(number, lambda: self._begin(self._reload()))
            signals.release()
        memory.trim()
        # No sockets for uvicorn itself.
        await super().startup([])
        # The factory that `protocol` returned, although uvicorn declares another type.
        make: Any = self.config.http_protocol_class
        protocol = partial(make, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        self._acceptors = [Acceptor(listener, protocol) for listener in sockets or ()]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Report that the service is draining, then stop listening, then give each connection its last answer.

        Raises:
            Exception: the error that ended a background task, and with it the service.
        """
        self.service.draining = True
        store = self.service.store
        if self._supervisor is None:
            with suppress(SurroundingsError):  # if the shared folder is gone, which is then why the service stops
                store.drain()
        await self._until(lambda: False, self._drain_seconds)
        # A worker that is being replaced leaves the listener to the others.
        last = self._supervisor is None or store.draining
        await asyncio.gather(*(acceptor.stop(last=last) for acceptor in self._acceptors))
        await self._until(lambda: not self.server_state.connections, _LINGER_SECONDS)
        await super().shutdown(sockets)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.service.tracing is not None:
            self.service.tracing.close()
        if self._failure is not None:
            raise self._failure

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; on Ctrl-C or a second signal, without waiting for idle connections."""
        self._hurry = self._hurry or sig == signal.SIGINT or self.should_exit
        super().handle_exit(sig, frame)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a background task; if it fails, the server stops."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        message = str(error) if isinstance(error, TextclsError) else type(error).__name__
        _LOGGER.error("The server stops, since it cannot go on: %s", message, extra={"where": logs.places(error)})
        self._failure = self._failure or error
        self.should_exit = True

    async def _until(self, done: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not (done() or self._hurry) and time.monotonic() < end:
            await asyncio.sleep(_TICK_SECONDS)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = loop.time()
            self.service.counts.set(metrics.HEARTBEAT, time.monotonic())
            if self._supervisor is not None and os.getppid() != self._supervisor:
                # The supervisor was killed: nothing would replace or stop this worker any more.
                self.should_exit = True
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.sweep(now)

    async def _reload(self) -> None:
        with suppress(RefusalError):  # already logged and counted
            await self.service.reload()
