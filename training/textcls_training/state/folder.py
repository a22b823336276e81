"""The folder in which a training keeps its state.

    training.json     which training this is: hashes of its rows, its options, its versions
    NAME.npz          the last checkpoint of the fit of that name, while the training runs
    finished.npz      what is kept from the finished training, see `textcls_training.state.finished`
    lock              held by the process that trains

Each file is written completely or not at all, so after a kill at any moment the same command can resume.
"""

import json
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from textcls._util.atomic_write import atomic_write
from textcls._util.file_lock import try_lock
from textcls.errors import ConfigError, InputError, SurroundingsError
from textcls_training.state import arrays_file
from textcls_training.state.arrays_file import UNFINISHED, Arrays, DamagedError
from textcls_training.state.checkpoints import FitState

# What identifies a training: hashes, options, versions, by names that users know.
Identity = Mapping[str, Any]
Tell = Callable[[str], None]

FORMAT: Final = "textcls state 1"
_TRAINING, _LOCK, _SUFFIX = "training.json", "lock", ".npz"
# The name of a file that a killed process had begun to write.
_UNFINISHED = f".textcls-{UNFINISHED}"
FINISHED: Final = f"finished{_SUFFIX}"
# A checkpoint is written after this many seconds, and rarely enough to take less than a fortieth of the time.
EVERY_SECONDS = 5.0
WRITING_SHARE = 40
_MOST_JSON: Final = 10_000_000


class StateFolder:
    """The state of one training, from which it resumes.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: Path, identity: Identity, tell: Tell, *, keep_fits: bool) -> None:
        self.path, self._tell, self._keep_fits = path, tell, keep_fits
        self._training = json.loads(json.dumps({"format": FORMAT, **identity}))

    def begin(self) -> None:
        """Resume from an existing state and report how far it is, or record which training begins.

        Raises:
            ConfigError: it is the state of another training.
            InputError: it cannot be read.
        """
        for left in self.path.glob(f"{_UNFINISHED}*"):
            left.unlink(missing_ok=True)  # from a process that was killed while writing
        noted = self.path / _TRAINING
        if noted.exists():
            self._compare(_read_json(noted))
            self._say_how_far()
            return
        with atomic_write(noted, advice="free some space, or name another folder", kind=UNFINISHED) as file:
            file.write(json.dumps(self._training, indent=1).encode())

    def _compare(self, noted: Identity) -> None:
        different = [_difference(name, noted.get(name), now) for name, now in self._training.items()]
        if changed := [each for each in different if each]:
            raise ConfigError(
                f"The state in {self.path} is of another training: {', '.join(changed)}. "
                "Remove the folder, or name another one."
            )

    def _say_how_far(self) -> None:
        """Report in one line how far the fits are: those under way, or else what was done last."""
        found = []
        for path in sorted(self.path.glob(f"*{_SUFFIX}"), key=lambda each: each.stat().st_mtime_ns):
            if path.name != FINISHED:
                try:
                    found.append(arrays_file.read_about(path))
                except DamagedError:  # reported when it is loaded
                    continue
        shown = [each for each in found if not each.get("done")] or found[-1:]
        if shown:
            places = [f"{each['progress']} of {each['fit']}" for each in shown]
            self._tell(f"Going on {' and '.join(places)}.")

    def of(self, fit: str) -> "FileCheckpoint":
        """Return where the fit of this name keeps its state."""
        return FileCheckpoint(file_of(self.path, fit), fit, self._tell, keep_last=self._keep_fits)

    def within(self, part: str) -> "_Part":
        """Return where the fits of a part of the training keep their states."""
        return _Part(self, part)

    def finish(self, arrays: Arrays, about: Mapping[str, Any], fits: Collection[str]) -> None:
        """Save the finished training, and keep only the checkpoints of `fits`.

        Raises:
            SurroundingsError: there is no space.
        """
        arrays_file.write(self.path / FINISHED, arrays, {"format": FORMAT, **about})
        kept = {FINISHED, *(file_of(self.path, fit).name for fit in fits)}
        for path in self.path.glob(f"*{_SUFFIX}"):
            if path.name not in kept:
                path.unlink()


class _Part:
    """A part of a training, whose name precedes those of its fits."""

    def __init__(self, folder: StateFolder, part: str) -> None:
        self._folder, self._part = folder, part

    def of(self, fit: str) -> "FileCheckpoint":
        """Return where the fit of this name keeps its state."""
        return self._folder.of(f"{fit}, {self._part}")

    def within(self, part: str) -> "_Part":
        """Return where the fits of a part of this part keep their states."""
        return _Part(self._folder, f"{part}, {self._part}")


class FileCheckpoint:
    """Where one fit keeps its state: a file that is replaced from time to time."""

    def __init__(self, path: Path, fit: str, tell: Tell, *, keep_last: bool) -> None:
        self._path, self._fit, self._tell, self._keep_last = path, fit, tell, keep_last
        self._next = time.monotonic() + EVERY_SECONDS

    def learned(self) -> None:
        """Return None: there is no earlier training to continue from."""
        return

    def load(self) -> Arrays | None:
        """Return the arrays saved last; None if there are none, or if they are damaged, which is reported."""
        if not self._path.exists():
            return None
        try:
            arrays, about = arrays_file.read(self._path)
            if about.get("fit") != self._fit:
                raise DamagedError(f"{self._path} is of another fit.")
        except DamagedError as error:
            self._tell(f"{str(error).rstrip('.')}, so {self._fit} begins anew.")
            return None
        return arrays

    def offer(self, state: Callable[[], FitState]) -> None:
        """Save the state of a fit if a checkpoint is due."""
        began = time.monotonic()
        if began < self._next:
            return
        self._write(state())
        ended = time.monotonic()
        self._next = ended + max(EVERY_SECONDS, WRITING_SHARE * (ended - began))

    def finish(self, state: Callable[[], FitState]) -> None:
        """Save the final state of a fit if another training is to continue from it."""
        if self._keep_last:
            self._write(state())

    def _write(self, state: FitState) -> None:
        about = {"fit": self._fit, "progress": state.progress, "done": state.done}
        arrays_file.write(self._path, state.arrays, about)


@contextmanager
def opened(path: Path, identity: Identity, tell: Tell, *, keep_fits: bool = False) -> Iterator[StateFolder]:
    """Open the folder at `path`, created if missing, for the training with this `identity`.

    Args:
        path: the folder. Its parent exists.
        identity: what identifies the training.
        tell: receives a line that says from where it resumes.
        keep_fits: whether what the fits have learned is kept beyond the end, for another training to continue from.

    Raises:
        ConfigError: it is the state of another training.
        InputError: it is not the state of a training, or it cannot be read.
        SurroundingsError: it cannot be created or written, or another process trains there.
    """
    try:
        path.mkdir(exist_ok=True)
        _check_ours(path)
        lock = (path / _LOCK).open("wb")
    except OSError as error:
        raise SurroundingsError(f"The folder {path} cannot be written to: {error.strerror}; name another.") from error
    with lock:
        if not try_lock(lock.fileno()):
            raise SurroundingsError(f"Another process trains with the state in {path}; wait for it, or end it.")
        folder = StateFolder(path, identity, tell, keep_fits=keep_fits)
        folder.begin()
        yield folder


def _check_ours(path: Path) -> None:
    """Refuse a folder of other files, before anything is put into it."""
    names = {each.name for each in path.iterdir()}
    if _TRAINING not in names and any(name != _LOCK and not name.startswith(_UNFINISHED) for name in names):
        raise InputError(f"{path} holds other files and no state of a training; name another folder.")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_JSON:
            raise ValueError(f"it is not a plain file of at most {_MOST_JSON:,} bytes")
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict):
            raise TypeError("it is not an object")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({error}); remove the folder to train from the start.") from error
    return found


def _difference(name: str, was: Any, now: Any) -> str | None:
    """Return the difference between two trainings as text; None if there is none."""
    if was == now:
        return None
    if isinstance(was, dict) and isinstance(now, dict):
        inner = [_difference(key, was.get(key), now.get(key)) for key in {**was, **now}]
        return ", ".join(each for each in inner if each)
    if name.endswith(("rows", "texts")):
        return f"the {name} differ"
    return f"{name} was {_shown(was)} and is {_shown(now)}"


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)


def file_of(path: Path, fit: str | None = None) -> Path:
    """Return the file of a fit in the folder at `path`; without a fit, the one that identifies the training."""
    return path / (_TRAINING if fit is None else re.sub(r"[^a-z0-9]+", "-", fit.lower()) + _SUFFIX)
