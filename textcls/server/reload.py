"""Exchange the models of all workers at once: tested first, then written down, then taken up by every worker.

The folder that the workers share holds `generation.json`, which names the files of the generation served. They are
copies: a worker that starts later serves what the others serve, whatever has become of the operator's files meanwhile.
It holds the hashes of the keys for the same reason.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from textcls.classifier import Classifier
from textcls.errors import ArtifactError, SurroundingsError, TextclsError
from textcls.server import auth, metrics, registry
from textcls.server.auth import Keys
from textcls.server.metrics import Counts
from textcls.server.registry import Generation, Source
from textcls.server.settings import Settings

_MANIFEST: Final = "generation.json"
_DRAINING: Final = "draining"
_LOGGER: Final = logging.getLogger(__name__)


class Published(NamedTuple):
    """What all workers serve: the models, and who may ask them."""

    generation: Generation
    keys: Keys
    admin_keys: Keys


class Shelf:
    """The shared folder, as a shelf of generations."""

    def __init__(self, folder: Path, arguments: Sequence[str], settings: Settings) -> None:
        self.folder = folder
        self._arguments = tuple(arguments)
        self._settings = settings
        self._manifest = folder / _MANIFEST

    def publish(self) -> int:
        """Read the operator's models and keys anew, test them, and let them be served; return the generation's number.

        Raises:
            ArtifactError: a file cannot be used; nothing has changed.
            ConfigError: likewise.
            SurroundingsError: the shared folder cannot be written to; nothing has changed.
        """
        keys, admin_keys = auth.load(self._settings)
        sources = self._sources()
        with _folder_in_use(self.folder), self._alone():
            before = self._read()
            try:
                manifest = {
                    "number": before["number"] + 1,
                    "models": [self._take(source) for source in sources],
                    "before": [entry["sha256"] for entry in before["models"]],
                    "keys": keys.digests(),
                    "admin_keys": admin_keys.digests(),
                }
                _replace(self._manifest, json.dumps(manifest).encode())
            finally:
                self._forget()
        return int(manifest["number"])

    def number(self) -> int:
        """Return the number of the generation that is written down; 0 before the first.

        Raises:
            SurroundingsError: it cannot be read.
        """
        with _folder_in_use(self.folder):
            return int(self._read()["number"])

    def stamp(self) -> tuple[int, int]:
        """Return what changes with each generation, at the price of one system call.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with _folder_in_use(self.folder):
            found = self._manifest.stat()
        return found.st_ino, found.st_mtime_ns

    def load(self) -> Published:
        """Return what is written down.

        Raises:
            ArtifactError: a copy cannot be used.
            SurroundingsError: a copy cannot be read.
        """
        with _folder_in_use(self.folder):
            manifest = json.loads(self._manifest.read_bytes())
            models = [self._load(entry) for entry in manifest["models"]]
        return Published(
            registry.generation(manifest["number"], models),
            Keys.from_digests(manifest["keys"]),
            Keys.from_digests(manifest["admin_keys"]),
        )

    @property
    def draining(self) -> bool:
        """Whether the whole service is about to stop."""
        return (self.folder / _DRAINING).exists()

    def drain(self) -> None:
        """Tell all workers that the service is about to stop.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with _folder_in_use(self.folder):
            (self.folder / _DRAINING).touch()

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._manifest.read_bytes())
        except FileNotFoundError:
            return {"number": 0, "models": [], "before": []}
        return found

    def _sources(self) -> Sequence[Source]:
        try:
            return registry.resolve(self._arguments)
        except OSError as error:
            raise ArtifactError(f"{error.filename} cannot be read: {os.strerror(error.errno or 0)}.") from error

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
        manifest = self._read()
        kept = {*manifest["before"], *(entry["sha256"] for entry in manifest["models"])}
        for path in self.folder.glob("*.onnx"):
            if path.stem not in kept:
                path.unlink()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@contextmanager
def counted(counts: Counts) -> Iterator[None]:
    """Count a try to exchange the models, and log why it is refused.

    Raises:
        TextclsError: what was raised within.
    """
    try:
        yield
    except TextclsError as error:
        counts.add(metrics.RELOADS, "refused")
        _LOGGER.error("The new models are refused, the old ones go on answering: %s", error)
        raise
    counts.add(metrics.RELOADS, "done")


def _replace(path: Path, data: bytes) -> None:
    """Write a file that is there as a whole or not at all.

    Raises:
        SurroundingsError: it cannot be written.
    """
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise SurroundingsError(
            f"{path} cannot be written: {os.strerror(error.errno or 0)}; make room there, or start the service with "
            "--runtime-dir and a folder that has more."
        ) from error


@contextmanager
def _folder_in_use(folder: Path) -> Iterator[None]:
    """Say in one sentence what the system says of the shared folder.

    Raises:
        SurroundingsError: it is gone, or something in it cannot be read or made.
    """
    try:
        yield
    except OSError as error:
        raise SurroundingsError(
            f"{error.filename or folder}, which the workers share, cannot be used: {os.strerror(error.errno or 0)}; "
            "start the service anew, and let nothing clear that folder while it runs."
        ) from error
