"""The socket that the service listens on, and its address."""

import errno
import os
import socket
from typing import Final

from textcls.errors import SurroundingsError

BACKLOG: Final = 2048


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
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
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


def url(host: str, listener: socket.socket) -> str:
    """Return the address of a service that listens to `host`."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"
