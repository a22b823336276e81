"""Section 2: work and memory of requests that are allowed, by a caller with a key."""

import asyncio
import subprocess
from contextlib import AsyncExitStack, suppress
from itertools import count
from time import monotonic

from attacking.bench import SPARE_MB, Bench, Result, Target, attack, on_a_server, watched
from attacking.wire import SECONDS, Connection, Seen, ask, volley

_SECTION = "2. allowed requests"
# 2,048 tokens in a body below 4,096 bytes, which took a short way around queue and deadline.
_SHORT = {"inputs": "!" * 4000, "explain": True}
_AT_ONCE = 60
_REQUEST_SECONDS = 2
_LARGE = 64
_UNREAD = 90
_NESTED = 20
_LINES = 2000


async def _explain_at_once(target: Target) -> Seen:
    seen = await volley(target.port, [target.classify(_SHORT)] * _AT_ONCE)
    if seen.said["slowest_seconds"] > _REQUEST_SECONDS + 1:
        seen.broken.append(
            f"answered after {seen.said['slowest_seconds']} s where request_seconds is {_REQUEST_SECONDS}"
        )
    return seen


_few = f'{_AT_ONCE} at once of "!" x 4,000, explained, few labels'
_many = f'{_AT_ONCE} at once of "!" x 4,000, explained, 120 labels'
_bounded = ("--request-seconds", str(_REQUEST_SECONDS))
on_a_server(_SECTION, _few, *_bounded, within_budget=True)(_explain_at_once)
on_a_server(_SECTION, _many, *_bounded, labels=120, within_budget=True)(_explain_at_once)


@on_a_server(_SECTION, f"{_LARGE} of 1.9 MB, two of them explained, 120 labels", labels=120, within_budget=True)
async def large(target: Target) -> Seen:
    # As many tokens as are read of a text, and letters up to the largest body.
    texts = [f"{'some words of a text ' * 1400}{i}" for i in range(64)]
    plain, explained = {"inputs": texts}, {"inputs": texts, "explain": True, "top_k": 1}
    return await volley(target.port, [target.classify(explained)] * 2 + [target.classify(plain)] * (_LARGE - 2))


@on_a_server(_SECTION, f"{_UNREAD} explained, 120 labels, whose answers are not read", labels=120, within_budget=True)
async def unread(target: Target) -> Seen:
    request, end = target.classify(_SHORT), monotonic() + SECONDS
    async with AsyncExitStack() as stack:
        with suppress(ConnectionError):
            for _ in range(_UNREAD):
                connection = await stack.enter_async_context(Connection(target.port, receive_buffer=4096))
                await connection.send(request)
        while monotonic() < end and target.server.process.poll() is None:
            await asyncio.sleep(0.1)
    return Seen({"seconds": round(monotonic() - end + SECONDS, 1)})


@on_a_server(_SECTION, f"{_NESTED} bodies of 1.8 MB of [],[],...", within_budget=True)
async def nested(target: Target) -> Seen:
    body = b'{"inputs":[' + b"[]," * 600_000 + b"[]]}"
    return await volley(target.port, [target.classify(body)] * _NESTED)


@attack(_SECTION, f"{_LINES:,} log lines that nobody reads")
def stalled_log(bench: Bench) -> Result:
    with bench.server("--log-requests", errors=subprocess.PIPE) as target:
        figures, seen = watched(target, _log)
    return Result(figures, seen, SPARE_MB)


async def _log(target: Target) -> Seen:
    """Ask, a few at a time, so often that the pipe of the log is full several times over."""
    request, numbers, end = target.classify({"inputs": "a text"}), count(), monotonic() + SECONDS

    async def client() -> int:
        answered = 0
        while next(numbers) < _LINES and monotonic() < end:
            found, _, _ = await ask(target.port, request, seconds=max(0.1, end - monotonic()))
            answered += found == "200"
        return answered

    answered = sum(await asyncio.gather(*(client() for _ in range(8))))
    return Seen({"answered": answered}, [] if answered == _LINES else [f"{answered:,} of {_LINES:,} answered"])
