"""Python in a process that is forked from one that has imported what it needs, in the place of a start from nothing.

A service that starts from nothing imports for a second and more. What a start is like is tested where starts are, and
by all tests before a release.

    with Forked("print('hello')") as process:
        assert process.communicate() == ("hello\\n", "")
"""

import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Final, NamedTuple, Self, TextIO

_ROOT: Final = Path(__file__).parents[1]
# What the process runs that is forked from, and, beyond the last call, what those run that are forked.
_PROGRAM: Final = f"import sys; sys.path.append({str(_ROOT)!r}); from tests.forked import ordered; exec(ordered())"
_IMPORTED: Final = ("textcls.cli.serve", "textcls.server.processes.server", "textcls.server.processes.supervisor")
_MOST_BYTES: Final = 1 << 20


class _Order(NamedTuple):
    """What is to be run, and where."""

    code: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str


class Forked:
    """What `subprocess.Popen` is of `python -u -c`, whose output are pipes of text, as far as tests need it.

    Args:
        code: what is run.
        arguments: of the program.
        env: variables of its environment, beside those of this process; none that Python reads when it starts.
    """

    def __init__(self, code: str, arguments: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
        (out, to_out), (err, to_err), (self._told, to_tell) = (Pipe(duplex=False) for _ in range(3))
        order = _Order(code, [*arguments], {**os.environ, **(env or {})}, str(Path.cwd()))
        writers = to_out, to_err, to_tell
        socket.send_fds(_orders(), [json.dumps(order).encode()], [writer.fileno() for writer in writers])
        for writer in writers:
            writer.close()
        self.stdout, self.stderr = _text(out), _text(err)
        self.pid: int = self._told.recv()
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, or the negative number of the signal that ended it."""
        if self.returncode is None:
            if not self._told.poll(timeout):
                raise subprocess.TimeoutExpired("python", timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(self._told.recv())
        return self.returncode

    def poll(self) -> int | None:
        """As `wait`, but None as long as it runs."""
        if self.returncode is None and self._told.poll():
            self.wait()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # It has ended meanwhile.
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; return what is left of its output, and of its errors."""
        end = None if timeout is None else time.monotonic() + timeout
        said = {self.stdout.fileno(): b"", self.stderr.fileno(): b""}
        with selectors.DefaultSelector() as waiting:
            for number in said:
                waiting.register(number, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(None if end is None else max(0.0, end - time.monotonic()))
                if not ready:
                    raise subprocess.TimeoutExpired("python", timeout or 0)
                for key, _ in ready:
                    part = os.read(key.fd, _MOST_BYTES)
                    said[key.fd] += part
                    if not part:
                        waiting.unregister(key.fd)
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        out, err = (part.decode() for part in said.values())
        return out, err

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()
        self._told.close()


def _text(reader: Connection) -> TextIO:
    stream = os.fdopen(os.dup(reader.fileno()), encoding="utf-8")
    reader.close()
    return stream


@cache
def _orders() -> socket.socket:
    """Where orders are sent, to a process that ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        theirs.set_inheritable(True)
        line = [sys.executable, "-u", "-c", _PROGRAM, str(theirs.fileno())]
        nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        os.posix_spawn(sys.executable, line, os.environ, file_actions=[nothing])
    return ours


def ordered() -> str:
    """Wait for orders, and return in a process that is forked for each: with the code that is to be run there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that mind the others
    for name in _IMPORTED:
        import_module(name)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        while True:
            message, given, *_ = socket.recv_fds(orders, _MOST_BYTES, 3)
            if not message:
                sys.exit()
            if not os.fork():
                break
            for number in given:
                os.close(number)
    return _begun(_Order(*json.loads(message)), *given)


def _begun(order: _Order, out: int, err: int, told: int) -> str:
    """Fork once more, and return in the new process alone; this one says which it is and how it ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if child := os.fork():
        with Connection(told, readable=False) as telling:
            os.close(out)
            os.close(err)
            telling.send(child)
            telling.send(os.waitpid(child, 0)[1])
        os._exit(0)
    for number, given in ((1, out), (2, err)):
        os.dup2(given, number)
        os.close(given)
    os.close(told)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    sys.argv = ["-c", *order.arguments]
    return order.code
