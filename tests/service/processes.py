"""`textcls serve` as a process of its own, the processes below it, and waiting for what they do."""

import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from tests.chance import THOROUGH
from tests.forked import Forked

MAIN = "from textcls.cli import main; main(prog_name='textcls')"
# How long a test waits for what must come, in seconds. Nothing is asserted of it: it is more than a slow machine needs
# on a busy day.
PATIENCE = 120


def until(true: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait until something holds; return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.02)
    pytest.fail("it did not come to hold")


def free_port() -> int:
    """A port that is free, and that the kernel gives to nobody who asks for any: it gives higher ones."""
    while True:
        port = random.randint(10_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


# Processes by their numbers. Any of them may end at any moment, between two looks at it as well.


def command_line(pid: int) -> bytes:
    """The arguments of a process; none of one that has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def alive(pid: int) -> bool:
    """Whether a process runs."""
    return bool(command_line(pid))


def workers(process: "subprocess.Popen[str]") -> list[int]:
    """The worker processes of a service, which has none if it answers by itself."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(pid) for pid in children if b"spawn_main" in command_line(int(pid))]


# The command


class Running(NamedTuple):
    """A running `textcls serve`, and the address that it printed."""

    process: "subprocess.Popen[str]"
    url: str

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens, as sockets have it."""
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)


@contextmanager
def command(
    *arguments: str | Path, env: Mapping[str, str] | None = None, code: str = MAIN, afresh: bool = False
) -> Iterator[Running]:
    """Run `textcls serve` on a free port until it is no longer wanted.

    Args:
        arguments: of the command, beside the port.
        env: variables of its environment, beside those of this process.
        code: what runs it, in Python.
        afresh: whether it must start from nothing.
    """
    with _started(code, ["serve", *map(str, arguments), "--port", "0"], env or {}, afresh) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            found = re.fullmatch(r"Serving .+ on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline())
            assert found, process.stderr.read()
            yield Running(process, found[1])
        finally:
            process.kill()


def _started(code: str, arguments: list[str], env: Mapping[str, str], afresh: bool) -> "subprocess.Popen[str]":
    """Start Python; as a process that is forked, unless it must start from nothing, or find a variable when it does."""
    if not (afresh or THOROUGH or any(name.startswith("PYTHON") for name in env)):
        return cast("subprocess.Popen[str]", Forked(code, arguments, env))
    line, pipe = [sys.executable, "-u", "-c", code, *arguments], subprocess.PIPE
    return subprocess.Popen(line, text=True, env={**os.environ, **env}, stdout=pipe, stderr=pipe)


def ended(*arguments: str | Path, code: str = MAIN) -> tuple[int, str]:
    """The exit code of a service that must end by itself, and what it said."""
    line = [sys.executable, "-c", code, "serve", *map(str, arguments), "--port", "0"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stderr


def stop(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Ask a service to end; return its exit code and what it has said."""
    process.terminate()
    said = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, said
