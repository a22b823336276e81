"""What the shared folder says of a generation: which files are served, who may ask, and what is being rewritten."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from textcls.model.artifact import ModelInfo
from textcls.model.labels import LabelChange, label_change
from textcls.server.models import registry
from textcls.server.models.file_stamps import Stamps


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model that is served from a copy of its file.

    Attributes:
        name: by which requests choose it.
        version: as the operator calls it; None for the beginning of the hash.
        sha256: the SHA-256 of the file, and the name of the copy.
        path: the operator's file.
        labels: the labels of the model, in the order of the file.
        columns: that requests name; none where they send texts alone.
        task: whether a text has one label, or may have several.
        bins: in which its answers are counted, as `Bins.to_json` gives them; None where the file knows of none.
        bytes: the size of the file when it was read.
        published: whether it is a version of a registry, which never changes.
    """

    name: str
    version: str | None
    sha256: str
    path: Path
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    task: str
    bins: dict[str, Any] | None
    bytes: int
    published: bool

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Return the entry that is plain data in a manifest."""
        tuples = {name: tuple(found[name]) for name in ("labels", "columns")}
        return cls(**{**found, **tuples, "path": Path(found["path"])})

    def rewritten(self, digest: str, info: ModelInfo) -> "ModelEntry":
        """Return the entry once its file has another content."""
        return replace(self, sha256=digest, labels=tuple(info.labels), bins=registry.bins_json(info))


class Rewriting(NamedTuple):
    """A file that the service rewrites, and the SHA-256 that it has then."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the operator's files hold: models, the digests of keys, and what tells whether the files have changed."""

    models: tuple[ModelEntry, ...]
    keys: Sequence[Sequence[str]]
    admin_keys: Sequence[Sequence[str]]
    files: Stamps

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Return what is plain data in a manifest, or was said by the process that loads."""
        return cls(**{**found, "models": tuple(map(ModelEntry.from_json, found["models"]))})

    def to_json(self) -> bytes:
        """Return this as `from_json` reads it once it is parsed. Escapes keep paths that have no UTF-8 form."""
        return _json(self)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A generation as it is written down.

    Attributes:
        number: counts the exchanges; 0 before the first.
        before: the SHA-256 of the copies of the generation before, which a worker may still be reading.
        found: what is served.
        rewriting: the file that has to have its new content for this generation to be served; None for a reload.
    """

    number: int
    before: tuple[str, ...]
    found: Loaded
    rewriting: Rewriting | None = None

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the manifest that `to_bytes` has made into `data`."""
        parsed = json.loads(data)
        rewriting = None
        if parsed["rewriting"] is not None:
            path, digest = parsed["rewriting"]
            rewriting = Rewriting(Path(path), digest)
        return cls(parsed["number"], tuple(parsed["before"]), Loaded.from_json(parsed["found"]), rewriting)

    def to_bytes(self) -> bytes:
        """Return the content of its file."""
        return _json(self)

    @property
    def models(self) -> tuple[ModelEntry, ...]:
        """The models that are served."""
        return self.found.models

    @property
    def copies(self) -> tuple[str, ...]:
        """The SHA-256 of every copy that this generation needs."""
        return tuple(entry.sha256 for entry in self.models)

    def followed_by(self, found: Loaded, rewriting: Rewriting | None = None) -> "Manifest":
        """Return the next generation."""
        return Manifest(self.number + 1, self.copies, found, rewriting)

    def changes_to(self, after: Loaded) -> "Changes":
        """Return the models of both that know other labels than before, read other columns, or have another task; those
        that are gone; and whether another is the default.
        """
        had = {entry.name: entry for entry in self.models}
        both = [(had[entry.name], entry) for entry in after.models if entry.name in had]
        labels = ((new.name, label_change(old.labels, new.labels)) for old, new in both)
        columns = ((new.name, label_change(old.columns, new.columns)) for old, new in both)
        tasks = ((new.name, label_change([old.task], [new.task])) for old, new in both)
        names = [entry.name for entry in after.models]
        models = [(name, label_change([name], [])) for name in had if name not in names]
        if had:
            models.append(("the default", label_change([*had][:1], names[:1])))
        every = (labels, columns, tasks, models)
        return Changes(*(tuple(Change(name, *one) for name, one in some if one) for some in every))


NOTHING_SERVED: Final = Manifest(0, (), Loaded((), (), (), []))


class Change(NamedTuple):
    """A model whose labels, columns or task are not those that it had, each in the order of the file that has it."""

    model: str
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.model}: {LabelChange(self.added, self.removed)}"


class Changes(NamedTuple):
    """What differs of models between two generations."""

    labels: tuple[Change, ...]
    columns: tuple[Change, ...]
    tasks: tuple[Change, ...]
    models: tuple[Change, ...]


def _json(value: Loaded | Manifest) -> bytes:
    return json.dumps(asdict(value), default=str).encode()
