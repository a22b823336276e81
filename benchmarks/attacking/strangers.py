"""Section 1: before anybody is asked for a key. Keys are set, and none is sent unless an attack says so."""

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack

from attacking.bench import Target, on_a_server
from attacking.wire import MOST_BYTES, SECONDS, Connection, Seen, ask, pour
from running import KEY

_SECTION = "1. before a key is asked for"
_IDLE = 1000
_IDLE_SECONDS = 8.0
_UPGRADES = 50
_BODY = json.dumps({"inputs": "a text"}).encode()
_JSON = f"Content-Type: application/json\r\nContent-Length: {len(_BODY)}\r\n"
_CHUNK = b"%x\r\n%b\r\n0\r\n" % (len(_BODY), _BODY)


@on_a_server(_SECTION, "endless short headers")
async def endless_headers(target: Target) -> Seen:
    return await pour(target.port, target.head("GET", "/", close=False).encode(), b"a: b\r\n" * 2000)


@on_a_server(_SECTION, "endless trailers behind a chunked body")
async def endless_trailers(target: Target) -> Seen:
    head = target.head("POST", "/v1/classify", close=False)
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return await pour(target.port, head.encode() + _CHUNK, b"a: b\r\n" * 2000)


@on_a_server(_SECTION, "one endless header value")
async def endless_value(target: Target) -> Seen:
    head = target.head("GET", "/", close=False) + "a: "
    return await pour(target.port, head.encode(), b"b" * 16_384)


@on_a_server(_SECTION, "an endless URL")
async def endless_url(target: Target) -> Seen:
    return await pour(target.port, b"GET /", b"a" * 16_384)


@on_a_server(_SECTION, "two connections pipeline requests and never read")
async def pipelining(target: Target) -> Seen:
    request = (target.head("GET", "/", close=False) + "\r\n").encode() * 200
    sent = await asyncio.gather(*(_pipeline(target.port, request) for _ in range(2)))
    return Seen({"sent_mb": [round(each / 1e6, 1) for each in sent]})


async def _pipeline(port: int, requests: bytes) -> int:
    """Send without reading until the server takes no more; return how many bytes it took."""
    sent = 0
    try:
        async with asyncio.timeout(SECONDS), Connection(port, receive_buffer=4096) as connection:
            while sent < MOST_BYTES / 2:
                await connection.send(requests)
                sent += len(requests)
    except (TimeoutError, ConnectionError):
        pass
    return sent


@on_a_server(_SECTION, "a key in a trailer")
async def key_in_trailer(target: Target) -> Seen:
    head = target.head("POST", "/v1/classify") + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    trailer = f"Authorization: Bearer {KEY}\r\n\r\n".encode()
    found, _, _ = await ask(target.port, f"{head}Trailer: Authorization\r\n\r\n".encode() + _CHUNK + trailer)
    return Seen({"answer": found}, [] if found == "401" else [f"answered {found} where 401 is right"])


@on_a_server(_SECTION, "Upgrade: h2c with a key")
async def upgrade(target: Target) -> Seen:
    head = target.head("POST", "/v1/classify", KEY, close=False)
    # As curl --http2 and Java's HttpClient ask.
    head += "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    request = f"{head}{_JSON}\r\n".encode() + _BODY
    before = len(target.server.log().splitlines())
    statuses = Counter([(await ask(target.port, request))[0] for _ in range(_UPGRADES)])
    lines = len(target.server.log().splitlines()) - before
    seen = Seen({"answers": dict(statuses), "lines_logged": lines})
    if set(statuses) != {"200"}:
        seen.broken.append(f"answered {', '.join(statuses)} where 200 is right")
    if lines >= _UPGRADES:
        seen.broken.append(f"{lines} lines logged for {_UPGRADES} requests")
    return seen


@on_a_server(_SECTION, f"{_IDLE:,} idle connections")
async def idle(target: Target) -> Seen:
    async with AsyncExitStack() as stack:
        for _ in range(_IDLE):
            await stack.enter_async_context(Connection(target.port))
        await asyncio.sleep(_IDLE_SECONDS)
    return Seen()


@on_a_server(_SECTION, "a foreign Host, without keys", key="")
async def rebinding(target: Target) -> Seen:
    """A page of evil.example whose name now leads to this machine asks in the browser of whoever looks at it."""
    asked = {}
    for name in ("evil.example", f"evil.example:{target.port}", f"127.0.0.1:{target.port}", f"localhost:{target.port}"):
        start = f"HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n"
        asked[f"GET /v1/models, Host: {name}"] = f"GET /v1/models {start}\r\n".encode()
        plain = f"POST /predict {start}Content-Type: text/plain\r\nContent-Length: {len(_BODY)}\r\n\r\n".encode()
        asked[f"POST /predict of text/plain, Host: {name}"] = plain + _BODY
    found = {name: (await ask(target.port, request))[0] for name, request in asked.items()}
    seen = Seen({name.replace(f":{target.port}", ":PORT"): each for name, each in found.items()})
    opened = [name for name, each in found.items() if each == "200" and "evil" in name]
    closed = [name for name, each in found.items() if each != "200" and name.startswith("GET") and "evil" not in name]
    if opened:
        seen.broken.append(f"{len(opened)} of 4 requests with a foreign Host answered 200")
    if closed:
        seen.broken.append(f"{len(closed)} of 2 requests with its own Host refused")
    return seen
