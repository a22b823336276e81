"""Counts of all workers, for Prometheus.

Each worker counts in its own memory-mapped file: one addition per number, no lock. The process that is scraped adds up
the files. prometheus-client's own multi-process mode does the same through layers that cost 14 us per request, an
eighth of the time of a short request; here it is 2 us. Only its text format is used.

The file of a worker that died is taken over by the next one: its counts are kept, and files do not pile up.
"""

import errno
import json
import logging
import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from textcls._util.file_lock import is_locked, try_lock

_LOGGER: Final = logging.getLogger(__name__)
_NUMBERS, _SCRATCH = 1 << 15, 64
NAMES: Final = ".names"
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TEXTS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
_SCORES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


class Family(NamedTuple):
    """A metric: its name, what it means, the names of its labels, and its bounds if it is a histogram.

    Label values that are known in advance start at 0: if a counter only appeared with its first event, `increase` would
    not see that event, and an alert for it would miss it.
    """

    name: str
    about: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    gauge: bool = False
    values: tuple[str, ...] = ()


REQUESTS: Final = Family("textcls_requests", "Requests answered.", ("route", "status"))
SECONDS: Final = Family("textcls_request_duration_seconds", "From the head to the answer.", ("route",), _SECONDS)
IN_PROGRESS: Final = Family("textcls_requests_in_progress", "Requests not yet answered.", gauge=True)
QUEUE: Final = Family("textcls_queue_depth", "Long requests waiting or worked on.", gauge=True)
WAIT: Final = Family("textcls_queue_wait_seconds", "How long a long request waited for a thread.", (), _SECONDS)
BATCH: Final = Family("textcls_batch_size", "Texts of a request.", ("model",), _TEXTS)
TOKENS: Final = Family("textcls_tokens", "Tokens read.", ("model",))
SILENT: Final = Family(
    "textcls_silent_values",
    "Values of columns beside the text that said nothing: missing, not understood, or unseen in training.",
    ("model", "column", "reason"),
)
PREDICTIONS: Final = Family(
    "textcls_predictions", "Texts by the label answered; with several, by each.", ("model", "label")
)
ABSTENTIONS: Final = Family("textcls_abstentions", "Texts without a score that reaches its threshold.", ("model",))
SCORES: Final = Family(
    "textcls_score", "Score of the most probable label; its drift is the data's.", ("model",), _SCORES
)
OVERLOADED: Final = Family("textcls_overloaded", "Requests turned away since the server was busy.")
LIMITED: Final = Family("textcls_key_limited", "Requests turned away by the limits of their key.")
KEY_REQUESTS: Final = Family("textcls_key_requests", "Requests answered, by the name of the key.", ("key", "status"))
RELOADS: Final = Family(
    "textcls_reloads", "Exchanges of the models, tried by this service.", ("result",), values=("done", "refused")
)
CLOSED: Final = Family(
    "textcls_connections_closed",
    "Connections that the server gave up.",
    ("reason",),
    values=("400", "408", "414", "429", "431", "501", "answer not taken", "idle"),
)
HELD: Final = Family("textcls_held_bytes", "Bytes held for requests, of max_held_bytes in each worker.", gauge=True)
LINES_DROPPED: Final = Family("textcls_log_lines_dropped", "Lines of the log that nobody read fast enough.")
RESTARTS: Final = Family("textcls_worker_restarts", "Workers that ended or hung, and were replaced.")
GENERATION: Final = Family("textcls_generation", "Generation of the models, the least of all workers.", gauge=True)

# For models whose file records the answers to held-out rows: the bins, and how far the latest texts are from them.
_BIN: Final = ("model", "of", "bin")
DRIFT_TEXTS: Final = Family(
    "textcls_drift_texts", "Texts by the bins of held-out rows: of scores, lengths, labels.", _BIN
)
HELD_OUT_ROWS: Final = Family("textcls_held_out_rows", "Rows of the training in the same bins.", _BIN, gauge=True)
WINDOW: Final = Family(
    "textcls_drift_window_texts", "Latest texts that distances rest on, of all workers.", ("model",), gauge=True
)
DISTANCE: Final = Family(
    "textcls_drift_distance", "Population stability index, latest texts to held-out rows.", ("model", "of"), gauge=True
)
BY_CHANCE: Final = Family(
    "textcls_drift_distance_by_chance",
    "What the distance stays below in 95 of 100 cases if nothing has changed.",
    ("model", "of"),
    gauge=True,
)
UNKNOWN: Final = Family("textcls_unknown_tokens", "Tokens read that the model does not know.", ("model",))
UNKNOWN_SHARE: Final = Family(
    "textcls_unknown_token_share", "Share of unknown tokens in the latest texts.", ("model",), gauge=True
)
UNKNOWN_EXPECTED: Final = Family(
    "textcls_unknown_token_share_expected", "The share to expect, by the rows of the training.", ("model",), gauge=True
)
UNKNOWN_BY_CHANCE: Final = Family(
    "textcls_unknown_token_share_by_chance",
    "What the share stays below in 97.5 of 100 cases if nothing has changed.",
    ("model",),
    gauge=True,
)
DRIFT_FAMILIES: Final = (
    WINDOW, DISTANCE, BY_CHANCE, UNKNOWN_SHARE, UNKNOWN_EXPECTED, UNKNOWN_BY_CHANCE, UNKNOWN, DRIFT_TEXTS, HELD_OUT_ROWS
)  # fmt: skip

# When the event loop of a worker last ran, by the clock that all processes share. It is first in the file, followed by
# GENERATION, so that a probe finds them without reading the rest.
HEARTBEAT: Final = Family("textcls_heartbeat", "", gauge=True)
_HEARTBEAT: Final = struct.Struct("dd")

FAMILIES: Final = (
    REQUESTS, SECONDS, IN_PROGRESS, QUEUE, WAIT, BATCH, TOKENS, SILENT, PREDICTIONS, ABSTENTIONS, SCORES, OVERLOADED,
    LIMITED, KEY_REQUESTS, RELOADS, CLOSED, HELD, LINES_DROPPED, RESTARTS,
)  # fmt: skip
_Key = tuple[str, ...]
# The numbers of a worker, by the name of the metric and its labels.
Numbers = dict[_Key, list[float]]


class Counts:
    """The numbers of one worker, for use in the event loop's thread only."""

    def __init__(self, folder: Path) -> None:
        """Count in a file of the workers' shared folder."""
        self._path, self._file = _claim(folder)
        self._map = mmap.mmap(self._file, 8 * _NUMBERS)
        self._numbers: memoryview[float] = memoryview(self._map).cast("d")
        named = _named(self._path)
        self._places = {key: place for key, (place, _) in named.items()}
        self._used = max((place + size for place, size in named.values()), default=0)
        # Numbers of a worker that died before it could name them are nobody's.
        self._numbers[self._used :] = memoryview(bytes(8 * (_NUMBERS - self._used))).cast("d")
        self._rows: dict[_Key, memoryview[float]] = {}
        # What each number means is in a second file; names that could not be written to it yet are kept.
        self._names = os.open(self._path.with_suffix(NAMES), os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, 0o600)
        self._unnamed = b""
        for family in (HEARTBEAT, GENERATION, IN_PROGRESS, QUEUE, HELD):
            self.set(family, 0)
        for family in (OVERLOADED, LIMITED, LINES_DROPPED):
            self.add(family, by=0)
        for family in (RELOADS, CLOSED):
            for value in family.values:
                self.add(family, value, by=0)

    def close(self) -> None:
        """Leave the numbers to the next worker."""
        for row in self._rows.values():
            row.release()
        self._numbers.release()
        self._map.close()
        os.close(self._names)
        os.close(self._file)

    def add(self, family: Family, *labels: str, by: float = 1.0) -> None:
        """Add to a counter or a gauge."""
        # Not unpacked, which takes twice as long: each request counts nine times.
        key = (family.name,) + labels  # noqa: RUF005
        place = self._places.get(key)
        if place is None:
            place = self._register(key, 1)
        self._numbers[place] += by

    def set(self, family: Family, value: float) -> None:
        """Set a gauge."""
        self.add(family, by=0)
        place = self._places.get((family.name,))
        if place is not None:
            self._numbers[place] = value

    def observe(self, family: Family, values: Iterable[float], *labels: str) -> None:
        """Count `values` in a histogram: one number per bucket, one for larger values, and the sum."""
        key = (family.name,) + labels  # noqa: RUF005
        place = self._places.get(key)
        if place is None:
            place = self._register(key, len(family.bounds) + 2)
        numbers, bounds = self._numbers, family.bounds
        for value in values:
            numbers[place + bisect_left(bounds, value)] += 1.0
            numbers[place + len(bounds) + 1] += value

    def row(self, key: _Key, size: int) -> "memoryview[float] | None":
        """Return `size` numbers for direct counting until these counts are closed; None if there is no room."""
        if key not in self._places and not self._has_room(size):
            return None
        if key not in self._rows:
            place = self._places[key] if key in self._places else self._register(key, size)
            self._rows[key] = self._numbers[place : place + size]
        return self._rows[key]

    def _register(self, key: _Key, size: int) -> int:
        if not self._has_room(size):
            # There are tens of thousands of labels: better not to count an answer than not to give it.
            return _NUMBERS - _SCRATCH
        place, self._used = self._used, self._used + size
        self._places[key] = place
        # A newline first: a partial line left by a killed process or a full disk is then a line of its own.
        self._unnamed += b"\n" + json.dumps([key, place, size]).encode()
        self._name()
        return place

    def _has_room(self, size: int) -> bool:
        return self._used + size <= _NUMBERS - _SCRATCH

    def _name(self) -> None:
        """Write down the new names."""
        try:
            if os.write(self._names, self._unnamed) != len(self._unnamed):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._unnamed = b""
        except OSError as error:
            # Better an answer whose count appears with the next new label than no answer.
            folder, why = self._path.parent, os.strerror(error.errno or 0)
            _LOGGER.error("%s has no room for the name of a new count: %s", folder, why)


def read_all(folder: Path) -> tuple[list[Numbers], int]:
    """Return the numbers of all workers, dead ones last, and how many are alive.

    A process that serves no generation is not a worker yet, or is the supervisor.
    """
    living: list[Numbers] = []
    dead: list[Numbers] = []
    for path in sorted(folder.glob("*.counts")):
        named = _named(path)
        with path.open("r+b") as file:
            data = memoryview(file.read()).cast("d")
            numbers = {key: list(data[place : place + size]) for key, (place, size) in named.items()}
            (living if generation_of(numbers) and is_locked(file.fileno()) else dead).append(numbers)
    return living + dead, len(living)


class Heartbeat(NamedTuple):
    """A sign of life of a worker's event loop.

    Attributes:
        seconds: when it last ran, by `time.monotonic`.
        lives: whether the process is alive and serves a generation.
    """

    seconds: float
    lives: bool


def heartbeats(folder: Path) -> list[Heartbeat]:
    """Return the last sign of life of each worker, dead or alive."""
    found = []
    for path in folder.glob("*.counts"):
        with path.open("rb", buffering=0) as file:
            data = file.read(_HEARTBEAT.size)
            if len(data) == _HEARTBEAT.size:
                seconds, generation = _HEARTBEAT.unpack(data)
                found.append(Heartbeat(seconds, generation > 0 and is_locked(file.fileno())))
    return found


def generations(folder: Path) -> list[int]:
    """Return which generation each living worker serves."""
    found, living = read_all(folder)
    return [generation_of(numbers) for numbers in found[:living]]


def _claim(folder: Path) -> tuple[Path, int]:
    """Return the path and the open file of a worker's numbers: those of one that died, or new ones."""
    for number in count():
        path = folder / f"{number}.counts"
        file = os.open(path, os.O_RDWR | os.O_CREAT | _BINARY, 0o600)
        # The lock is held until the process ends, however it ends.
        if not try_lock(file):
            os.close(file)
            continue
        os.truncate(file, 8 * _NUMBERS)
        if hasattr(os, "posix_fallocate"):  # macOS and Windows have none
            # Without this, a full disk would kill the process at its first write to a page.
            os.posix_fallocate(file, 0, 8 * _NUMBERS)
        return path, file
    raise AssertionError("count() has no end")


def _named(path: Path) -> dict[_Key, tuple[int, int]]:
    """Return where the numbers of each name start, and how many there are; empty if nothing has been counted yet."""
    found: dict[_Key, tuple[int, int]] = {}
    with suppress(FileNotFoundError):
        for line in path.with_suffix(NAMES).read_bytes().splitlines():
            # A line may be empty or truncated.
            with suppress(ValueError):
                key, place, size = json.loads(line)
                found[tuple(key)] = place, size
    return found


def generation_of(numbers: Numbers) -> int:
    """Return which generation a process serves; 0 if it serves none."""
    return int(numbers.get((GENERATION.name,), [0.0])[0])
