"""Learning in a separate process, so that the page stays responsive. It ends when its parent has ended."""

import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any, Final

from textcls.errors import SurroundingsError, TextclsError
from textcls.labelling.answers import Annotation
from textcls.labelling.learner import Learned

# The niceness of the process.
_NICE: Final = 5
# Seconds that the process has to end by itself: it does not check in the middle of a training.
_LEAVE: Final = 2.0


class LearningProcess:
    """A learner that works in another process, which is restarted if it dies."""

    def __init__(self, texts: Sequence[str], *, several: bool) -> None:
        """Prepare to learn from answers to `texts`; a text may have `several` labels, or one."""
        self._texts, self._several = texts, several
        self._lock, self._closed = Lock(), False
        self._process: BaseProcess | None = None
        self._folder: Path | None = None
        self._connection: Connection[Any, Any] | None = None

    def learn(self, labels: Sequence[str], answers: Sequence[Annotation]) -> Learned:
        """Learn from answers as described in `Learner.learn`, with the same errors."""
        try:
            connection = self._connected()
            connection.send((list(labels), list(answers)))
            found = connection.recv()
        except (EOFError, OSError) as error:
            self._end()
            raise SurroundingsError(
                "The process that trains could not be started, or ended unexpectedly, perhaps for lack of memory or "
                "disk space. No answer is lost; the next answers try again."
            ) from error
        if isinstance(found, TextclsError):
            raise found
        assert isinstance(found, Learned)
        return found

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._closed = True
        self._end()

    def _connected(self) -> "Connection[Any, Any]":
        with self._lock:
            if self._closed:
                raise SurroundingsError("Labelling has ended.")
            if self._connection is None:
                # Spawned: a forked copy of a process with threads may hang.
                context = get_context("spawn")
                self._connection, theirs = context.Pipe()
                self._folder = Path(mkdtemp(prefix="textcls-label-"))
                arguments = theirs, self._folder, self._texts, self._several
                process = context.Process(target=_work, args=arguments, daemon=True, name="learning")
                process.start()
                self._process = process
                theirs.close()
            return self._connection

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
            folder, self._folder = self._folder, None
            connection, self._connection = self._connection, None
        if process is not None:
            process.terminate()
            process.join(_LEAVE)
            process.kill()
            process.join()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if connection is not None:
            connection.close()


def _work(connection: "Connection[Any, Any]", folder: Path, texts: Sequence[str], several: bool) -> None:
    """Answer requests until there are no more: the end of the other side, whatever its cause, closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if hasattr(os, "nice"):  # as on all systems but Windows
            os.nice(_NICE)
        from textcls_training.labelling.learn import Learning

        learning = Learning(texts, folder, several=several)
        with suppress(EOFError, OSError):
            while True:
                labels, answers = connection.recv()
                try:
                    found: Learned | TextclsError = learning.learn(labels, answers)
                except TextclsError as error:
                    found = error
                connection.send(found)
    finally:
        # The parent removes the folder, unless it was killed.
        shutil.rmtree(folder, ignore_errors=True)
