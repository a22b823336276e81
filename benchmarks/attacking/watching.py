"""What a server does while it is attacked: its memory, how it answers probes and a caller, and whether it lives on."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from attacking.limits import Limit
from running import GONE, Server, resident

_PROBE: Final = (sys.executable, str(Path(__file__).with_name("probe.py")))
PATHS: Final = ("livez", "readyz", "metrics")
# How often each is asked, in seconds. The caller is an ordinary one, with a key.
_EVERY: Final = {"livez": 0.05, "readyz": 0.05, "metrics": 0.2, "caller": 0.1, "nothing": 0.05}
_SAMPLE_SECONDS: Final = 0.02
_SETTLE_SECONDS: Final = 1.0
# Answers of a server that refuses work in order, or could not do it within its deadline: nothing is lost.
_REFUSALS: Final = frozenset({"429", "503", "504"})

Samples = list[tuple[float, float, str]]


@dataclass
class Figures:
    """What was seen of a server while it was attacked.

    Attributes:
        grown_mb: most resident memory of all its processes, over that of the idle server; None if nobody looked.
        worst_ms: of each path that was asked, the longest wait for an answer.
        own_ms: the same, less what the machine took of it.
        nothing_ms: the longest wait for a server that does nothing.
        bad: of each path, the answers that were not 200, and how often.
        caller: how the requests of an ordinary caller ended.
        died: how the server ended, if it did.
        replaced: workers that were replaced.
    """

    grown_mb: float | None = None
    worst_ms: dict[str, float] = field(default_factory=dict)
    own_ms: dict[str, float] = field(default_factory=dict)
    nothing_ms: float = 0.0
    bad: dict[str, dict[str, int]] = field(default_factory=dict)
    caller: dict[str, int] = field(default_factory=dict)
    died: str = ""
    replaced: int = 0

    @property
    def lost(self) -> int:
        """The caller's requests that got neither an answer nor an orderly refusal."""
        return sum(count for status, count in self.caller.items() if status != "200" and status not in _REFUSALS)

    def merge(self, other: "Figures") -> None:
        """Take in the figures of another server that was attacked in the same way: the worst of both."""
        grown = [each for each in (self.grown_mb, other.grown_mb) if each is not None]
        self.grown_mb = max(grown, default=None)
        for mine, theirs in ((self.worst_ms, other.worst_ms), (self.own_ms, other.own_ms)):
            mine.update({path: max(ms, mine.get(path, 0.0)) for path, ms in theirs.items()})
        self.nothing_ms = max(self.nothing_ms, other.nothing_ms)
        for path, counts in other.bad.items():
            self.bad[path] = dict(Counter(self.bad.get(path, {})) + Counter(counts))
        self.caller = dict(Counter(self.caller) + Counter(other.caller))
        self.died = self.died or other.died
        self.replaced += other.replaced


class Sampler:
    """Looks again and again, in a thread, until told to stop."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look once more, and no more then."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Take a sample."""
        raise NotImplementedError

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            self.look()
        self.look()


class Memory(Sampler):
    """Looks at the memory of a process and all it has started, until told to stop."""

    def __init__(self, pid: int, limit: Limit) -> None:
        self._pid, self._limit = pid, limit
        self.most = 0.0
        self.killed = False
        for each in family(pid):
            with suppress(*GONE, PermissionError):
                # From now on the kernel counts the peak anew.
                Path(f"/proc/{each}/clear_refs").write_text("5")
        self.idle = sum(_of(each, "VmRSS") for each in family(pid))
        super().__init__()

    def stop(self) -> float:
        """Return by how many megabytes it grew at most."""
        self.end()
        return self.most - self.idle

    def look(self) -> None:
        """Note the peak, and keep the limit if nobody else does."""
        pids = family(self._pid)
        # The kernel's own count of the peak misses nothing between two looks.
        self.most = max(self.most, sum(_of(pid, "VmHWM") for pid in pids))
        if self._limit.group is None and sum(_of(pid, "VmRSS") for pid in pids) > self._limit.mib:
            self.killed = True
            for pid in pids:
                with suppress(*GONE):
                    os.kill(pid, signal.SIGKILL)


class Delays(Sampler):
    """Notes for how long each thread of a process, and of all it has started, has waited for a processor so far.

    That is the scheduler's own count of the time in which a thread could have run and another did, so on a busy machine
    it tells what is the machine's from what is the server's.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: list[tuple[float, dict[str, int]]] = []
        super().__init__()

    def look(self) -> None:
        """Read the counts, in nanoseconds by thread."""
        found = {}
        for pid in family(self._pid):
            with suppress(*GONE):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found[task.name] = int((task / "schedstat").read_text().split()[1])
        self._seen.append((monotonic(), found))

    def between(self, begun: float, ended: float) -> float:
        """Return for how many milliseconds the thread that waited longest did so at least."""
        within = [counts for at, counts in self._seen if begun <= at <= ended]
        if not within:
            return 0.0
        first, last = within[0], within[-1]
        return max((last[task] - first[task] for task in last.keys() & first.keys()), default=0) / 1e6


def family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    found = [pid]
    for each in found:
        with suppress(*GONE):
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
    return found


def _of(pid: int, kind: str) -> float:
    with suppress(*GONE):
        return resident(pid, kind)
    return 0.0


@contextmanager
def watching(server: Server, limit: Limit, probe_port: int, key: str) -> Iterator[Figures]:
    """Watch a server during what is done within; the figures are complete afterwards.

    Args:
        server: it answers, and is idle.
        limit: under which it was started.
        probe_port: where it answers probes.
        key: of the ordinary caller; empty if there are no keys.
    """
    figures = Figures()
    nothing = subprocess.Popen([*_PROBE, "nothing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert nothing.stdout is not None
    asked = _asked(server.port, probe_port, int(nothing.stdout.readline()), key)
    asking = [*_PROBE, "ask", json.dumps(asked)]
    probe = subprocess.Popen(asking, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        sleep(_SETTLE_SECONDS)
        workers, kills = server.workers(), limit.kills()
        memory, delays, begun = Memory(server.process.pid, limit), Delays(server.process.pid), monotonic()
        try:
            yield figures
            # What it still does behind the last request counts as well.
            sleep(_SETTLE_SECONDS)
        finally:
            figures.grown_mb = round(memory.stop(), 1)
            seen = json.loads(probe.communicate("")[0])
            delays.end()
        killed = memory.killed or limit.kills() > kills
        figures.died = _end(server, killed)
        figures.replaced = len(set(workers) - set(server.workers()))
        read_samples(figures, seen, begun, delays.between)
    finally:
        for process in (probe, nothing):
            process.kill()
            process.communicate()


def _end(server: Server, killed: bool) -> str:
    """Say how the server has ended, if it has."""
    if server.process.poll() is None:
        return "a worker killed at the memory limit" if killed else ""
    if killed:
        return "killed at the memory limit"
    return f"ended with exit code {server.process.returncode}"


def _asked(port: int, probe_port: int, nothing_port: int, key: str) -> dict[str, dict[str, Any]]:
    """Say what is asked of whom, as probe.py wants it."""
    body = json.dumps({"inputs": "my card was charged twice"})
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    requests = {path: (probe_port, head("GET", f"/{path}", probe_port, key) + "\r\n") for path in PATHS}
    requests["caller"] = (port, head("POST", "/v1/classify", port, key) + f"{length}\r\n{body}")
    requests["nothing"] = (nothing_port, head("GET", "/", nothing_port) + "\r\n")
    return {name: {"port": to, "every": _EVERY[name], "request": request} for name, (to, request) in requests.items()}


def head(method: str, path: str, port: int, key: str = "", close: bool = True) -> str:
    """Return the head of a request, without the empty line that ends it."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"Authorization: Bearer {key}"] if key else []
    lines += ["Connection: close"] if close else []
    return "\r\n".join(lines) + "\r\n"


def read_samples(
    figures: Figures, seen: Mapping[str, Samples], begun: float, delayed: Callable[[float, float], float]
) -> None:
    """Put what probe.py has seen into the figures.

    Args:
        figures: to be completed.
        seen: when each request began, by the monotonic clock, its milliseconds, and how it ended.
        begun: what ended before is left out.
        delayed: the milliseconds that the server waited for a processor between two moments.
    """
    kept = {name: [each for each in samples if each[0] + each[1] / 1000 > begun] for name, samples in seen.items()}
    nothing = kept.pop("nothing")
    figures.nothing_ms = _worst(ms for _, ms, _ in nothing)
    figures.caller = dict(Counter(status for _, _, status in kept.pop("caller")))
    for path, samples in kept.items():
        figures.worst_ms[path] = _worst(ms for _, ms, _ in samples)
        figures.own_ms[path] = _worst(
            ms - max(_overlapping(nothing, at, at + ms / 1000), delayed(at, at + ms / 1000)) for at, ms, _ in samples
        )
        bad = Counter(status for _, _, status in samples if status != "200")
        if bad:
            figures.bad[path] = dict(bad)


def _worst(waits: Iterable[float]) -> float:
    return round(max(waits, default=0.0), 1)


def _overlapping(samples: Samples, begun: float, ended: float) -> float:
    """Return the longest of the waits that overlap with a time."""
    return max((ms for at, ms, _ in samples if at < ended and at + ms / 1000 > begun), default=0.0)
