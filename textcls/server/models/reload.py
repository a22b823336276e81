"""Exchange the models of all workers at once: tested first, then written down, then taken up by every worker.

The folder that the workers share holds `generation.json`, which names the files of the generation served. They are
copies: a worker that starts later serves what the others serve, whatever has become of the operator's files meanwhile.
It holds the hashes of the keys for the same reason.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from textcls.classifier import Classifier
from textcls.errors import ArtifactError, SurroundingsError, TextclsError
from textcls.server.admission.auth import Keys
from textcls.server.models import file_stamps, loading, registry
from textcls.server.models.registry import Generation
from textcls.server.monitoring import audit, logs, metrics
from textcls.server.monitoring.metrics import Counts
from textcls.server.settings import Settings
from textcls.server.system import shared_folder

_MANIFEST: Final = "generation.json"
_DRAINING: Final = "draining"
_LOGGER: Final = logging.getLogger(__name__)
_TICK_SECONDS: Final = 0.05
# Labels of a change that a line of the log names.
_NAMED: Final = 5


class Change(NamedTuple):
    """A model whose labels are not those that it had, each in the order of the file that has it."""

    model: str
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.model}: {_counted('added', self.added)}, {_counted('removed', self.removed)}"


class ReloadResult(NamedTuple):
    """A generation that has been written down: its number, and the models whose set of labels it changed."""

    number: int
    changes: tuple[Change, ...]


class Published(NamedTuple):
    """What all workers serve: the models, and who may ask them."""

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

    def publish(self) -> ReloadResult:
        """Read the operator's models and keys anew, test them, and let them be served.

        Raises:
            ArtifactError: a file cannot be used, or has other labels than before although `same_labels` is set; nothing
                has changed.
            ConfigError: likewise.
            SurroundingsError: the files cannot be read in time, the shared folder cannot be written to, or another
                exchange is still under way; nothing has changed.
        """
        request = loading.LoadRequest(self._arguments, self._settings, self.folder)
        with shared_folder.in_use(self.folder), self._alone(self._settings.load_seconds):
            before = self._read()
            try:
                # Nobody is served yet at the start: what a file does then, it does to itself.
                found = (loading.load_in_process if before["number"] else loading.load_in_thread)(request)
                changes = _changes(before["models"], found["models"])
                if changes and self._settings.same_labels:
                    raise ArtifactError(
                        f"The labels would be others ({'; '.join(map(str, changes))}), and same_labels is set: put the "
                        "right file in place, or start the service anew."
                    )
                shas = [entry["sha256"] for entry in before["models"]]
                manifest = {"number": before["number"] + 1, "before": shas, **found}
                shared_folder.write(self._manifest, json.dumps(manifest).encode())
            finally:
                self._forget()
        for change in changes:
            _LOGGER.warning("The labels are others than before, of %s", change)
        return ReloadResult(manifest["number"], changes)

    def number(self) -> int:
        """Return the number of the generation that is written down; 0 before the first.

        Raises:
            SurroundingsError: it cannot be read.
        """
        with shared_folder.in_use(self.folder):
            return int(self._read()["number"])

    def files(self) -> file_stamps.Stamps:
        """Return what tells whether the operator's files are still those that were."""
        return file_stamps.stamps(self._arguments, self._settings)

    def published_files(self) -> file_stamps.Stamps:
        """Return what `files` said when the generation that is served was read; waits for an exchange under way.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder), self._alone(math.inf):
            found: file_stamps.Stamps = self._read()["files"]
        return found

    def models(self) -> tuple[int, dict[str, str]]:
        """Return the number of the generation that is written down, and the SHA-256 of each of its models by name.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder):
            manifest = self._read()
        return manifest["number"], {entry["name"]: entry["sha256"] for entry in manifest["models"]}

    def named(self) -> list[tuple[str, str, str]]:
        """Return name, version and SHA-256 of each model of the generation that is written down.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder):
            entries = self._read()["models"]
        return [
            (entry["name"], registry.version_of(entry["version"], entry["sha256"]), entry["sha256"])
            for entry in entries
        ]

    def model_bytes(self) -> int:
        """Return how many bytes the files of all models have that are written down.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder):
            return sum(self._copy_of(entry).stat().st_size for entry in self._read()["models"])

    def stamp(self) -> tuple[int, int]:
        """Return what changes with each generation, at the price of one system call.

        Raises:
            SurroundingsError: the shared folder is gone.
        """
        with shared_folder.in_use(self.folder):
            found = self._manifest.stat()
        return found.st_ino, found.st_mtime_ns

    def load(self) -> Published:
        """Return what is written down.

        Raises:
            ArtifactError: a copy cannot be used.
            SurroundingsError: a copy cannot be read.
        """
        with shared_folder.in_use(self.folder):
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
        with shared_folder.in_use(self.folder):
            (self.folder / _DRAINING).touch()

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._manifest.read_bytes())
        except FileNotFoundError:
            return {"number": 0, "models": [], "before": []}
        return found

    def _load(self, entry: dict[str, Any]) -> registry.Served:
        data = self._copy_of(entry).read_bytes()
        classifier = Classifier.from_bytes(data, Path(entry["path"]))
        return registry.serve(classifier, entry["name"], entry["version"], entry["sha256"])

    def _copy_of(self, entry: dict[str, Any]) -> Path:
        return self.folder / f"{entry['sha256']}.onnx"

    def _forget(self) -> None:
        """Remove copies that neither this generation nor the one before names; a worker may still be reading that.

        Also what was begun by a process that was killed.
        """
        manifest = self._read()
        kept = {*manifest["before"], *(entry["sha256"] for entry in manifest["models"])}
        for path in (*self.folder.glob("*.onnx"), *self.folder.glob(f"*{shared_folder.PART}")):
            if path.stem not in kept:
                path.unlink(missing_ok=True)

    @contextmanager
    def _alone(self, seconds: float) -> Iterator[None]:
        end = time.monotonic() + seconds
        with (self.folder / "lock").open("w") as file:
            while not shared_folder.try_lock(file.fileno()):
                if time.monotonic() > end:
                    raise SurroundingsError("Another exchange of the models is still under way: try later.")
                time.sleep(_TICK_SECONDS)
            yield


@contextmanager
def counted(counts: Counts, store: GenerationStore, caller: audit.Caller) -> Iterator[None]:
    """Count a try to exchange the models, tell who asked for it, and log why it is refused.

    Raises:
        TextclsError: what was raised within, or in its place, since whatever happens the old models go on answering.
    """
    try:
        yield
    except TextclsError as error:
        counts.add(metrics.RELOADS, "refused")
        audit.reload_refused(caller, str(error))
        _LOGGER.error("The new models are refused, the old ones go on answering: %s", error)
        raise
    except Exception as error:
        counts.add(metrics.RELOADS, "refused")
        said = f"The exchange of the models failed ({type(error).__name__})."
        audit.reload_refused(caller, said)
        _LOGGER.error("%s The old models go on answering.", said, extra={"where": logs.places(error)})
        raise SurroundingsError(said) from error
    counts.add(metrics.RELOADS, "done")
    audit.reloaded(caller, *store.models())


class Reloader:
    """Exchanges the models beside the other work of a process that has no event loop.

    One exchange at a time; if another is asked for meanwhile, one more follows, since files may have changed again.
    """

    def __init__(self, store: GenerationStore, counts: Counts) -> None:
        self._store, self._counts = store, counts
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Let the models be exchanged soon."""
        self._asked.set()
        if self._thread is None:
            # A daemon: nobody waits for it in the end.
            self._thread = threading.Thread(target=self._run, name="textcls-reload", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while self._asked.wait():
            self._asked.clear()
            # A refusal has been logged and counted.
            with suppress(TextclsError), counted(self._counts, self._store, audit.SIGNAL):
                self._store.publish()


def _changes(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> tuple[Change, ...]:
    """Return the models of both generations that have not the same set of labels."""
    had = {entry["name"]: entry["labels"] for entry in before}
    found = []
    for entry in after:
        old, new = had.get(entry["name"], entry["labels"]), entry["labels"]
        if set(old) != set(new):
            added, removed = frozenset(new).difference(old), frozenset(old).difference(new)
            found.append(
                Change(
                    entry["name"],
                    tuple(label for label in new if label in added),
                    tuple(label for label in old if label in removed),
                )
            )
    return tuple(found)


def _counted(what: str, labels: Sequence[str]) -> str:
    named = "".join(f" {label!r}" for label in labels[:_NAMED])
    return f"{len(labels):,} {what}{named}{' ...' if len(labels) > _NAMED else ''}"
