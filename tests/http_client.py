"""Requests over plain sockets, as whoever attacks a server sends them: many at once, slowly, or without reading."""

import re
import socket
from select import select


def request(body: bytes, path: str = "/v1/classify") -> bytes:
    """A whole POST request."""
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def connect(address: str, receive: int | None = None) -> socket.socket:
    """A connection to the server at `address`, whose kernel takes about `receive` bytes for whoever does not read."""
    connection = socket.socket()
    if receive is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    connection.settimeout(60)
    host, _, port = address.removeprefix("http://").partition(":")
    connection.connect((host, int(port)))
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


def metrics(address: str) -> dict[str, float]:
    """The numbers of /metrics by name and labels."""
    lines = get(address, "/metrics")[1].decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def readable(connections: list[socket.socket]) -> int:
    """How many connections have something to read, or were hung up on."""
    return len(select(connections, [], [], 0)[0])
