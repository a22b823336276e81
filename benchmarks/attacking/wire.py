"""The attacker's side of a connection: raw sockets to 127.0.0.1 that send anything, and read as little as they like."""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any, Final, Self

# No attack takes longer, or sends more over one connection.
SECONDS: Final = 20.0
MOST_BYTES: Final = 64_000_000
_PIECE: Final = 65_536


@dataclass
class Seen:
    """What an attack saw for itself.

    Attributes:
        said: facts, for the record.
        broken: what should not have happened, a few words each.
    """

    said: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


class Connection:
    """One connection, as a context manager."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        """Name the server's port, and how many bytes the kernel keeps of what is not read."""
        self._port = port
        self._socket = socket.socket()
        self._socket.setblocking(False)
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)

    async def __aenter__(self) -> Self:
        try:
            await asyncio.get_running_loop().sock_connect(self._socket, ("127.0.0.1", self._port))
        except OSError:
            self._socket.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()

    async def send(self, data: bytes) -> None:
        """Send all of it.

        Raises:
            ConnectionError: the server has hung up.
        """
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def receive(self) -> bytes:
        """Return what has come next; empty at the end.

        Raises:
            ConnectionError: the server has reset it.
        """
        return await asyncio.get_running_loop().sock_recv(self._socket, _PIECE)

    async def answer(self, most: int = _PIECE) -> bytes:
        """Return the beginning of all that comes until the server hangs up; the rest is read and dropped."""
        found = b""
        with suppress(ConnectionError):
            while piece := await self.receive():
                found += piece[: most - len(found)]
        return found


def status(answer: bytes) -> str:
    """Return the status of an answer, or that there is none."""
    return answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.") else "no answer"


async def pour(port: int, first: bytes, more: bytes) -> Seen:
    """Send `first`, then `more` again and again, until the server hangs up, it is enough, or time is up."""
    sent, begun, ended = 0, monotonic(), "still open"
    async with Connection(port) as connection:
        reading = asyncio.create_task(connection.answer())
        try:
            async with asyncio.timeout(SECONDS):
                await connection.send(first)
                while sent < MOST_BYTES and not reading.done():
                    await connection.send(more)
                    sent += len(more)
                    # Once a piece, so that the answer is read meanwhile.
                    await asyncio.sleep(0)
                # All is sent: whether it is refused after all.
                await asyncio.wait([reading], timeout=2)
        except TimeoutError:
            ended = "still open, and reads no more" if sent < MOST_BYTES else ended
        except ConnectionError:
            await asyncio.wait([reading], timeout=2)
        if reading.done():
            ended = status(reading.result())
        reading.cancel()
    seen = Seen({"sent_mb": round(sent / 1e6, 1), "answer": ended, "seconds": round(monotonic() - begun, 1)})
    if sent >= MOST_BYTES and ended == "still open":
        seen.broken.append(f"{sent / 1e6:.0f} MB taken without a refusal")
    return seen


async def ask(port: int, request: bytes, seconds: float = SECONDS) -> tuple[str, bytes, float]:
    """Send a request that asks to close; return status, or what went wrong, the answer, and the seconds it took."""
    begun, answer = monotonic(), b""
    try:
        async with asyncio.timeout(seconds), Connection(port) as connection:
            await connection.send(request)
            answer = await connection.answer()
            found = status(answer)
    except TimeoutError:
        found = f"no answer in {seconds:g} s"
    except OSError as error:
        found = type(error).__name__
    return found, answer, monotonic() - begun


async def volley(port: int, requests: Sequence[bytes]) -> Seen:
    """Send requests at once, each over a connection of its own, and wait for the answers."""
    found = await asyncio.gather(*(ask(port, request) for request in requests))
    statuses = Counter(each for each, _, _ in found)
    return Seen({"answers": dict(statuses), "slowest_seconds": round(max(seconds for _, _, seconds in found), 1)})


def post(head: str, body: Any) -> bytes:
    """Return a request: its head without the empty line, and a body, which is JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def within(seconds: float, done: Callable[[], bool]) -> bool:
    """Wait until something is so; return whether it was in time."""
    end = monotonic() + seconds
    while not (so := done()) and monotonic() < end:
        sleep(0.05)
    return so


def last_words(said: str) -> str:
    """Return the last line of what a process said, of a log line the message alone."""
    line = next((line for line in reversed(said.splitlines()) if line.strip()), "")
    try:
        return str(json.loads(line)["message"])
    except (ValueError, KeyError, TypeError):
        return line[:300]
