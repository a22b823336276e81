"""The record of a generation in the shared folder: served files, and keys."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from textcls.model.labels import LabelChange, label_change
from textcls.server.models.file_stamps import Stamps


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model that is served from a copy of its file.

    Attributes:
        name: the name by which requests choose it.
        version: the operator's version; None for the start of the hash.
        sha256: the SHA-256 of the file, and the name of the copy.
        path: the operator's file.
        labels: the labels of the model, in the order of the file.
        columns: the columns that requests name; empty if they send only texts.
        task: whether a text has one label, or may have several.
        bins: bins in which its answers are counted, from `Bins.to_json`; None if the file has none.
    """

    name: str
    version: str | None
    sha256: str
    path: Path
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    task: str
    bins: dict[str, Any] | None

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Return an entry from plain data."""
        tuples = {name: tuple(found[name]) for name in ("labels", "columns")}
        return cls(**{**found, **tuples, "path": Path(found["path"])})


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of the operator's files: models, digests of keys, and stamps that show when files have changed."""

    models: tuple[ModelEntry, ...]
    keys: Sequence[Sequence[str]]
    admin_keys: Sequence[Sequence[str]]
    files: Stamps

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Return it from plain data of a manifest, or of the loading process."""
        return cls(**{**found, "models": tuple(map(ModelEntry.from_json, found["models"]))})

    def to_json(self) -> bytes:
        """Return JSON for `from_json` to read once parsed. Escapes preserve paths that are not valid UTF-8."""
        return _json(self)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A recorded generation.

    Attributes:
        number: the number of the exchange; 0 before the first.
        before: the SHA-256 of the copies of the previous generation, which a worker may still be reading.
        found: what is served.
    """

    number: int
    before: tuple[str, ...]
    found: Loaded

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the manifest that `to_bytes` has written as `data`."""
        parsed = json.loads(data)
        return cls(parsed["number"], tuple(parsed["before"]), Loaded.from_json(parsed["found"]))

    def to_bytes(self) -> bytes:
        """Return the content of the manifest's file."""
        return _json(self)

    @property
    def models(self) -> tuple[ModelEntry, ...]:
        """The models that are served."""
        return self.found.models

    @property
    def copies(self) -> tuple[str, ...]:
        """The SHA-256 of every copy that this generation needs."""
        return tuple(entry.sha256 for entry in self.models)

    def followed_by(self, found: Loaded) -> "Manifest":
        """Return the next generation."""
        return Manifest(self.number + 1, self.copies, found)

    def changes_to(self, after: Loaded) -> "Changes":
        """Return the changes of labels, columns and tasks of models in both, of removed models, and of the default."""
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
    """A model whose labels, columns or task have changed: what was added and removed, in the order of each file."""

    model: str
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.model}: {LabelChange(self.added, self.removed)}"


class Changes(NamedTuple):
    """The differences between the models of two generations."""

    labels: tuple[Change, ...]
    columns: tuple[Change, ...]
    tasks: tuple[Change, ...]
    models: tuple[Change, ...]


def _json(value: Loaded | Manifest) -> bytes:
    return json.dumps(asdict(value), default=str).encode()
