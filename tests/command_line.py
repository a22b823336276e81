"""The command line as tests call it, and the tables that it reads and writes."""

import csv
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from click.testing import CliRunner, Result

from textcls.cli import main

SCRIPT = Path(sys.prefix) / "bin" / "textcls"


def run(*args: str | Path, given: bytes | str | None = None, **variables: str) -> Result:
    """Call the command line in this process, at a width at which nothing wraps.

    Args:
        args: its arguments.
        given: what is on standard input.
        variables: of the environment.
    """
    return CliRunner().invoke(
        main, [str(arg) for arg in args], input=given, env={"COLUMNS": "200", **variables}, catch_exceptions=False
    )


def succeed(*args: str | Path) -> str:
    """What a call prints on standard output; it must succeed."""
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def fail(code: int, *args: str | Path) -> str:
    """The one line on standard error with which a call is refused; standard output stays empty."""
    result = run(*args)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def program(*args: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Call the installed program, in a process of its own."""
    return subprocess.run(
        [SCRIPT, *args], cwd=folder, capture_output=True, text=True, encoding="utf-8", env={**os.environ}, check=False
    )


# Calls that follow one another in a process, whose imports are paid once.
_CALLED = """
import json, sys
from click.testing import CliRunner
from textcls.cli import main
for call in sys.argv[1:]:
    done = CliRunner().invoke(main, json.loads(call))
    print(json.dumps([done.exit_code, done.stdout, done.stderr]))
"""


def called(
    *calls: Sequence[str | Path], folder: Path, first: str = "", memory: int | None = None
) -> list[tuple[int, str, str]]:
    """The exit code of each call in a fresh process, what it prints, and what it says on standard error.

    Args:
        calls: arguments of the command line each.
        folder: the current one.
        first: what the process runs before, in Python.
        memory: how many bytes of addresses it may have.
    """
    line = [sys.executable, "-c", first + _CALLED, *(json.dumps([str(one) for one in call]) for call in calls)]
    limits = None if memory is None else partial(resource.setrlimit, resource.RLIMIT_AS, (memory, memory))
    done = subprocess.run(
        line, cwd=folder, capture_output=True, text=True, check=True, preexec_fn=limits, stdin=subprocess.DEVNULL
    )
    return [(*json.loads(line),) for line in done.stdout.splitlines()]


def heed_ctrl_c() -> None:
    """Let Ctrl-C end a child, also one of a shell's job in the background, which ignores it: for `preexec_fn`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def write_rows(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """Write a table, whose first row is its header, as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
