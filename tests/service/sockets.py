"""Requests over plain sockets, as whoever attacks a server sends them: many at once, slowly, or without reading."""

import re
import socket
from select import select

import httpx

from tests.service.processes import PATIENCE


def request(body: bytes, path: str = "/v1/classify") -> bytes:
    """A whole POST request."""
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def connect(server: str | httpx.Client, receive: int | None = None) -> socket.socket:
    """A connection to a server, which is given by its address or another client.

    The kernel takes about `receive` bytes for whoever does not read.
    """
    connection = socket.socket()
    if receive is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    connection.settimeout(PATIENCE)
    url = httpx.URL(server) if isinstance(server, str) else server.base_url
    assert url.port is not None
    connection.connect((url.host, url.port))
    return connection


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """The status and the body of the next answer; 0 if the server hangs up before."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += (part := connection.recv(65536))
        if not part:
            return 0, found
    head, _, body = found.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    while len(body) < int(length[1]):
        body += (part := connection.recv(1 << 20))
        if not part:
            return 0, body
    return int(head.split()[1]), body


def ask(address: str, body: bytes, path: str = "/v1/classify") -> tuple[int, bytes]:
    """The answer to one request on a connection of its own."""
    with connect(address) as connection:
        connection.sendall(request(body, path))
        return answer(connection)


def get(address: str, path: str) -> tuple[int, bytes]:
    """The answer to a GET request on a connection of its own."""
    with connect(address) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        return answer(connection)


def everything(connection: socket.socket) -> bytes:
    """What comes until the server hangs up."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def readable(connections: list[socket.socket]) -> int:
    """How many connections have something to read, or were hung up on."""
    return len(select(connections, [], [], 0)[0])
