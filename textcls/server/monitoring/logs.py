"""Logs as JSON lines on standard error, which never contain a text unless enabled.

No request waits for the reader of the log: a thread writes, and lines that do not fit are dropped and counted.
"""

import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final

# The standard attributes of a log record; all others were passed as `extra`.
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}

REQUESTS: Final = "textcls.requests"
AUDIT: Final = "textcls.audit"
# Most characters of lines waiting to be written; a single line may have more.
WAITING: Final = 4_000_000
# How long the process waits for them when it ends.
_FLUSH_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 0.01


class JsonLines(logging.Formatter):
    """One JSON object per record: time, level, logger, message, and everything passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line; of an error only the code locations, since its message may contain a text."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["where"] = places(record.exc_info[1])
        return json.dumps(line, default=str)


class LineHandler(logging.Handler):
    """Writes lines to a file in a separate thread.

    Attributes:
        dropped: how many lines were not written.
    """

    def __init__(self, file: int) -> None:
        super().__init__()
        self.dropped = 0
        self._file = file
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._waiting = self._reported = 0
        self._guard = Lock()
        Thread(target=self._run, name="textcls-logs", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record for writing, or drop it."""
        line = self.format(record)
        with self._guard:
            if self._waiting and self._waiting + len(line) > WAITING:
                self.dropped += 1
                return
            self._waiting += len(line)
        self._lines.put(line)

    def flush(self) -> None:
        """Wait briefly until all lines have been written."""
        end = time.monotonic() + _FLUSH_SECONDS
        while self._waiting and time.monotonic() < end:
            time.sleep(_TICK_SECONDS)

    def close(self) -> None:
        """End the thread."""
        self._lines.put(None)
        super().close()

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            written = self._write(line)
            with self._guard:
                self.dropped += not written
                lost = self.dropped - self._reported
            if lost and written:
                self._reported += lost
                self._write(self.format(_lost(lost)))
            with self._guard:
                self._waiting -= len(line)

    def _write(self, line: str) -> bool:
        """Write a line; not through `sys.stderr`, whose lock would stay held while nothing reads the log."""
        rest = memoryview(f"{line}\n".encode(errors="backslashreplace"))
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            return False
        return True


def _lost(lines: int) -> logging.LogRecord:
    message = f"{lines:,} lines of the log were dropped: they came faster than they were read"
    record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (), None)
    record.lines_dropped = lines
    return record


def places(error: BaseException | None) -> list[str]:
    """Return the code locations of an error's traceback, innermost last, without any values."""
    steps = traceback.walk_tb(None if error is None else error.__traceback__)
    return [f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}" for frame, line in steps]


def configure(level: str) -> None:
    """Log to standard error everything from `level` on, the audit trail, and requests if they are logged at all."""
    # A process may have no standard error. `sys.stderr` may have been replaced by a stream not safe for this thread.
    handler = logging.NullHandler() if sys.__stderr__ is None else LineHandler(sys.__stderr__.fileno())
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in (REQUESTS, AUDIT):
        logging.getLogger(name).setLevel(logging.INFO)


@contextmanager
def flushed() -> Iterator[None]:
    """Write all waiting lines at the end of the block, before anything else is printed."""
    try:
        yield
    finally:
        for handler in logging.getLogger().handlers:
            handler.flush()


def dropped() -> int:
    """Return how many lines of this process have been dropped so far."""
    return sum(handler.dropped for handler in logging.getLogger().handlers if isinstance(handler, LineHandler))
