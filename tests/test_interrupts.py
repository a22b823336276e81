"""Ctrl-C while something is done that must not be cut in two."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from textcls import Classifier
from textcls._util import interrupts

CHILD = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    """Whoever started the tests in the background may have switched Ctrl-C off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def is_held_back(press: Callable[[], None]) -> bool:
    """Whether a block goes on to its end after Ctrl-C, which is heard behind it."""
    ended = []

    def work() -> None:
        with interrupts.held_back():
            press()
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    return ended == [True]


def test_ctrl_c_comes_once_the_block_has_ended() -> None:
    assert is_held_back(lambda: os.kill(os.getpid(), signal.SIGINT))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_waits_even_if_it_reaches_a_thread_that_lets_it_through() -> None:
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    heard, told = os.pipe()
    os.set_blocking(told, False)
    before = signal.set_wakeup_fd(told)

    def press() -> None:
        assert other.ident is not None
        signal.pthread_kill(other.ident, signal.SIGINT)
        select.select([heard], [], [], 120)

    try:
        assert is_held_back(press)
    finally:
        signal.set_wakeup_fd(before)
        os.close(heard)
        os.close(told)
        stop.set()
        other.join()


def test_what_was_blocked_before_stays_blocked() -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with interrupts.held_back_from_processes():
            pass
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def test_a_process_that_is_started_meanwhile_does_not_hear_ctrl_c() -> None:
    with interrupts.held_back_from_processes():
        done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.held_back():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_outside_the_main_thread_handlers_are_left_alone() -> None:
    found: list[object] = []

    def work() -> None:
        with interrupts.held_back():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def raised_within(*numbers: int) -> None:
    with interrupts.held_back(*numbers):
        for number in numbers:
            signal.raise_signal(number)


def test_each_signal_is_heard_once_whatever_the_handler_of_another_raises() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            raised_within(signal.SIGTERM, signal.SIGINT, signal.SIGTERM)
        assert heard == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_loop_of_asyncio_hears_a_signal_once() -> None:
    heard: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: heard.append("term"))
        with interrupts.held_back(signal.SIGTERM):
            signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)

    asyncio.run(work())
    assert heard == ["term"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_the_graph_has_been_run(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    class EndedError(Exception):
        """What the handler raises."""

    class Interrupted:
        """A session that a signal reaches while it runs."""

        def __init__(self, session: Any) -> None:
            self.session, self.ended = session, False

        def run(self, *arguments: Any) -> list[Any]:
            signal.raise_signal(number)
            self.ended = True
            return list(self.session.run(*arguments))

    def end(*_: object) -> None:
        raise EndedError

    classifier = Classifier.load(model_path)
    session = Interrupted(classifier.graph.session)
    monkeypatch.setattr(classifier.graph, "session", session)
    before = signal.signal(number, end)
    try:
        with pytest.raises(EndedError):
            classifier.predict(["where is my parcel", "and when"])
    finally:
        signal.signal(number, before)
    assert session.ended
