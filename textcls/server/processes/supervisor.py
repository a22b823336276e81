"""Several worker processes, and the supervisor that starts, replaces and stops them."""

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import resource_tracker
from typing import Any, Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import multiprocess

from textcls.errors import SurroundingsError, TextclsError
from textcls.server.models.reload import Reloader
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import logs, metrics
from textcls.server.monitoring.metrics import Counts
from textcls.server.settings import Settings
from textcls.server.system import memory, signals

_LOGGER: Final = logging.getLogger(__name__)
_TICK_SECONDS: Final = 0.05
# Loading large models takes time.
_START_SECONDS: Final = 60
# A worker that is ready but does not answer its supervisor for this long has hung.
_HUNG_SECONDS: Final = 5.0


class Supervisor(multiprocess.Multiprocess):
    """uvicorn's supervisor, which replaces workers that die, with this service's handling of signals."""

    def __init__(
        self, store: GenerationStore, settings: Settings, listener: socket.socket, ready: Callable[[], None]
    ) -> None:
        self._store, self._settings, self._ready, self._answered = store, settings, ready, False
        # uvicorn looks the process class up under this module attribute; there is no other hook.
        multiprocess.Process = partial(Worker, store, settings)  # type: ignore[assignment,misc]
        config = uvicorn.Config(
            "", workers=settings.workers, log_config=None, timeout_worker_healthcheck=_START_SECONDS
        )
        super().__init__(config, [listener])
        self.should_exit = self._stopping = Stopping()  # type: ignore[assignment]
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stopping.on_signal)
        # Workers that have been replaced and are finishing their requests.
        self._leaving: list[multiprocess.Process] = []
        # Claimed at the start, while there is room: later, a reload may be refused because there is none.
        self._counts = Counts(store.folder)
        self._reloader = Reloader(store, self._counts)
        signals.release()

    def run(self) -> None:
        """Supervise until told to stop.

        Raises:
            SurroundingsError: a worker cannot start.
            KeyboardInterrupt: Ctrl-C came before the service answered.
        """
        try:
            super().run()
        except BaseException:
            # At exit this process waits for the workers, which nothing else would stop.
            self.terminate_all()
            self.join_all()
            raise
        finally:
            self._counts.close()
        if any(process.exitcode == STARTUP_FAILURE for process in self.processes):
            raise SurroundingsError("A worker could not start, and so would none that replaces it: its log says why.")
        if self._stopping.hurry and not self._answered:
            raise KeyboardInterrupt

    def init_processes(self) -> None:
        """Start the workers, and report once they answer."""
        super().init_processes()
        if all(process.wait_until_ready(_START_SECONDS, self.should_exit) for process in self.processes):
            self._answered = True
            self._ready()

    def handle_usr1(self) -> None:
        """Reload models and keys in the background; the workers notice by themselves."""
        self._reloader.ask()

    def restart_all(self) -> None:
        """Replace the workers one after the other; if asked to stop meanwhile, stop at once."""
        self._leaving = [process for process in self._leaving if process.process.is_alive()]
        for index, old in enumerate(self.processes):
            new = multiprocess.Process(self.config, self.sockets)
            new.start()
            if not new.wait_until_ready(_START_SECONDS, self.should_exit):
                self._leaving.append(new)
                if not self.should_exit.is_set():
                    _LOGGER.error("A new worker was not ready in time: the workers that there are go on.")
                    new.kill()
                return
            self.processes[index] = new
            self._leaving.append(old)
            old.terminate()
            while old.process.is_alive() and not self.should_exit.wait(0):
                old.process.join(_TICK_SECONDS)
            if self.should_exit.is_set():
                return

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended or hung, and log each."""
        before = [(worker, worker.process.is_alive()) for worker in self.processes]
        super().keep_subprocess_alive()
        for (old, lived), new in zip(before, self.processes, strict=True):
            if old is not new:
                how = "did not answer, and was killed" if lived else f"ended ({signals.end_of(old.exitcode or 0)})"
                _LOGGER.warning("Worker %d %s; worker %d takes its place.", old.pid, how, new.pid)
                self._counts.add(metrics.RESTARTS)

    def terminate_all(self) -> None:
        """Stop the workers; from then on connections are refused rather than left waiting."""
        if self._stopping.requested:
            self._store.drain()
            self._stopping.sleep(self._settings.drain_seconds)
        for process in self._leaving:
            process.terminate()
        super().terminate_all()
        for listener in self.sockets:
            listener.close()

    def join_all(self) -> None:
        """Wait for all workers to end, including those that have been replaced."""
        for process in self._leaving:
            process.join()
        super().join_all()


class Stopping:
    """Whether to stop, in the form of `threading.Event`, whose lock a signal handler must not take.

    Attributes:
        requested: whether a signal asked to stop.
        hurry: whether to stop without draining.
    """

    def __init__(self) -> None:
        self._set = self.requested = self.hurry = False

    def on_signal(self, number: int, _frame: object) -> None:
        """Stop; on Ctrl-C or a second signal, without draining."""
        self.hurry = self.hurry or number == signal.SIGINT or self.requested
        self._set = self.requested = True

    def set(self) -> None:
        """Stop for an internal reason."""
        self._set = True

    def is_set(self) -> bool:
        """Return whether to stop."""
        return self._set

    def wait(self, seconds: float) -> bool:
        """Wait until asked to stop, at most for `seconds`; return whether to stop."""
        end = time.monotonic() + seconds
        while not self._set and time.monotonic() < end:
            time.sleep(_TICK_SECONDS)
        return self._set

    def sleep(self, seconds: float) -> None:
        """Sleep for `seconds`, unless in a hurry."""
        end = time.monotonic() + seconds
        while not self.hurry and time.monotonic() < end:
            time.sleep(_TICK_SECONDS)


class Worker(multiprocess.Process):
    """One worker process under the supervisor."""

    def __init__(
        self, store: GenerationStore, settings: Settings, config: uvicorn.Config, sockets: list[socket.socket]
    ) -> None:
        self._store, self._settings = store, settings
        self._begun, self._loading, self._announced = time.monotonic(), True, False
        super().__init__(config, sockets)

    def start(self) -> None:
        """Start the process, which gets the signals for reloads and Ctrl-C only once it can handle them."""
        resource_tracker.ensure_running()  # If it were started with the process, it would unblock Ctrl-C.
        with signals.pending_in_children():
            super().start()

    def wait_until_ready(self, timeout: float, should_exit: Any = None) -> bool:
        """Wait until the worker answers or `should_exit` is set; return whether it answers."""
        end, asked = time.monotonic() + timeout, False
        with suppress(OSError, EOFError):  # if it has ended
            while self.process.is_alive() and time.monotonic() < end and not should_exit.is_set():
                # One ping at a time: leftover answers would be mistaken for answers to later pings.
                if not asked:
                    self.parent_conn.send(b"ping")
                asked = not self.parent_conn.poll(_TICK_SECONDS)
                if not asked and self.parent_conn.recv():
                    return True
        return False

    def terminate(self) -> None:
        """Ask the process to end, once."""
        if not self._announced:
            self._announced = True
            super().terminate()

    def is_alive(self, timeout: float = _HUNG_SECONDS) -> bool:
        """Return whether the worker is alive. While it loads its models, which may take long, it does not answer."""
        if self._loading and self.process.is_alive() and time.monotonic() < self._begun + _START_SECONDS:
            self._loading = not self.is_ready(timeout=0)
            return True
        return super().is_alive(min(timeout, _HUNG_SECONDS))

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the new process, which alone imports the application."""
        from textcls.server.processes.server import Server
        from textcls.server.service import Service

        logs.configure(self._settings.log_level)
        memory.return_large()
        try:
            self._server = Server(Service.of(self._store, self._settings), drain_seconds=0, supervisor=os.getppid())
        except TextclsError as error:
            _LOGGER.error("The worker cannot start: %s", error)
            sys.exit(STARTUP_FAILURE)
        try:
            super().target(sockets)
        except TextclsError:  # already logged
            sys.exit(1)
