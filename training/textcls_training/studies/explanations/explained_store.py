"""What methods have said so far, kept in a file as it goes: an interrupted measurement goes on where it was.

One JSON object a line: first what makes the measurement this one and no other, then an explanation each. A line that a
kill has cut is left out when the file is read again.
"""

import hashlib
import json
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from textcls.errors import ConfigError
from textcls_training.data.arrays import Float64


class Kept(NamedTuple):
    """An explanation: the scores of the tokens, and what they cost."""

    scores: Float64
    calls: int
    seconds: float


class ExplainedStore:
    """Explanations by a key, in memory and, if there is a file, in that, too."""

    def __init__(self, file: IO[str] | None = None, found: dict[str, Kept] | None = None) -> None:
        self._file, self._found = file, found or {}

    @classmethod
    def open(cls, path: Path, about: dict[str, Any]) -> "ExplainedStore":
        """Open the file at `path`, which is made if it is not there.

        Args:
            path: the file.
            about: what makes the measurement the one that it is, such as seed and versions.

        Raises:
            ConfigError: it is that of another measurement, or none of this kind.
        """
        found: dict[str, Kept] = {}
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        whole = b"".join(line for line in lines if line.endswith(b"\n"))
        for number, line in enumerate(whole.splitlines()):
            entry = _entry(line, path)
            if number == 0:
                _check(entry, about, path)
            else:
                found[entry["key"]] = Kept(np.array(entry["scores"], np.float64), entry["calls"], entry["seconds"])
        # Cut off what is no whole line, so that the next one stands by itself.
        path.open("a").close()
        with path.open("r+b") as file:
            file.truncate(len(whole))
        opened = path.open("a", encoding="utf-8")
        if not whole:
            opened.write(json.dumps({"about": about}) + "\n")
        return cls(opened, found)

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
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()


def key_of(*parts: object) -> str:
    """Return the key of an explanation, made of all that it hangs on."""
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:32]


def _entry(line: bytes, path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        if "about" in entry or {"key", "scores", "calls", "seconds"} <= entry.keys():
            return dict(entry)
    except (ValueError, TypeError, AttributeError):
        pass
    raise ConfigError(f"{path} is not what explain-benchmark keeps; name another file for --state.")


def _check(entry: dict[str, Any], about: dict[str, Any], path: Path) -> None:
    was = entry.get("about")
    if not isinstance(was, dict):
        raise ConfigError(f"{path} is not what explain-benchmark keeps; name another file for --state.")
    changed = [f"{name} {was.get(name)} (now {value})" for name, value in about.items() if was.get(name) != value]
    if changed:
        raise ConfigError(f"{path} is of a measurement with {', '.join(changed)}; go on there, or name another file.")
