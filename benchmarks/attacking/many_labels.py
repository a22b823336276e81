"""Section 4: models of a thousand labels and more, whose answers are large and whose searches are long."""

import asyncio
from collections import Counter
from time import monotonic
from typing import Any, Final

from attacking import models
from attacking.bench import SPARE_MB, Bench, Result, Target, attack, on_a_server, tally, watched
from attacking.wire import SECONDS, Seen, ask, within

_SECTION: Final = "4. models of very many labels"
_THOUSAND, _THOUSANDS = 1000, 5000
_WORDS: Final = "some words of a text " + "that".ljust(1400, "n")
_STOPPED_SECONDS: Final = 15.0


@on_a_server(_SECTION, "explained, 1.5 kB, one after another, 1,000 labels", labels=_THOUSAND, within_budget=True)
async def explained(target: Target) -> Seen:
    return await _again_and_again(target, {"inputs": _WORDS, "explain": True}, 1)


@on_a_server(_SECTION, "lists of 64 texts on 8 connections, 1,000 labels", labels=_THOUSAND, within_budget=True)
async def lists(target: Target) -> Seen:
    return await _again_and_again(target, {"inputs": ["a"] * 64}, 8)


@attack(_SECTION, "counterfactuals on 4 connections, 5,000 labels, then SIGTERM")
def counterfactuals(bench: Bench) -> Result:
    body = {"inputs": "a text of some words " * 10, "explain": {"counterfactual": True}, "top_k": 1}
    with bench.server(model=models.with_labels(bench.tree, bench.work, _THOUSANDS)) as target:
        figures, seen = watched(target, lambda target: _again_and_again(target, body, 4))
        if not figures.died:
            process, begun = target.server.process, monotonic()
            process.terminate()
            if not within(_STOPPED_SECONDS, lambda: process.poll() is not None):
                seen.broken.append(f"SIGTERM not obeyed within {_STOPPED_SECONDS:g} s")
            seen.said["stopped_after_seconds"] = round(monotonic() - begun, 1)
    return Result(figures, seen, SPARE_MB + bench.budget_mb)


@on_a_server(_SECTION, "an unknown label on 8 connections, 5,000 labels", labels=_THOUSANDS)
async def unknown_label(target: Target) -> Seen:
    return await _again_and_again(target, {"inputs": "a text", "explain": {"label": "none of them"}}, 8)


async def _again_and_again(target: Target, body: Any, connections: int) -> Seen:
    """Ask the same, so many at once, each anew as soon as it is answered; the answers are read whole."""
    request, end, statuses = target.classify(body), monotonic() + SECONDS, Counter[str]()
    slowest = 0.0

    async def client() -> None:
        nonlocal slowest
        while monotonic() < end and target.server.process.poll() is None:
            status, _, seconds = await ask(target.port, request)
            statuses[status] += 1
            slowest = max(slowest, seconds)

    await asyncio.gather(*(client() for _ in range(connections)))
    strange = {each: count for each, count in statuses.items() if not each.isdigit() or each in ("500", "502")}
    said = {"answers": dict(statuses), "slowest_seconds": round(slowest, 1)}
    return Seen(said, [tally(strange)] if strange else [])
