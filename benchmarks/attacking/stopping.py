"""Section 3 as well: stopping under load, stopping while workers are replaced, and no open files left."""

import asyncio
import signal
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Final

from attacking import models
from attacking.bench import SPARE_MB, Bench, Result, Target, attack, watched
from attacking.watching import Figures
from attacking.wire import SECONDS, Connection, Seen, last_words, status, within

_SECTION: Final = "3. files and reloads"
_RUNS: Final = 10
_CLIENTS: Final = 32
_LOAD_SECONDS: Final = 1.0
# What SIGTERM may take while SIGHUP replaces the workers.
_STOP_SECONDS: Final = 2.0
_FILES: Final = 64
_HELD_SECONDS: Final = 4.0


@dataclass
class _Load:
    """Clients of which each opens a connection for each request, until one is refused because nobody listens."""

    port: int
    request: bytes
    ended: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        await asyncio.gather(*(self._client() for _ in range(_CLIENTS)))

    async def _client(self) -> None:
        end = monotonic() + SECONDS
        while monotonic() < end:
            found = await self._ask()
            self.ended[found] += 1
            if found == "nobody listens":
                return

    async def _ask(self) -> str:
        """Return how a request ended; only what the kernel has connected can be lost."""
        try:
            async with asyncio.timeout(SECONDS), Connection(self.port) as connection:
                try:
                    await connection.send(self.request)
                    answer = b""
                    while piece := await connection.receive():
                        answer += piece
                except ConnectionError as error:
                    return f"lost: {type(error).__name__}"
                return status(answer) if answer else "lost: closed without an answer"
        except ConnectionRefusedError:
            return "nobody listens"
        except ConnectionResetError:
            return "lost: reset while connecting"
        except TimeoutError:
            return "lost: no answer"


def _stop_under_load(name: str, *options: str) -> None:
    @attack(_SECTION, name)
    def run(bench: Bench) -> Result:
        lost, codes, ended = [], [], Counter[str]()
        for _ in range(_RUNS):
            with bench.server(*options) as target:
                load = _Load(target.port, target.classify({"inputs": "a text"}))
                asyncio.run(_terminated(target, load))
                stopped = within(SECONDS, lambda: target.server.process.poll() is not None)
                codes.append(target.server.process.returncode if stopped else None)
            lost.append(sum(count for how, count in load.ended.items() if how.startswith("lost")))
            ended += load.ended
        seen = Seen({"lost_in_each_run": lost, "exit_codes": codes, "requests": dict(ended)})
        if any(lost):
            seen.broken.append(f"{sum(lost)} requests lost, in {sum(map(bool, lost))} of {_RUNS} runs")
        if set(codes) != {0}:
            seen.broken.append(f"exit codes {sorted(set(map(str, codes)))}")
        return Result(Figures(), seen)


async def _terminated(target: Target, load: _Load) -> None:
    loading = asyncio.create_task(load.run())
    await asyncio.sleep(_LOAD_SECONDS)
    target.server.process.terminate()
    await loading


_stop_under_load(f"SIGTERM under load, a new connection a request, {_RUNS} runs")
_stop_under_load(f"the same with 2 workers, {_RUNS} runs", "--workers", "2")


@attack(_SECTION, "SIGTERM during SIGHUP, 2 workers")
def stop_during_replacement(bench: Bench) -> Result:
    ended = {delay: _stopped(bench, delay) for delay in (0.05, 0.3, 0.6, 1.0)}
    took = {f"{delay} s after SIGHUP": round(seconds, 1) for delay, (seconds, _) in ended.items()}
    broken = [f"exit code {code}" for _, code in ended.values() if code != 0]
    if (worst := max(took.values())) > _STOP_SECONDS:
        broken.append(f"stopped after {worst} s")
    return Result(Figures(), Seen(took, broken))


def _stopped(bench: Bench, delay: float) -> tuple[float, int | None]:
    """Return how long SIGTERM took `delay` seconds after SIGHUP, and the exit code; None if it was not obeyed."""
    with bench.server("--workers", "2") as target:
        process = target.server.process
        process.send_signal(signal.SIGHUP)
        sleep(delay)
        process.terminate()
        begun = monotonic()
        within(SECONDS, lambda: process.poll() is not None)
        return monotonic() - begun, process.returncode


@attack(_SECTION, f"{_FILES} open files a process, more connections, and a reload")
def no_files_left(bench: Bench) -> Result:
    # Two workers each take up the model that is reloaded.
    result = Result(Figures(), Seen(), SPARE_MB + 2 * bench.loading_mb)
    for workers in (1, 2):
        figures, seen = _filled(bench, workers)
        # A connection that cannot be accepted waits; what counts is that the service lives on.
        figures.worst_ms, figures.own_ms, figures.bad, figures.caller = {}, {}, {}, {}
        result.figures.merge(figures)
        result.seen.said[f"{workers} workers"] = seen.said
        result.seen.broken += [f"{workers} workers: {each}" for each in seen.broken]
    return result


def _filled(bench: Bench, workers: int) -> tuple[Figures, Seen]:
    """Open more connections than there are files, and reload meanwhile."""
    prefix = ("sh", "-c", f'ulimit -n {_FILES}; exec "$0" "$@"')
    options = ("--workers", str(workers), "--receive-seconds", "2")
    with bench.model_to_exchange() as model, bench.server(*options, model=model, prefix=prefix) as target:
        new = models.changed(model, model.with_suffix(".new"), models.another)

        async def fill(target: Target) -> Seen:
            async with AsyncExitStack() as stack:
                with suppress(ConnectionError):
                    for _ in range(4 * _FILES):
                        await stack.enter_async_context(Connection(target.port))
                await asyncio.sleep(1)
                new.replace(model)
                target.server.process.send_signal(signal.SIGUSR1)
                await asyncio.sleep(_HELD_SECONDS)
            await asyncio.sleep(1)
            return Seen()

        figures, seen = watched(target, fill)
        seen.said = {"answers": figures.bad, "last_words": last_words(target.server.log())}
    return figures, seen
