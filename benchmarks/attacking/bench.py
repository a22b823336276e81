"""Which checkout is attacked, with which models, under which limit; and the list of attacks."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from attacking import models, wire
from attacking.limits import Limit, limited
from attacking.watching import PATHS, Figures, head, watching
from attacking.wire import Seen
from running import ADMIN_KEY, KEY, Server, environment

# The memory limit of the shipped manifests.
LIMIT_MIB: Final = 384
# The settings of a separate port for probes, and of the memory that requests may hold. A checkout without the first is
# asked on its only port.
PROBE_PORT: Final = "probe_port"
BUDGET: Final = "max_held_bytes"
# What the manual promised before there was a budget: bodies that arrive, bodies that wait, and the answer being made.
_PROMISED_MB: Final = 217.0
# Over the budget, or over the idle server for who has no key, nothing may take more than this.
SPARE_MB: Final = 20.0
# What loading a model takes for a moment, for each of its bytes, as the manual of the service and its warning at the
# start have it (`textcls.server.system.memory`). Manifests leave room for it.
_LOADING: Final = 30
MOST_MS: Final = {"livez": 100.0, "readyz": 100.0, "metrics": 500.0}
_READ_SETTINGS: Final = (
    "import json, textcls; from dataclasses import asdict; from textcls.server.settings import Settings;"
    "print(json.dumps([textcls.__file__, asdict(Settings())], default=str))"
)


@dataclass
class Result:
    """What an attack came to.

    Attributes:
        figures: of the server.
        seen: by the attack.
        allowed_mb: by how much the server may have grown.
    """

    figures: Figures
    seen: Seen
    allowed_mb: float = SPARE_MB

    def broken(self) -> list[str]:
        """Say what should not have happened."""
        figures, found = self.figures, []
        if figures.died:
            # Whatever else went wrong is what follows from that.
            return [figures.died]
        if figures.replaced:
            found.append(f"{figures.replaced} workers replaced")
        if figures.grown_mb is not None and figures.grown_mb > self.allowed_mb:
            found.append(f"{figures.grown_mb:.0f} MB where {self.allowed_mb:.0f} are allowed")
        if slow := [f"/{path}" for path, most in MOST_MS.items() if figures.own_ms.get(path, 0.0) > most]:
            found.append(f"slow: {', '.join(slow)}")
        found += [f"/{path}: {tally(counts)}" for path, counts in figures.bad.items()]
        if figures.lost:
            found.append(f"{figures.lost} of {sum(figures.caller.values())} requests of the caller lost")
        return found + self.seen.broken


def tally(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} x {what}" for what, count in sorted(counts.items()))


class Target(NamedTuple):
    """A server that is attacked.

    Attributes:
        server: the process.
        limit: on its memory.
        probe_port: where it answers probes.
        key: that opens it; empty if there are none.
        budget_mb: what requests may hold.
    """

    server: Server
    limit: Limit
    probe_port: int
    key: str
    budget_mb: float

    @property
    def port(self) -> int:
        return self.server.port

    def head(self, method: str, path: str, key: str = "", close: bool = True) -> str:
        """Return the head of a request, without the empty line that ends it, and with a key only if one is given."""
        return head(method, path, self.port, key, close)

    def classify(self, body: Any) -> bytes:
        """Return a request that is allowed."""
        return wire.post(self.head("POST", "/v1/classify", self.key), body)

    def ask(self, method: str, path: str, seconds: float = 10.0) -> tuple[str, bytes]:
        """Return status and answer of a request without a body that is allowed."""
        port = self.probe_port if path[1:] in PATHS else self.port
        key = ADMIN_KEY if self.key and path.startswith("/v1/admin/") else self.key
        request = head(method, path, port, key) + ("Content-Length: 0\r\n" if method == "POST" else "") + "\r\n"
        found, answer, _ = asyncio.run(wire.ask(port, request.encode(), seconds))
        return found, answer.partition(b"\r\n\r\n")[2]

    def answers(self, seconds: float = 10.0) -> bool:
        """Whether it classifies a text."""
        return asyncio.run(wire.ask(self.port, self.classify({"inputs": "a text"}), seconds))[0] == "200"


class Bench:
    """A checkout to attack."""

    def __init__(self, tree: Path, model: Path, work: Path) -> None:
        """Find out what the settings of the checkout are called.

        Args:
            tree: the checkout.
            model: that is served where it does not matter which.
            work: a folder for files.

        Raises:
            SystemExit: the code that would run is not that of `tree`.
        """
        self.tree, self.model, self.work = tree, model, work
        said = subprocess.run(
            [sys.executable, "-P", "-c", _READ_SETTINGS],
            env=environment(tree),
            capture_output=True,
            text=True,
            check=True,
        )
        found, self.settings = json.loads(said.stdout)
        if tree not in Path(found).parents:
            raise SystemExit(f"{found} would be run, which is not in {tree}: is textcls there?")

    @property
    def budget_mb(self) -> float:
        """Megabytes that requests may hold."""
        return self.settings[BUDGET] / 1e6 if BUDGET in self.settings else _PROMISED_MB

    @property
    def loading_mb(self) -> float:
        """Megabytes that a process takes for a moment while it loads the bench's model."""
        return _LOADING * self.model.stat().st_size / 1e6

    @contextmanager
    def model_to_exchange(self) -> Iterator[Path]:
        """Make a copy of the model."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            yield Path(shutil.copy(self.model, Path(folder, "model.onnx")))

    @contextmanager
    def server(
        self,
        *options: str,
        model: Path | None = None,
        key: str = KEY,
        prefix: tuple[str, ...] = (),
        errors: IO[Any] | int | None = None,
        wait: bool = True,
    ) -> Iterator[Target]:
        """Start a server under the memory limit."""
        probe_port = _free_port() if PROBE_PORT in self.settings else 0
        if probe_port:
            options = (*options, f"--{PROBE_PORT.replace('_', '-')}", str(probe_port))
        with limited(LIMIT_MIB) as limit:
            server = Server(
                model or self.model,
                *options,
                key=key,
                tree=self.tree,
                prefix=(*limit.prefix, *prefix),
                errors=errors,
                wait=False,
            )
            try:
                if wait:
                    server.wait()
                yield Target(server, limit, probe_port or (server.port if wait else 0), key, self.budget_mb)
            finally:
                server.kill()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Attack(NamedTuple):
    """One attack: the section it belongs to, what it is called, and what does it."""

    section: str
    name: str
    run: Callable[[Bench], Result]


ATTACKS: Final[list[Attack]] = []


def attack(section: str, name: str) -> Callable[[Callable[[Bench], Result]], Callable[[Bench], Result]]:
    """List an attack that starts its servers itself."""

    def listed(run: Callable[[Bench], Result]) -> Callable[[Bench], Result]:
        ATTACKS.append(Attack(section, name, run))
        return run

    return listed


def on_a_server(
    section: str, name: str, *options: str, labels: int = 0, key: str = KEY, within_budget: bool = False
) -> Callable[[Callable[[Target], Awaitable[Seen]]], Callable[[Bench], Result]]:
    """List an attack on one server that is watched meanwhile.

    Args:
        section: what it belongs to.
        name: what it is called.
        options: of `textcls serve`.
        labels: how many the model has that is served; 0: the bench's own model.
        key: of the server.
        within_budget: what it sends is allowed, and may take up the budget.
    """

    def listed(send: Callable[[Target], Awaitable[Seen]]) -> Callable[[Bench], Result]:
        @attack(section, name)
        def run(bench: Bench) -> Result:
            model = models.with_labels(bench.tree, bench.work, labels) if labels else bench.model
            with bench.server(*options, model=model, key=key) as target:
                figures, seen = watched(target, send)
            return Result(figures, seen, SPARE_MB + bench.budget_mb * within_budget)

        return run

    return listed


def watched(target: Target, send: Callable[[Target], Awaitable[Seen]]) -> tuple[Figures, Seen]:
    """Attack a server, watch it meanwhile, and see whether it answers afterwards."""
    with watching(target.server, target.limit, target.probe_port, target.key) as figures:
        seen = asyncio.run(_run(send(target)))
        if target.server.process.poll() is None and not target.answers():
            seen.broken.append("does not answer afterwards")
    return figures, seen


async def _run(sending: Awaitable[Seen]) -> Seen:
    return await sending
