"""Asks servers again and again how they are, until its standard input ends; then prints all it saw.

python probe.py ask '{"livez": {"port": 8000, "every": 0.05, "request": "GET /livez HTTP/1.1\\r\\n..."}}'
python probe.py nothing

A process of its own, so that nothing but the server and the machine delays it. What the machine delays is seen by
asking a server that does `nothing`, another process, at the same time. Each request has a new connection, as an
orchestrator's probes have.
"""

import asyncio
import gc
import json
import sys
from time import monotonic
from typing import Any, Final

TIMEOUT: Final = 10.0
_NOTHING: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


async def ask(port: int, request: bytes) -> str:
    """Send a request that asks to close the connection; return the status of the answer, or what went wrong."""
    try:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(request)
                answer = await reader.read()
            finally:
                writer.transport.abort()
    except TimeoutError:
        return f"no answer in {TIMEOUT:g} s"
    except OSError as error:
        return type(error).__name__
    return answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else "hung up"


async def keep_asking(port: int, every: float, request: str, stop: asyncio.Event) -> list[tuple[float, float, str]]:
    """Return when each request began, how many milliseconds it took, and how it ended."""
    seen = []
    while not stop.is_set():
        begun = monotonic()
        status = await ask(port, request.encode("latin-1"))
        now = monotonic()
        seen.append((begun, (now - begun) * 1000, status))
        await asyncio.sleep(max(0.0, begun + every - now))
    return seen


async def ask_all(asked: dict[str, dict[str, Any]]) -> None:
    """Ask each until standard input ends, then print what was seen of each."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(keep_asking(**spec, stop=stop)) for spec in asked.values()]
    await asyncio.to_thread(sys.stdin.read)
    stop.set()
    # What is not answered yet is waited for: it may be the worst.
    json.dump(dict(zip(asked, await asyncio.gather(*tasks), strict=True)), sys.stdout)


async def do_nothing() -> None:
    """Answer everything with 200; print the port first."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_NOTHING)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    gc.disable()
    asyncio.run(do_nothing() if sys.argv[1] == "nothing" else ask_all(json.loads(sys.argv[2])))
