"""A reload that is asked for before the service is ready is done once it is."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.clients import client_of, numbers
from tests.service.processes import MAIN, PATIENCE, until, workers
from tests.service.reloading import DONE, served


@pytest.mark.parametrize("count", ["1", "2"])
@pytest.mark.parametrize("moment", ["processes.run.listen", "system.shared_folder.shared_folder"])
def test_a_reload_that_is_asked_for_during_the_start_is_done_after_it(model: Path, count: str, moment: str) -> None:
    module, _, name = moment.rpartition(".")
    code = f"""
import os, signal
import textcls.server.{module} as module
import textcls.server.processes.run as run
real = module.{name}
def early(*given):
    os.kill(os.getpid(), signal.SIGUSR1)
    return real(*given)
run.{name} = early
{MAIN}
"""
    with served(model, "--workers", count, code=code) as running:
        until(lambda: running.numbers()["textcls_generation"] == 2)
        assert running.numbers()[DONE] == 1


def test_a_reload_that_is_asked_for_while_the_command_is_being_imported_is_done_after_the_start(model: Path) -> None:
    code = f"""
import builtins, os, signal
real = builtins.__import__
asked = []
def early(name, *given, **more):
    if name == "uvicorn" and not asked:
        asked.append(os.kill(os.getpid(), signal.SIGUSR1))
    return real(name, *given, **more)
builtins.__import__ = early
{MAIN}
"""
    with served(model, code=code, afresh=True) as running:
        until(lambda: running.numbers()["textcls_generation"] == 2)


def test_workers_that_hear_of_a_reload_before_they_watch_do_it_after_their_start(model: Path) -> None:
    line = [sys.executable, "-u", "-c", MAIN, "serve", str(model), "--port", "0", "--workers", "2"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            asked: set[int] = set()
            while len(asked) < 2 and process.poll() is None:
                for pid in set(workers(process)) - asked:
                    os.kill(pid, signal.SIGUSR1)
                    asked.add(pid)
            found = re.search(r"on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline())  # type: ignore[union-attr]
            assert found
            with client_of(found[1]) as client:
                until(lambda: numbers(client)["textcls_generation"] == 3)
                assert set(workers(process)) == asked
        finally:
            process.terminate()
            process.wait(PATIENCE)


def test_workers_are_replaced_after_the_start_if_that_is_asked_for_during_it(model: Path) -> None:
    code = f"""
import os, signal
import textcls.server.processes.run as run
real = run.listen
def early(*given):
    os.kill(os.getpid(), signal.SIGHUP)
    return real(*given)
run.listen = early
{MAIN}
"""
    with served(model, "--workers", "2", code=code) as running:
        before = set(running.workers())
        until(lambda: len(running.workers()) == 2 and not before & set(running.workers()))
        assert running.label() == "billing"
