"""Section 5: a search for the request that costs the service most, among random requests of all options.

Requests are drawn, sent one at a time, and the worker's processor time is read before and after each; half of those
that follow are the worst so far, changed. What is kept is the worst in all, and the worst by the byte sent. The seed is
the system's, and is told.
"""

import asyncio
import json
import random
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from attacking import models
from attacking.bench import SPARE_MB, Bench, Result, Target, attack, tally, watched
from attacking.watching import family
from attacking.wire import Seen, ask, post
from running import GONE
from textcls import Classifier

_SECTION: Final = "5. a search for the worst request"
_SECONDS: Final = 100.0
# What a request may cost: the time it may take by itself, and that of a search, which looks at the clock.
_MOST_SECONDS: Final = 15.0
# A longer body is refused before it has been read, and whoever sends it may be reset before he reads that.
_MOST_BYTES: Final = 1_900_000
_KEPT: Final = 12
# Behind its answer, or its refusal, a request should cost nothing; if it does, that counts.
_MOMENT: Final = 0.02
_IN_ALL: Final = "in all"
_WORDS: Final = (
    "charged",
    "twice",
    "word3of4",
    "label 0007",
    "!",
    "我的卡",
    "ไม่",
    "a\u0301" * 20,
    "x" * 300,
    "7,001.5",
)
_ROUTES: Final = ("/v1/classify", "/v1/models/{}:predict", "/v1/models/{}:explain", "/predict", "/v2/models/{}/infer")

Body = dict[str, Any]


class Tried(NamedTuple):
    """A request, and the processor seconds it cost."""

    seconds: float
    size: int
    route: str
    body: Body

    def told(self) -> dict[str, Any]:
        """Say it in a few words."""
        body = json.dumps(self.body)
        return {"ms": round(1e3 * self.seconds), "bytes": self.size, "route": self.route, "body": body[:300]}


_BY: Final[dict[str, Callable[[Tried], float]]] = {
    _IN_ALL: lambda tried: tried.seconds,
    "by the byte": lambda tried: tried.seconds / tried.size,
}


def _text(chance: random.Random) -> str:
    count = int(10 ** chance.uniform(0, 3.6))
    few = chance.sample(_WORDS, chance.randint(1, 3))
    return chance.choice((" ", "", "\n", ". ")).join(chance.choice(few) for _ in range(count))


def _options(chance: random.Random, labels: list[str]) -> Body:
    made: dict[str, Callable[[], Any]] = {
        "unit": lambda: chance.choice(("token", "phrase", "sentence")),
        "parts": lambda: True,
        "counterfactual": lambda: True,
        "label": lambda: chance.choice([*labels, "none of them", labels[0][:-1]]),
        "against": lambda: chance.choice(labels),
    }
    return {name: make() for name, make in made.items() if chance.random() < 0.4}


def _drawn(chance: random.Random, labels: list[str]) -> tuple[str, Body]:
    """Draw a request of any kind."""
    texts = [_text(chance) for _ in range(chance.choice((1, 1, 1, 2, 8, 64)))]
    route = chance.choice((_ROUTES[0],) * 4 + _ROUTES[1:])
    if route == "/predict":
        return route, {"inputs": texts}
    if route.endswith("infer"):
        return route, {"inputs": [{"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": texts}]}
    if ":" in route:
        return route, {"instances": texts}
    body: Body = {"inputs": texts if len(texts) > 1 or chance.random() < 0.3 else texts[0]}
    if chance.random() < 0.8:
        body["explain"] = chance.choice((True, _options(chance, labels)))
    if chance.random() < 0.5:
        body["top_k"] = chance.choice((1, 3, 100, 10_000))
    return route, body


def _changed(chance: random.Random, tried: Tried, labels: list[str]) -> tuple[str, Body]:
    """Draw another of the same route in which a field is exchanged or left out."""
    for _ in range(50):
        route, other = _drawn(chance, labels)
        if route == tried.route:
            field = chance.choice(list(other))
            body = {**tried.body, field: other[field]}
            if field != "inputs" and chance.random() < 0.2:
                del body[field]
            return route, body
    return tried.route, tried.body


async def search(target: Target, model: Path, seed: int) -> Seen:
    """Look for the worst request for some time."""
    chance, end = random.Random(seed), monotonic() + _SECONDS
    name, labels = model.stem, list(Classifier.load(model).labels)
    worst: dict[str, list[Tried]] = {kind: [] for kind in _BY}
    statuses = Counter[str]()
    while monotonic() < end and target.server.process.poll() is None:
        parents = [each for kept in worst.values() for each in kept]
        change = parents and chance.random() < 0.5
        route, body = _changed(chance, chance.choice(parents), labels) if change else _drawn(chance, labels)
        request = post(target.head("POST", route.format(name), target.key), body)
        if len(request) > _MOST_BYTES:
            continue
        tried = Tried(await _cost(target, request, statuses), len(request), route, body)
        if any(len(worst[kind]) < _KEPT or by(tried) > by(worst[kind][-1]) for kind, by in _BY.items()):
            # Asked again: what else happens meanwhile, such as a probe, costs something, too.
            tried = tried._replace(seconds=min(tried.seconds, await _cost(target, request, statuses)))
            for kind, by in _BY.items():
                worst[kind] = sorted([*worst[kind], tried], key=by, reverse=True)[:_KEPT]
    strange = {each: many for each, many in statuses.items() if not each.isdigit() or each == "500"}
    broken = [tally(strange)] if strange else []
    if worst[_IN_ALL] and worst[_IN_ALL][0].seconds > _MOST_SECONDS:
        broken.append(f"a request of {worst[_IN_ALL][0].seconds:.1f} s of processor time")
    told = {kind: [each.told() for each in kept[:3]] for kind, kept in worst.items()}
    return Seen({"seed": seed, "answers": dict(statuses), **told}, broken)


async def _cost(target: Target, request: bytes, statuses: Counter[str]) -> float:
    """Send a request; return the processor seconds from before it until a moment after its answer."""
    before = _processor_seconds(target)
    status, _, _ = await ask(target.port, request, 3 * _MOST_SECONDS)
    statuses[status] += 1
    await asyncio.sleep(_MOMENT)
    return _processor_seconds(target) - before


def _processor_seconds(target: Target) -> float:
    """Return what all threads of the service have used of the processors so far."""
    found = 0
    for pid in family(target.server.process.pid):
        with suppress(*GONE):
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += int((task / "schedstat").read_text().split()[0])
    return found / 1e9


_MODELS: Final[dict[str, Callable[[Bench], Path]]] = {
    "few labels": lambda bench: bench.model,
    "100 labels, several a text, long names": lambda bench: models.with_several_labels(bench.tree, bench.work),
    "100 prototypes": lambda bench: models.with_prototypes(bench.tree, bench.work),
    "120 labels": lambda bench: models.with_labels(bench.tree, bench.work, 120),
    "1,000 labels": lambda bench: models.with_labels(bench.tree, bench.work, 1000),
    "5,000 labels": lambda bench: models.with_labels(bench.tree, bench.work, 5000),
}


def _searched(name: str, made: Callable[[Bench], Path]) -> None:
    @attack(_SECTION, f"{_SECONDS:g} s of random requests, {name}")
    def run(bench: Bench) -> Result:
        model = made(bench)
        with bench.server(model=model) as target:
            figures, seen = watched(target, lambda target: search(target, model, secrets.randbits(32)))
        return Result(figures, seen, SPARE_MB + bench.budget_mb)


for _name, _made in _MODELS.items():
    _searched(_name, _made)
