"""What methods have said so far, kept in a file as it goes: an interrupted measurement goes on where it was.

One JSON object a line: first what makes the measurement this one and no other, then an explanation each. A line that a
kill has cut is left out when the file is read again.
"""

import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from textcls._util.file_lock import try_lock
from textcls.errors import ConfigError, SurroundingsError
from textcls_training.data.arrays import Float64


class Kept(NamedTuple):
    """An explanation: the scores of the tokens, and what they cost."""

    scores: Float64
    calls: int
    seconds: float


class ExplainedStore:
    """Explanations by a key, in memory and, if there is a file, in that, too."""

    def __init__(self, file: IO[bytes] | None = None, found: dict[str, Kept] | None = None) -> None:
        self._file, self._found = file, found or {}

    @classmethod
    def open(cls, path: Path, about: dict[str, Any]) -> "ExplainedStore":
        """Open the file at `path`, which is made if it is not there, for one process.

        Args:
            path: the file.
            about: what makes the measurement the one that it is, such as seed and versions.

        Raises:
            ConfigError: it is that of another measurement, or none of this kind.
            SurroundingsError: another process measures with it.
        """
        with ExitStack() as on_failure:
            file = on_failure.enter_context(path.open("a+b"))
            if not try_lock(file.fileno()):
                raise SurroundingsError(f"Another process measures with {path}; wait for it, or name another --state.")
            found = _read(file, about, path)
            on_failure.pop_all()
        return cls(file, found)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def get(self, key: str) -> Kept | None:
        """Return what is kept under a key."""
        return self._found.get(key)

    def put(self, key: str, kept: Kept) -> None:
        """Keep an explanation, at once."""
        self._found[key] = kept
        if self._file is not None:
            entry = {"key": key, "scores": kept.scores.tolist(), "calls": kept.calls, "seconds": kept.seconds}
            self._file.write(_line(entry))
            self._file.flush()


def key_of(*parts: object) -> str:
    """Return the key of an explanation, made of all that it hangs on."""
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:32]


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _read(file: IO[bytes], about: dict[str, Any], path: Path) -> dict[str, Kept]:
    """Return what a file keeps; after it the file says what it is about, and ends with a whole line."""
    file.seek(0)
    content, first = file.read(), _line({"about": about})
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        if not first.startswith(content):
            raise _foreign(path)
        file.truncate(0)
        file.write(first)
        file.flush()
        return {}
    head, *lines = whole.splitlines()
    try:
        _check(json.loads(head)["about"], about, path)
        found = dict(map(_kept, lines))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _foreign(path) from error
    # Cut off what is no whole line, so that the next one stands by itself.
    file.truncate(len(whole))
    return found


def _kept(line: bytes) -> tuple[str, Kept]:
    entry = json.loads(line)
    return str(entry["key"]), Kept(np.array(entry["scores"], np.float64), int(entry["calls"]), float(entry["seconds"]))


def _foreign(path: Path) -> ConfigError:
    return ConfigError(f"{path} is not what explain-benchmark keeps; name another file for --state.")


def _check(was: dict[str, Any], about: dict[str, Any], path: Path) -> None:
    changed = [f"{name} {was.get(name)} (now {value})" for name, value in about.items() if was.get(name) != value]
    if changed:
        raise ConfigError(f"{path} is of a measurement with {', '.join(changed)}; go on there, or name another file.")
