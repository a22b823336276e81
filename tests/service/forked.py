"""A command in a process that is forked from one that has imported what it needs, in the place of a start from nothing.

A service that starts from nothing imports for a second and more; what that is like is tested where the start is.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from typing import TextIO

_CONTEXT = get_context("forkserver")
_IMPORTED = ["textcls.cli.serve", "textcls.server.processes.server", "textcls.server.processes.supervisor"]


class ForkedCommand:
    """What `subprocess.Popen` is of a command, as far as the tests need it."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        _CONTEXT.set_forkserver_preload(_IMPORTED)
        (out, to_out), (err, to_err) = Pipe(duplex=False), Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_run, args=(arguments, {**os.environ, **env}, to_out, to_err))
        self._process.start()
        for writer in (to_out, to_err):
            writer.close()
        self.stdout, self.stderr = _text(out), _text(err)
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None as long as it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self.returncode) is None:
            raise subprocess.TimeoutExpired("textcls", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        with ThreadPoolExecutor(2) as pool:
            said = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()  # or nobody would ever be done reading
                raise
            return said[0].result(timeout), said[1].result(timeout)

    def __enter__(self) -> "ForkedCommand":
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            stream.close()
        self.wait()


def _text(reader: Connection) -> TextIO:
    stream = os.fdopen(os.dup(reader.fileno()), encoding="utf-8")
    reader.close()
    return stream


def _run(arguments: Sequence[str], env: Mapping[str, str], out: Connection, err: Connection) -> None:
    for number, writer in ((1, out), (2, err)):
        os.dup2(writer.fileno(), number)
        writer.close()
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["textcls", *arguments]
    from textcls.cli import main

    main(prog_name="textcls")
