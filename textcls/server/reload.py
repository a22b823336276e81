"""Exchange the models of all workers at once: tested first, then written down, then taken up by every worker.

The folder that the workers share holds `generation.json`, which names the files of the generation served. They are
copies: a worker that starts later serves what the others serve, whatever has become of the operator's files meanwhile.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from textcls.classifier import Classifier
from textcls.errors import ArtifactError
from textcls.server import registry
from textcls.server.registry import Generation, Source

_MANIFEST: Final = "generation.json"
_DRAINING: Final = "draining"


class Shelf:
    """The shared folder, as a shelf of generations."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.folder = folder
        self._arguments = tuple(arguments)
        self._manifest = folder / _MANIFEST

    def publish(self) -> int:
        """Read the operator's files anew, test each, and make them the generation served; return its number.

        Raises:
            ArtifactError: a file cannot be used; nothing has changed.
            ConfigError: likewise.
        """
        with self._alone():
            models = [self._take(source) for source in registry.resolve(self._arguments)]
            number = self.number() + 1
            _replace(self._manifest, json.dumps({"number": number, "models": models}).encode())
            self._forget()
        return number

    def number(self) -> int:
        """Return the number of the generation that is written down; 0 before the first."""
        try:
            return int(json.loads(self._manifest.read_bytes())["number"])
        except FileNotFoundError:
            return 0

    def stamp(self) -> tuple[int, int]:
        """Return what changes with each generation, at the price of one system call."""
        found = self._manifest.stat()
        return found.st_ino, found.st_mtime_ns

    def load(self) -> Generation:
        """Return the generation that is written down.

        Raises:
            ArtifactError: a copy cannot be used.
        """
        manifest = json.loads(self._manifest.read_bytes())
        return registry.generation(manifest["number"], [self._load(entry) for entry in manifest["models"]])

    @property
    def draining(self) -> bool:
        """Whether the whole service is about to stop."""
        return (self.folder / _DRAINING).exists()

    def drain(self) -> None:
        """Tell all workers that the service is about to stop."""
        (self.folder / _DRAINING).touch()

    def _take(self, source: Source) -> dict[str, Any]:
        """Test the file of `source` and keep a copy of what was tested."""
        try:
            data = source.path.read_bytes()
        except FileNotFoundError as error:
            raise ArtifactError(f"There is no model file {source.path}.") from error
        except OSError as error:
            raise ArtifactError(f"{source.path} cannot be read: {os.strerror(error.errno or 0)}.") from error
        registry.self_test(Classifier.from_bytes(data, source.path))
        digest = sha256(data).hexdigest()
        copy = self.folder / f"{digest}.onnx"
        if not copy.exists():
            _replace(copy, data)
        return {"name": source.name, "version": source.version, "sha256": digest, "path": str(source.path)}

    def _load(self, entry: dict[str, Any]) -> registry.Served:
        data = (self.folder / f"{entry['sha256']}.onnx").read_bytes()
        classifier = Classifier.from_bytes(data, Path(entry["path"]))
        return registry.serve(classifier, entry["name"], entry["version"], entry["sha256"])

    def _forget(self) -> None:
        """Remove copies that neither this generation nor the one before names; a worker may still be reading that."""
        kept = self.folder / "kept.json"
        manifest = json.loads(self._manifest.read_bytes())
        now = [entry["sha256"] for entry in manifest["models"]]
        before = json.loads(kept.read_bytes()) if kept.exists() else []
        for path in self.folder.glob("*.onnx"):
            if path.stem not in {*now, *before}:
                path.unlink()
        _replace(kept, json.dumps(now).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _replace(path: Path, data: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_bytes(data)
    beside.replace(path)
