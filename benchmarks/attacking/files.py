"""Section 3: model files and data that are not what they should be, while the service runs, starts, or reads them."""

import gzip
import json
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from attacking import commands, models
from attacking.bench import SPARE_MB, Bench, Result, Target, attack
from attacking.models import Change
from attacking.watching import Figures, Memory, watching
from attacking.wire import SECONDS, Seen, last_words, within
from running import GONE, Server

_SECTION: Final = "3. files and reloads"
_RELOAD: Final = "/v1/admin/reload"
# How long a service may take to see a signal, to stop when nothing is asked of it, or to replace a worker.
_SOON: Final = 3.0
_REPLACED: Final = 10.0
# How long a service may try to start.
_START_SECONDS: Final = 15.0
# A line that needs no memory by itself, as long as this; and what reading it may take over reading one short line.
_LINE_BYTES: Final = 3_000_000_000
_LINE_MB: Final = 100.0


# A reload with a damaged model


def _refused(name: str, changes: Mapping[str, Change]) -> None:
    @attack(_SECTION, f"reload with {name}")
    def run(bench: Bench) -> Result:
        result = Result(Figures(), Seen())
        for kind, change in changes.items():
            for way, ask in (("over HTTP", _ask_over_http), ("at SIGUSR1", _ask_by_signal)):
                with bench.model_to_exchange() as model, bench.server("--workers", "1", model=model) as target:
                    bad = models.changed(model, model.with_suffix(".bad"), change)
                    with watching(target.server, target.limit, target.probe_port, target.key) as figures:
                        bad.replace(model)
                        said = ask(target)
                        found = _goes_on(target)
                result.figures.merge(figures)
                result.seen.said[f"{kind}, {way}"] = said
                result.seen.broken += [f"{kind}, {way}: {each}" for each in said["broken"] + found]
        return result


def _ask_over_http(target: Target) -> dict[str, Any]:
    found, _ = target.ask("POST", _RELOAD)
    return {"answer": found, "broken": [] if found == "409" else [f"answered {found} where 409 is right"]}


def _ask_by_signal(target: Target) -> dict[str, Any]:
    before = len(target.server.log())
    target.server.process.send_signal(signal.SIGUSR1)
    said = within(_SOON, lambda: "refused" in target.server.log()[before:])
    return {"broken": [] if said else ["no word of a refusal in the log"]}


def _goes_on(target: Target) -> list[str]:
    """Return what is broken of a service whose old model should go on answering."""
    found = {path: target.ask("GET", path)[0] for path in ("/v1/models", "/metrics", "/readyz")}
    broken = [f"{path} {status}" for path, status in found.items() if status != "200"]
    return broken + ([] if target.answers() else ["no text classified"])


_refused("a label too few", {"a label too few": models.label_too_few})
_refused("a threshold that is none", {"NaN": models.threshold_is(float("nan")), "5": models.threshold_is(5.0)})
_refused(
    "a label that is none",
    {"a lone surrogate": models.first_label_is("bill\ud800"), "a number": models.first_label_is(7)},
)


# What is not a regular file


def _make_fifo(path: Path) -> None:
    os.mkfifo(path)


def _make_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


_FILES: Final = {"a FIFO": _make_fifo, "/dev/zero": _make_zero}


def _served_at_start(name: str, make: Callable[[Path], None]) -> None:
    @attack(_SECTION, f"{name} as the model at the start")
    def run(bench: Bench) -> Result:
        with bench.server() as target:
            idle = target.server.memory()
        with tempfile.TemporaryDirectory(dir=bench.work) as folder:
            model = Path(folder, "model.onnx")
            make(model)
            with bench.server(model=model, wait=False) as target:
                figures, seen = _started(target)
        figures.grown_mb = round(max(0.0, (figures.grown_mb or 0.0) - idle), 1)
        return Result(figures, seen)


def _started(target: Target) -> tuple[Figures, Seen]:
    """See whether a service that cannot start says so and ends, or obeys at least; its memory is all it has."""
    process, begun = target.server.process, monotonic()
    memory, kills = Memory(process.pid, target.limit), target.limit.kills()
    ended = within(_START_SECONDS, lambda: process.poll() is not None)
    seen = Seen()
    if not ended:
        seen.broken.append(f"neither answers nor ends within {_START_SECONDS:g} s")
        process.terminate()
        seen.broken += [] if within(_SOON, lambda: process.poll() is not None) else ["SIGTERM ignored"]
    memory.stop()
    figures, log = Figures(grown_mb=memory.most), target.server.log()
    seen.said = {"seconds": round(monotonic() - begun, 1), "exit": process.poll(), "last_words": last_words(log)}
    if memory.killed or target.limit.kills() > kills:
        figures.died = "killed at the memory limit"
    elif "Traceback" in log:
        seen.broken.append("a traceback")
    return figures, seen


def _on_reload(name: str, make: Callable[[Path], None]) -> None:
    @attack(_SECTION, f"{name} as the model of a reload, a worker killed, SIGTERM")
    def run(bench: Bench) -> Result:
        with bench.model_to_exchange() as model, bench.server("--workers", "2", model=model) as target:
            with watching(target.server, target.limit, target.probe_port, target.key) as figures:
                make(model.with_suffix(".bad"))
                model.with_suffix(".bad").replace(model)
                target.server.process.send_signal(signal.SIGUSR1)
                sleep(1)
                seen = _kill_a_worker(target)
            _forgive_one_worker(figures)
            seen.broken += _obeys(target.server)
        return Result(figures, seen, SPARE_MB + bench.loading_mb)  # the worker that takes the place of the killed one


def _forgive_one_worker(figures: Figures) -> None:
    """The worker that was killed by hand is no loss, nor is a request of each kind that it held."""
    figures.replaced = max(0, figures.replaced - 1)
    for counts in (*figures.bad.values(), figures.caller):
        for how in counts.keys() & {"hung up", "ConnectionResetError"}:
            counts[how] -= 1
    figures.bad = {path: counts for path, counts in figures.bad.items() if any(counts.values())}


def _kill_a_worker(target: Target) -> Seen:
    before = target.server.workers()
    if not before:
        return Seen(broken=["there are no workers"])
    with suppress(*GONE):
        os.kill(before[0], signal.SIGKILL)
    begun = monotonic()

    def replaced() -> bool:
        now = target.server.workers()
        return len(now) == len(before) and before[0] not in now

    done = within(_REPLACED, replaced)
    seen = Seen({"replaced_after_seconds": round(monotonic() - begun, 1) if done else None})
    return seen if done else Seen(seen.said, [f"a killed worker is not replaced within {_REPLACED:g} s"])


def _obeys(server: Server) -> list[str]:
    server.process.terminate()
    if within(_SOON, lambda: server.process.poll() is not None):
        return []
    return [f"SIGTERM not obeyed within {_SOON:g} s"]


for _name, _make in _FILES.items():
    _served_at_start(_name, _make)
for _name, _make in _FILES.items():
    _on_reload(_name, _make)


# A reload soon after the start


@attack(_SECTION, "reloads asked for in the first second after the start")
def early_reload(bench: Bench) -> Result:
    """The file is exchanged and SIGUSR1 sent as soon as the process takes the signal, or some tenths later."""
    runs = [(workers, tenths / 10) for workers in (1, 2) for tenths in range(0, 10, 2)]
    lost = [f"{workers} workers, {delay} s" for workers, delay in runs if not _taken_up(bench, workers, delay)]
    broken = [f"{len(lost)} of {len(runs)} lost without a word"] if lost else []
    return Result(Figures(), Seen({"runs": len(runs), "lost": lost}, broken))


def _taken_up(bench: Bench, workers: int, delay: float) -> bool:
    """Whether the model that is reloaded `delay` seconds after the process takes the signal is served in the end."""
    options = ("--workers", str(workers))
    with bench.model_to_exchange() as model, bench.server(*options, model=model, wait=False) as target:
        process, new = target.server.process, models.changed(model, model.with_suffix(".new"), models.another)
        digest = sha256(new.read_bytes()).hexdigest().encode()
        within(SECONDS, lambda: _takes_usr1(process.pid))
        sleep(delay)
        new.replace(model)
        process.send_signal(signal.SIGUSR1)
        target.server.wait()
        return within(_SOON, lambda: digest in target.ask("GET", "/v1/models")[1])


def _takes_usr1(pid: int) -> bool:
    """Whether SIGUSR1 does not end the process any more."""
    with suppress(*GONE):
        masks = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return bool((int(masks["SigIgn"], 16) | int(masks["SigCgt"], 16)) >> (signal.SIGUSR1 - 1) & 1)
    return False


# Data


@attack(_SECTION, f"textcls predict of a gzip with one line of 3 GB, limit {commands.LIMIT_MIB} MiB")
def long_line(bench: Bench) -> Result:
    result = Result(Figures(), Seen(), _LINE_MB)
    for name, start in (("csv", b"text\n"), ("jsonl", b'{"text": "'), ("txt", b"")):
        long = bench.work / f"long.{name}.gz"
        if not long.exists():
            _write_long(long, start)
        short = bench.work / "short.csv"
        short.write_text("text\nmy card was charged twice\n", encoding="utf-8")
        bare, _, _ = _predict(bench, short)
        figures, seen, seconds = _predict(bench, long)
        figures.grown_mb = round((figures.grown_mb or 0) - (bare.grown_mb or 0), 1)
        result.figures.merge(figures)
        result.seen.said[name] = seen.said | {"mb": figures.grown_mb, "seconds": seconds}
        result.seen.broken += [f"{name}: {each}" for each in seen.broken]
    return result


def _write_long(path: Path, start: bytes) -> None:
    """Write a gzip file with one line of `_LINE_BYTES` at the price of compressing a piece of it once."""
    letters = gzip.compress(b"a" * 30_000_000, 1)
    with path.open("wb") as file:
        file.write(gzip.compress(start))
        for _ in range(_LINE_BYTES // 30_000_000):
            file.write(letters)


def _predict(bench: Bench, data: Path) -> tuple[Figures, Seen, float]:
    answers = bench.work / "answers.csv"
    return commands.run(bench, "predict", str(bench.model), str(data), "-o", str(answers))


@attack(_SECTION, "textcls train on a label with a lone surrogate")
def surrogate_label(bench: Bench) -> Result:
    """Either the model is written, or the rows are refused before anything is trained."""
    data, model = bench.work / "surrogate.jsonl", bench.work / "surrogate.onnx"
    with data.open("w", encoding="utf-8") as file:
        for number in range(600):
            label = ("billing", "returns", "bill\ud800")[number % 3]
            text = f"{label[:4]} number {number} of many words that are {label[:4]} again"
            file.write(json.dumps({"text": text, "label": label}) + "\n")
    model.unlink(missing_ok=True)
    figures, seen, seconds = commands.run(bench, "train", str(data), "-o", str(model))
    figures.grown_mb = None  # Training takes what it takes.
    seen.said["seconds"] = seconds
    if seen.broken:
        seen.broken.append(f"no model after {seconds:.0f} s")
    return Result(figures, seen)
