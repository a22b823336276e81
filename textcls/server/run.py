"""Listen, answer until told to stop, finish what was begun: one process, or several under a supervisor."""

import asyncio
import errno
import fcntl
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import multiprocess

from textcls.errors import SurroundingsError, TextclsError
from textcls.server import auth, logs, memory
from textcls.server.app import create_app
from textcls.server.metrics import Counts
from textcls.server.problems import RefusalError
from textcls.server.protocol import SWEEP_SECONDS, Connection, protocol
from textcls.server.reload import Shelf, counted
from textcls.server.service import Service
from textcls.server.settings import Settings, check_exposure
from textcls.server.tracing import Tracing

_BACKLOG: Final = 2048
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_LOGGER: Final = logging.getLogger(__name__)
# A kept connection is told to close with its next answer; one on which nothing is asked for so long is idle.
_LINGER_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 0.05
_START_SECONDS: Final = 60
# A worker that is ready and does not answer its supervisor for so long hangs.
_HUNG_SECONDS: Final = 5.0
_PREFIX, _OWNER = "textcls-", "owner"
# A folder so young may be that of a service which has not yet taken its lock.
_SETTLED_SECONDS: Final = 5.0


def serve(models: Sequence[str], settings: Settings, *, ready: Callable[[str], None] = lambda url: None) -> None:
    """Load the models, listen, and answer until SIGTERM or SIGINT; then finish what was begun, and return.

    SIGUSR1 reads the model files anew. With several workers, SIGHUP replaces them one after the other.

    Args:
        models: files, `NAME=FILE`, `NAME@VERSION=FILE`, or folders of files.
        settings: everything else.
        ready: called with the address of the service once it accepts connections.

    Raises:
        ArtifactError: a model cannot be used.
        ConfigError: settings that do not go together, or keys that cannot be read.
        MissingExtraError: spans are asked for, and what sends them is not installed.
        SurroundingsError: the address cannot be listened on, no folder can be written to, or no worker can start.
    """
    logs.configure(settings.log_level)
    if threading.current_thread() is threading.main_thread():
        # Until there are models to exchange; workers inherit this until they watch. The default would end them.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    keys, _ = auth.load(settings)
    check_exposure(settings, has_keys=bool(keys))
    with _runtime_folder(settings.runtime_dir) as folder, listen(settings.host, settings.port) as listener:
        shelf = Shelf(folder, models, settings)
        shelf.publish()
        url = _url(settings.host, listener)
        if settings.workers == 1:
            server = Server(_service(shelf, settings), drain_seconds=settings.drain_seconds)
            with _stopped_by_signals(server):
                ready(url)
                server.run(sockets=[listener])
        else:
            if settings.tracing:
                # What every worker would fail of is told once, and before any is started.
                Tracing().close()
            Supervisor(shelf, settings, listener, lambda: ready(url)).run()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        SurroundingsError: the port is taken or forbidden, or there is no such address here.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4]
    except (socket.gaierror, UnicodeError) as error:
        raise SurroundingsError(f"The host {host!r} is unknown; 127.0.0.1 serves this machine alone.") from error
    try:
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = "is already in use; stop the other program or choose another with --port (0 takes a free one)."
        else:
            reason = f"cannot be listened on: {os.strerror(error.errno or 0)}; choose another --host or --port."
        raise SurroundingsError(f"Port {port} of {host} {reason}") from error
    # asyncio does this only for sockets that name their protocol, which this one does not; without it each answer on a
    # kept connection waits 40 ms for a delayed ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def config(service: Service) -> uvicorn.Config:
    """Return how uvicorn serves `service`."""
    settings = service.settings
    return uvicorn.Config(
        create_app(service),
        http=protocol(service),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.stop_seconds,
    )


class Server(uvicorn.Server):
    """uvicorn's server, which sweeps its connections, takes up new models, and stops without losing a request."""

    def __init__(self, service: Service, *, drain_seconds: float, supervisor: int | None = None) -> None:
        super().__init__(config(service))
        self.service = service
        service.tasks = self.server_state.tasks
        self._drain_seconds = drain_seconds
        self._hurry = False
        self._supervisor = supervisor
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, to sweep and to watch."""
        self._begin(self._sweep())
        self._begin(self.service.watch())
        if threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: self._begin(self._reload()))
        memory.tidy()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell everybody to go elsewhere, then stop listening, then let each connection have its last answer.

        Raises:
            Exception: what ended a task in the background, and so the service.
        """
        self.service.draining = True
        await self._until(lambda: False, self._drain_seconds)
        for server in self.servers:
            server.close()
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
        """Stop; at Ctrl-C, or at a second signal, without waiting for connections on which nothing is asked."""
        self._hurry = self._hurry or sig == signal.SIGINT or self.should_exit
        super().handle_exit(sig, frame)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the requests; the server does not outlive its failure."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        said = str(error) if isinstance(error, TextclsError) else type(error).__name__
        _LOGGER.error("The server stops, since it cannot go on: %s", said, extra={"where": logs.places(error)})
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
            if self._supervisor is not None and os.getppid() != self._supervisor:
                # The supervisor was killed: nobody would replace or stop this worker any more.
                self.should_exit = True
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.sweep(now)

    async def _reload(self) -> None:
        with suppress(RefusalError):  # It has been logged and counted.
            await self.service.reload()


class Supervisor(multiprocess.Multiprocess):
    """uvicorn's supervisor, which replaces workers that die, with what this service does at signals."""

    def __init__(self, shelf: Shelf, settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
        self._shelf, self._settings, self._ready = shelf, settings, ready
        # uvicorn looks the process class up under this module attribute; there is no other hook.
        multiprocess.Process = partial(_Worker, shelf, settings)  # type: ignore[assignment,misc]
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


class _Worker(multiprocess.Process):
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
            self._server = Server(_service(self._shelf, self._settings), drain_seconds=0, supervisor=os.getppid())
        except TextclsError as error:
            _LOGGER.error("The worker cannot start: %s", error)
            sys.exit(STARTUP_FAILURE)
        try:
            super().target(sockets)
        except TextclsError:  # It has been logged.
            sys.exit(1)


def _service(shelf: Shelf, settings: Settings) -> Service:
    generation, keys, admin_keys = shelf.load()
    return Service(generation, settings, keys=keys, admin_keys=admin_keys, shelf=shelf)


@contextmanager
def _runtime_folder(wanted: Path | None) -> Iterator[Path]:
    """Make the folder that the workers share, in memory if possible, and remove it in the end."""
    # None is the temporary folder, which is looked for only then: with a read-only root there may be none.
    places = [wanted] if wanted is not None else [Path("/dev/shm"), None]
    for place in places:
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        except OSError:
            continue
        _sweep(folder.parent)
        # Held as long as this process lives, however it ends; workers do not inherit it.
        with (folder / _OWNER).open("w") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return
    raise SurroundingsError(
        f"No file can be made in {wanted or '/dev/shm or the temporary folder'}: "
        "name a writable folder with --runtime-dir."
    )


def _sweep(place: Path) -> None:
    """Remove what services that were killed have left in memory."""
    for owner in place.glob(f"{_PREFIX}*/{_OWNER}"):
        try:
            with owner.open("r+") as file:
                if time.time() - owner.stat().st_mtime > _SETTLED_SECONDS:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(owner.parent, ignore_errors=True)
        except OSError:  # alive, another user's, or gone meanwhile
            continue


def _url(host: str, listener: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let signals stop `server`, and nothing more.

    uvicorn has handlers of its own while it runs, but raises the signal once more when it is done: that would end the
    process as killed. A signal before it runs is caught here, too.
    """

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
