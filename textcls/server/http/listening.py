"""The socket that the service listens on, and its address."""

import errno
import os
import socket
from typing import Final

from textcls.errors import SurroundingsError

BACKLOG: Final = 2048
# Most unsent bytes of an answer in the kernel. What fits the client's window is sent at once in any case.
_UNSENT_BYTES: Final = 65_536


def listen(host: str, port: int, option: str = "--port") -> socket.socket:
    """Return a listening socket.

    Args:
        host: name or address.
        port: 0 takes a free one.
        option: the option that sets the port, for the message.

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
            # For the probe port 0 means none.
            free = " (0 takes a free one)" if option == "--port" else ""
            reason = f"is already in use; stop the other program or choose another with {option}{free}."
        else:
            reason = f"cannot be listened on: {os.strerror(error.errno or 0)}; choose another --host or {option}."
        raise SurroundingsError(f"Port {port} of {host} {reason}") from error
    # asyncio sets this only on sockets that name their protocol, which this one does not; without it each answer on a
    # kept connection waits 40 ms for a delayed ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # on Linux
        # Else the kernel would buffer 4 MB of answers per connection for clients that do not read them.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    return listener


def url(host: str, listener: socket.socket) -> str:
    """Return the URL of a service that listens on `host`."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"
