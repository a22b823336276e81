"""Serve a model file on a socket until told to stop."""

import errno
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import uvicorn

from textcls.classifier import Classifier
from textcls.errors import SurroundingsError
from textcls.server.app import create_app
from textcls.server.limits import Limits

STOP_SECONDS: Final = 30
_BACKLOG: Final = 2048
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def serve(
    model_path: Path,
    host: str,
    port: int,
    limits: Limits,
    *,
    ready: Callable[[str], None] = lambda url: None,
    stop_seconds: int = STOP_SECONDS,
) -> None:
    """Load the model, listen, and answer until SIGTERM or SIGINT; then finish what was begun, and return.

    Args:
        model_path: the model file.
        host: name or address to listen on.
        port: port to listen on; 0 takes a free one.
        limits: bounds of one request.
        ready: called with the address of the service once it accepts connections.
        stop_seconds: how long requests in flight may take after the signal.

    Raises:
        ArtifactError: the model cannot be loaded.
        SurroundingsError: the address cannot be listened on.
    """
    app = create_app(Classifier.load(model_path), limits)
    with listen(host, port) as listener:
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=stop_seconds,
        )
        server = uvicorn.Server(config)
        with _stopped_by_signals(server):
            ready(_url(host, listener))
            server.run(sockets=[listener])


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
