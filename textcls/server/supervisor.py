"""Several processes that answer, and the one that starts, replaces and stops them."""

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import multiprocess

from textcls.errors import SurroundingsError, TextclsError
from textcls.server import logs
from textcls.server.metrics import Counts
from textcls.server.reload import Shelf, counted
from textcls.server.server import Server
from textcls.server.service import Service
from textcls.server.settings import Settings

_LOGGER: Final = logging.getLogger(__name__)
_TICK_SECONDS: Final = 0.05
# Loading large models takes its time.
_START_SECONDS: Final = 60
# A worker that is ready and does not answer its supervisor for so long hangs.
_HUNG_SECONDS: Final = 5.0


class Supervisor(multiprocess.Multiprocess):
    """uvicorn's supervisor, which replaces workers that die, with what this service does at signals."""

    def __init__(self, shelf: Shelf, settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
        self._shelf, self._settings, self._ready = shelf, settings, ready
        # uvicorn looks the process class up under this module attribute; there is no other hook.
        multiprocess.Process = partial(Worker, shelf, settings)  # type: ignore[assignment,misc]
        config = uvicorn.Config(
            "", workers=settings.workers, log_config=None, timeout_worker_healthcheck=_START_SECONDS
        )
        super().__init__(config, [listener])
        # From the start, while there is room: a reload may be refused because there is none.
        self._counts = Counts(shelf.folder)

    def run(self) -> None:
        """Supervise until told to stop.

        Raises:
            SurroundingsError: a worker cannot start.
        """
        try:
            super().run()
        except BaseException:
            # At its end the process waits for the workers, which nobody else would tell to end.
            self.terminate_all()
            self.join_all()
            raise
        finally:
            self._counts.close()
        if any(process.exitcode == STARTUP_FAILURE for process in self.processes):
            raise SurroundingsError("A worker could not start, and so would none that replaces it: its log says why.")

    def init_processes(self) -> None:
        """Start the workers, and say so once they answer."""
        super().init_processes()
        if all(process.wait_until_ready(_START_SECONDS, self.should_exit) for process in self.processes):
            self._ready()

    def handle_usr1(self) -> None:
        """Read models and keys anew; the workers see it for themselves."""
        with suppress(TextclsError), counted(self._counts):  # It has been logged and counted.
            self._shelf.publish()

    def handle_term(self) -> None:
        """Tell everybody to go elsewhere, and stop after the time they need for that."""
        self._shelf.drain()
        end = time.monotonic() + self._settings.drain_seconds
        urgent = {signal.SIGINT, signal.SIGTERM}
        while time.monotonic() < end and not urgent & set(self.signal_queue):
            time.sleep(_TICK_SECONDS)
        super().handle_term()

    def terminate_all(self) -> None:
        """Stop the workers. From then on connections are refused rather than left to wait."""
        super().terminate_all()
        for listener in self.sockets:
            listener.close()


class Worker(multiprocess.Process):
    """One worker process under the supervisor."""

    def __init__(self, shelf: Shelf, settings: Settings, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        self._shelf, self._settings = shelf, settings
        self._begun, self._loading = time.monotonic(), True
        super().__init__(config, sockets)

    def is_alive(self, timeout: float = _HUNG_SECONDS) -> bool:
        """Say whether the worker lives. While it loads its models, which may take long, it does not answer yet."""
        if self._loading and self.process.is_alive() and time.monotonic() < self._begun + _START_SECONDS:
            self._loading = not self.is_ready(timeout=0)
            return True
        return super().is_alive(min(timeout, _HUNG_SECONDS))

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the new process."""
        logs.configure(self._settings.log_level)
        try:
            self._server = Server(Service.of(self._shelf, self._settings), drain_seconds=0, supervisor=os.getppid())
        except TextclsError as error:
            _LOGGER.error("The worker cannot start: %s", error)
            sys.exit(STARTUP_FAILURE)
        try:
            super().target(sockets)
        except TextclsError:  # It has been logged.
            sys.exit(1)
