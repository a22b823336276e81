"""Exchange the models of all workers at once: they are tested, then recorded, then loaded by every worker.

The workers' shared folder contains `generation.json`, which names the files of the generation served. They are copies:
a worker that starts later serves the same models as the others, whatever has happened to the operator's files since.
It contains the hashes of the keys for the same reason.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from textcls._util.file_lock import locked
from textcls.errors import ArtifactError
from textcls.evaluation.drift.tally import Bins
from textcls.model.classifier import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.models import file_stamps, loading, registry
from textcls.server.models.manifest import NOTHING_SERVED, Changes, Loaded, Manifest, ModelEntry
from textcls.server.models.registry import Generation
from textcls.server.monitoring.exposition import ShownModel
from textcls.server.settings import Settings
from textcls.server.system import shared_folder

_MANIFEST: Final = "generation.json"
_DRAINING: Final = "draining"
_LOGGER: Final = logging.getLogger(__name__)


class ReloadResult(NamedTuple):
    """A recorded generation: its number, and what it changed in models that were served before."""

    number: int
    changes: Changes


class Published(NamedTuple):
    """What all workers serve: the models, and the keys of those who may use them."""

    generation: Generation
    keys: Keys
    admin_keys: Keys


class GenerationStore:
    """The shared folder, as a store of generations."""

    def __init__(self, folder: Path, arguments: Sequence[str], settings: Settings) -> None:
        self.folder = folder
        self._arguments = tuple(arguments)
        self._settings = settings
        self._manifest = folder / _MANIFEST
        self._has_manifest = False

    def publish(self) -> ReloadResult:
        """Read the operator's models and keys again, test them, and have them served.

        Raises:
            ArtifactError: a file cannot be used; or `same_labels` is set and a model has other labels, columns or
                another task than before, is gone, or is newly the default; nothing has changed.
            ConfigError: likewise.
            SurroundingsError: the files cannot be read in time, the shared folder cannot be written to, or another
                exchange is still under way; nothing has changed.
        """
        request = loading.LoadRequest(self._arguments, self._settings, self.folder)
        with shared_folder.in_use(self.folder), self._alone(self._settings.load_seconds):
            before = self._read()
            try:
                # At the start no requests are served yet, so a bad file can do no harm to any.
                found = (loading.load_in_process if before.number else loading.load_in_thread)(request)
                changes = self._changes(before, found)
                manifest = before.followed_by(found)
                shared_folder.write(self._manifest, manifest.to_bytes())
                self._has_manifest = True
            finally:
                self._forget()
        for what, some in changes._asdict().items():
            for change in some:
                _LOGGER.warning("The %s are others than before, of %s", what, change)
        return ReloadResult(manifest.number, changes)

    def number(self) -> int:
        """Return the number of the recorded generation; 0 before the first.

        Raises:
            SurroundingsError: it cannot be read.
        """
        with shared_folder.in_use(self.folder):
            return self._read().number

    def files(self) -> file_stamps.Stamps:
        """Return stamps that show whether the operator's files have changed."""
        return file_stamps.stamps(self._arguments, self._settings)

    def published_files(self) -> file_stamps.Stamps:
        """Return what `files` was when the generation served was read; waits for an exchange under way.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder), self._alone(math.inf):
            return self._read().found.files

    def models(self) -> tuple[int, dict[str, str]]:
        """Return the number of the recorded generation, and the SHA-256 of each of its models by name.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder):
            manifest = self._read()
        return manifest.number, {entry.name: entry.sha256 for entry in manifest.models}

    def shown(self) -> list[ShownModel]:
        """Return what the metrics show of each model of the recorded generation.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder):
            entries = self._read().models
        return [_shown(entry, watched=self._settings.drift_window > 0) for entry in entries]

    def model_bytes(self) -> int:
        """Return the total size in bytes of the recorded generation's model files.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder):
            return sum(self._copy_of(digest).stat().st_size for digest in self._read().copies)

    def stamp(self) -> tuple[int, int]:
        """Return a value that changes with each generation, at the cost of one system call.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder):
            found = self._manifest.stat()
        return found.st_ino, found.st_mtime_ns

    def load(self, known: Iterable[registry.Served] = ()) -> Published:
        """Load the recorded generation.

        Args:
            known: models that are already loaded; those that have not changed are reused.

        Raises:
            ArtifactError: a copy cannot be used.
            SurroundingsError: a copy cannot be read.
        """
        known = list(known)
        with shared_folder.in_use(self.folder):
            while True:
                manifest = self._written()
                try:
                    models = [self._load(entry, known) for entry in manifest.models]
                    break
                except FileNotFoundError:
                    # Copies are removed two generations later; a worker that is this late starts again.
                    if self._written().number == manifest.number:
                        raise
        return Published(
            registry.generation(manifest.number, models),
            Keys.from_digests(manifest.found.keys),
            Keys.from_digests(manifest.found.admin_keys),
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
        with shared_folder.in_use(self.folder):
            (self.folder / _DRAINING).touch()

    def _written(self) -> Manifest:
        found = Manifest.from_bytes(self._manifest.read_bytes())
        self._has_manifest = True
        return found

    def _read(self) -> Manifest:
        """Return the recorded generation, or an empty one before the first."""
        try:
            return self._written()
        except FileNotFoundError:
            if self._has_manifest:  # and somebody has cleared the folder
                raise
            return NOTHING_SERVED

    def _load(self, entry: ModelEntry, known: Sequence[registry.Served]) -> registry.Served:
        """Return a model, from `known` if it is loaded already."""
        name, version, digest = entry.name, entry.version, entry.sha256
        for served in known:
            if served.name == name and served.is_of(digest, version, entry.path):
                return served
        classifier = Classifier.from_bytes(self._copy_of(digest).read_bytes(), entry.path)
        return registry.serve(classifier, name, version, digest)

    def _changes(self, before: Manifest, after: Loaded) -> Changes:
        """Return which labels, columns and tasks of models change, and which models are gone.

        Raises:
            ArtifactError: something changes although `same_labels` is set.
        """
        changes = before.changes_to(after)
        for what, some in changes._asdict().items():
            if some and self._settings.same_labels:
                raise ArtifactError(
                    f"The {what} would change ({'; '.join(map(str, some))}), and same_labels is set: put the right "
                    "file in place, or restart the service."
                )
        return changes

    def _copy_of(self, digest: str) -> Path:
        return self.folder / f"{digest}.onnx"

    def _forget(self) -> None:
        """Remove copies of generations before the previous one, which a worker may still be reading.

        Also remove partial files of processes that were killed.
        """
        manifest = self._read()
        kept = {*manifest.before, *manifest.copies}
        for path in (*self.folder.glob("*.onnx"), *self.folder.glob(f"*{shared_folder.PART}")):
            if path.stem not in kept:
                path.unlink(missing_ok=True)

    @contextmanager
    def _alone(self, seconds: float) -> Iterator[None]:
        with locked(self.folder / "lock", seconds, "Another exchange of the models is still under way: try later."):
            yield


def _shown(entry: ModelEntry, *, watched: bool) -> ShownModel:
    bins = entry.bins if watched else None
    version = registry.version_of(entry.version, entry.sha256)
    return ShownModel(entry.name, version, entry.sha256, None if bins is None else Bins.from_json(bins))
