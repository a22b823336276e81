"""What benchmarks/attacks.py measures with: the limit, the waits, the verdict, the table. No service is attacked."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.processes import PATIENCE
from tests.service.server import awaited
from textcls import Classifier
from textcls.errors import ArtifactError

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
# It takes its memory when somebody looks.
GREEDY = "import time; time.sleep(1); held = bytearray(200_000_000); time.sleep(600)"


@pytest.fixture
def module(benchmark_module: Any) -> Any:
    """Import a module of benchmarks/attacking, which is found only from the scripts beside it."""
    return lambda name: benchmark_module(f"attacking.{name}")


@contextmanager
def greedy(prefix: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that soon holds 200 MB."""
    process = subprocess.Popen([*prefix, sys.executable, "-c", GREEDY])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_process_above_the_memory_limit_is_killed(module: Any) -> None:
    with module("limits").limited(100) as limit, greedy(limit.prefix) as process:
        memory = module("watching").Memory(process.pid, limit)
        assert process.wait(PATIENCE) == -9
        memory.stop()
        assert memory.killed or limit.kills() == 1


def test_a_process_below_the_memory_limit_lives_and_its_peak_is_told(module: Any) -> None:
    with module("limits").limited(400) as limit, greedy(limit.prefix) as process:
        memory = module("watching").Memory(process.pid, limit)
        assert module("wire").within(PATIENCE, lambda: memory.most - memory.idle > 190)
        assert process.poll() is None
        assert 190 < memory.stop() < 250


def test_a_wait_is_counted_less_what_the_machine_alone_took_at_that_moment(module: Any) -> None:
    watching = module("watching")
    figures = watching.Figures()
    nothing = [(0.0, 300.0, "200"), (1.0, 2.0, "200")]
    samples = {
        "livez": [(-1.0, 5000.0, "200"), (0.1, 350.0, "200"), (1.0, 150.0, "429")],
        "caller": [(1.0, 3.0, "200"), (1.1, 3.0, "504"), (1.2, 3.0, "500")],
        "nothing": nothing,
    }
    watching.read_samples(figures, samples, 0.0, lambda begun, ended: 0.0)
    # The first one began before the attack and lasted into it.
    assert figures.worst_ms == {"livez": 5000.0}
    assert figures.own_ms == {"livez": 4700.0}
    del samples["livez"][0]
    watching.read_samples(figures, samples, 0.0, lambda begun, ended: 0.0)
    assert (figures.worst_ms, figures.own_ms) == ({"livez": 350.0}, {"livez": 148.0})
    watching.read_samples(figures, samples, 0.0, lambda begun, ended: 90.0)
    assert (figures.worst_ms, figures.own_ms) == ({"livez": 350.0}, {"livez": 60.0})
    assert figures.bad == {"livez": {"429": 1}}
    # A refusal in order is no loss.
    assert figures.lost == 1


def test_the_time_for_which_a_thread_waits_for_a_processor_is_told(module: Any) -> None:
    watching = module("watching")
    # Two that compute, on one processor.
    loop = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(2)]
    try:
        delays, begun = watching.Delays(processes[0].pid), time.monotonic()
        assert module("wire").within(PATIENCE, lambda: delays.between(begun, time.monotonic()) > 100)
        delays.end()
        assert delays.between(begun, begun) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_the_verdict_names_all_that_is_beyond_its_bound(module: Any) -> None:
    bench, watching, wire = (module(name) for name in ("bench", "watching", "wire"))
    figures = watching.Figures(grown_mb=30.0, own_ms={"livez": 101.0, "metrics": 400.0}, replaced=1)
    figures.bad, figures.caller = {"readyz": {"429": 3}}, {"200": 9, "ConnectionResetError": 1}
    result = bench.Result(figures, wire.Seen(broken=["answered 200 where 401 is right"]))
    assert result.broken() == [
        "1 workers replaced",
        "30 MB where 20 are allowed",
        "slow: /livez",
        "/readyz: 3 x 429",
        "1 of 10 requests of the caller lost",
        "answered 200 where 401 is right",
    ]
    figures.died = "killed at the memory limit"
    assert result.broken() == ["killed at the memory limit"]
    assert bench.Result(watching.Figures(grown_mb=19.0), wire.Seen()).broken() == []


def test_two_servers_attacked_alike_count_as_the_worse_of_both(module: Any) -> None:
    figures = module("watching").Figures
    one = figures(grown_mb=None, worst_ms={"livez": 5.0}, bad={"livez": {"429": 1}}, caller={"200": 2})
    one.merge(figures(grown_mb=3.0, worst_ms={"livez": 4.0, "readyz": 6.0}, bad={"livez": {"429": 2}}, died="ended"))
    assert one.grown_mb == 3.0
    assert one.worst_ms == {"livez": 5.0, "readyz": 6.0}
    assert (one.bad, one.caller, one.died) == ({"livez": {"429": 3}}, {"200": 2}, "ended")


def test_an_endless_head_is_sent_until_the_server_refuses_it(module: Any) -> None:
    async def attacked() -> Any:
        ended = asyncio.Event()

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(100_000)
            writer.write(b"HTTP/1.1 431 \r\ncontent-length: 0\r\n\r\n")
            writer.write_eof()
            await reader.read()
            writer.close()
            ended.set()

        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            seen = await module("wire").pour(port, b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 99)
            await ended.wait()
        return seen

    seen = awaited(attacked())
    assert seen.said["answer"] == "431"
    assert seen.broken == []


def test_the_damaged_models_differ_from_a_good_one_in_their_metadata_alone(
    module: Any, model_path: Path, tmp_path: Path
) -> None:
    models = module("models")
    good = Classifier.load(models.changed(model_path, tmp_path / "good.onnx", models.another))
    assert good.predict("a text").score == Classifier.load(model_path).predict("a text").score
    with pytest.raises(ArtifactError, match="metadata is damaged"):
        Classifier.load(models.changed(model_path, tmp_path / "bad.onnx", lambda info: info.update(max_tokens="many")))


def test_the_page_puts_before_and_after_side_by_side(module: Any) -> None:
    about: dict[str, Any] = {
        "date": "2026-01-02",
        "commit": "abc1234",
        "machine": "2 cores",
        "versions": {"numpy": "2.4.0"},
    }
    about |= {"limit_mib": 384, "limit_kept_by": "control group, version 2"}

    def column(grown: float, wait: float, broken: list[str]) -> dict[str, Any]:
        figures = {"grown_mb": grown, "worst_ms": {"livez": wait}, "own_ms": {"livez": wait - 9}}
        record = {"section": "1. first", "broken": broken, "figures": figures, "load_average": 0.5}
        return {"about": about, "attacks": {"an attack": record}}

    kept = {"before": column(330.0, 7000.0, ["killed"]), "after": column(2.4, 12.0, [])}
    lines = module("report").page(kept, ["an attack", "one that was not run"]).splitlines()
    assert lines[-1] == "| an attack | +330 → +2 | 7,000 (6,991) → 12 (3) |  |  | killed | nothing |"
    assert "before: 2026-01-02, commit abc1234, 2 cores; numpy 2.4.0; load average 0.5 to 0.5." in lines
