"""`textcls serve` as a process of its own, as stress.py and attacks.py start it."""

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, perf_counter
from typing import IO, Any, Final, Self

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
KEY: Final = "the-key-of-the-benchmarks"
BEARER: Final = {"authorization": f"Bearer {KEY}"}
ADMIN_KEY: Final = "the-administrator-of-the-benchmarks"
ADMIN: Final = {"authorization": f"Bearer {ADMIN_KEY}"}
START_SECONDS: Final = 60
# What is said of a process that has ended meanwhile.
GONE: Final = (ProcessLookupError, FileNotFoundError)


def command(*arguments: str) -> list[str]:
    """Return the command line of `textcls`, of whichever checkout the environment names."""
    # -P: else the working folder would go before the environment.
    return [sys.executable, "-P", "-u", "-c", "from textcls.cli import main; main()", *arguments]


def environment(tree: Path = ROOT) -> dict[str, str]:
    """Return the environment in which `command` runs the code of the checkout `tree`."""
    return {**os.environ, "PYTHONPATH": f"{tree}:{tree / 'training'}:{os.environ.get('PYTHONPATH', '')}"}


class Server:
    """A running `textcls serve`.

    Attributes:
        process: what was started; the supervisor, if there are several workers.
        url: where it answers; empty until `wait` has returned.
        begun: when it was started, by `time.perf_counter`.
    """

    def __init__(
        self,
        model: Path,
        *options: str,
        key: str = "",
        tree: Path = ROOT,
        prefix: Sequence[str] = (),
        errors: IO[Any] | int | None = None,
        wait: bool = True,
    ) -> None:
        """Start it.

        Args:
            model: the file to serve.
            options: of `textcls serve`.
            key: API key, beside which there is an admin key; none of both where empty.
            tree: the checkout whose code is run.
            prefix: a command that runs the command line behind it, in the same process.
            errors: takes standard error in place of a file that `log` reads.
            wait: return only once it answers.
        """
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        keys = {"TEXTCLS_API_KEYS": key, "TEXTCLS_ADMIN_KEY": ADMIN_KEY} if key else {}
        self.url = ""
        self.begun = perf_counter()
        self.process = subprocess.Popen(
            [*prefix, *command("serve", str(model), "--port", "0", *options)],
            stdout=subprocess.PIPE,
            stderr=self.errors if errors is None else errors,
            env=environment(tree) | keys,
        )
        if wait:
            self.wait()

    def wait(self, seconds: float = START_SECONDS) -> Self:
        """Wait until it says where it answers.

        Raises:
            SystemExit: it ended, or took longer than `seconds`.
        """
        assert self.process.stdout is not None
        stdout, said, end = self.process.stdout.fileno(), "", monotonic() + seconds
        while select.select([stdout], [], [], max(0, end - monotonic()))[0] and (more := os.read(stdout, 4096)):
            said += more.decode()
            if found := re.search(r"on (http://\S+)\s", said):
                self.url = found[1]
                return self
        raise SystemExit(f"the server did not start: {self.log()}")

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def workers(self) -> list[int]:
        """Return the workers, if there are several: what else the supervisor starts takes no connections."""
        return holders(children(self.process.pid), self.port)

    def log(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def memory(self) -> float:
        """Resident megabytes."""
        return resident(self.process.pid)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)

    def kill(self) -> None:
        """End it and its workers at once."""
        for pid in [*children(self.process.pid), self.process.pid]:
            with suppress(*GONE):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Let go of its log and of what it prints."""
        self.errors.close()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def serving(model: Path, *options: str, **given: Any) -> Iterator[Server]:
    server = Server(model, *options, **given)
    try:
        yield server
    finally:
        server.kill()
        server.close()


def resident(pid: int, kind: str = "VmRSS") -> float:
    """Resident megabytes of a process; `VmHWM` for the most it ever had."""
    found = re.search(rf"{kind}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def children(pid: int) -> list[int]:
    """Return the workers of a supervisor."""
    with suppress(*GONE):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(each) for each in found if _is_worker(int(each))]
    return []


def holders(pids: Sequence[int], port: int) -> list[int]:
    """Return those of some processes that can take connections to a port: they hold a socket that listens to it."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # Local address, state (0A is that of listening), inode.
    sockets = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A"}
    return [pid for pid in pids if sockets & _files(pid)]


def _files(pid: int) -> set[str]:
    found = set()
    with suppress(*GONE):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(*GONE):
                found.add(str(file.readlink()))
    return found


def _is_worker(pid: int) -> bool:
    with suppress(*GONE):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
