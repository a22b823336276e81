"""Which models answer: names to files, and the generation that is served.

A generation is all models at one time, exchanged as a whole: a request keeps the one that it began with.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import orjson

from textcls.errors import ArtifactError, ConfigError, NotFoundError
from textcls.evaluation.drift.tally import Bins, bins_of
from textcls.model import artifact
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier
from textcls.versions import folder as versions
from textcls.versions.folder import Registry
from textcls.versions.record import NAME, is_plain

# As `textcls train-many` calls files after groups of any name.
_LONGEST: Final = 250
_NAMED: Final = re.compile(r"(?:(?P<name>[^=@/]+)(?:@(?P<version>[^=@/]+))?=)?(?P<path>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model comes from.

    Attributes:
        name: by which requests choose it.
        version: as the operator calls it; None for the beginning of the file's hash.
        path: the file.
        published: whether it is a version of a registry, whose hash is known and which never changes.
    """

    name: str
    version: str | None
    path: Path
    published: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """A model that answers.

    Attributes:
        name: by which requests choose it.
        version: as the operator calls it, or the beginning of the hash.
        sha256: the SHA-256 of the file.
        classifier: the model.
        head: how its answers begin, as JSON.
        header: name and value of the header that says who answered.
        bins: in which answers are counted, to be held against held-out rows; None where the file knows of none.
        published: whether it is a version of a registry, which never changes.
    """

    name: str
    version: str
    sha256: str
    classifier: Classifier
    head: bytes
    header: tuple[bytes, bytes]
    bins: Bins | None
    published: bool = False

    def is_of(self, digest: str, version: str | None, path: Path) -> bool:
        """Say whether this is the model of a file with this SHA-256, by this version and in this place."""
        return (self.sha256, self.version) == (digest, version_of(version, digest)) and self.classifier.path == path


@dataclass(frozen=True, slots=True)
class Generation:
    """All models served at one time.

    Attributes:
        number: counts the exchanges.
        models: by name; the first answers requests that name none.
    """

    number: int
    models: Mapping[str, Served]

    def get(self, name: str | None) -> Served:
        """Return the model called `name`, or the first.

        Raises:
            NotFoundError: there is no such model.
        """
        if name is None:
            return next(iter(self.models.values()))
        try:
            return self.models[name]
        except KeyError as error:
            raise NotFoundError(f"There is no model of this name; there are {', '.join(self.models)}.") from error


def resolve(arguments: Sequence[str]) -> tuple[ModelSource, ...]:
    """Say which models `arguments` mean: `FILE`, `NAME=FILE`, `NAME@VERSION=FILE`, folders of such files, registries.

    Raises:
        ArtifactError: a folder holds no model, or a registry is damaged or has none that is promoted.
        ConfigError: there is no argument, two models have one name, or a name cannot be used.
    """
    if not arguments:
        raise ConfigError("There is no model to serve: name a file, NAME=FILE, a folder of files, or a registry.")
    found = [source for argument in arguments for source in _expand(argument)]
    for source in found:
        if not _is_name(source.name):
            raise ConfigError(
                f"{source.path} cannot be served as {source.name!r}: names are up to {_LONGEST} letters, digits, "
                "spaces and any of . , _ - + = ~ %; rename the file, or give it a name, as in tickets=model.onnx."
            )
        if source.version is not None and not NAME.fullmatch(source.version):
            raise ConfigError(f"{source.version!r} is not a version: use up to 64 letters, digits, '.', '_' and '-'.")
    names = [source.name for source in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"Two models are called {twice}: give one of them another name, as in other=model.onnx.")
    return tuple(found)


def _is_name(name: str) -> bool:
    """Say whether a model may be called so; paths and headers of HTTP have what is not ASCII as %XX."""
    return 0 < len(name) <= _LONGEST and name[0] not in ". " and all(is_plain(sign) or sign in "~%" for sign in name)


def _expand(argument: str) -> list[ModelSource]:
    whole = Path(argument)
    match = None if whole.exists() else _NAMED.fullmatch(argument)
    name, version, path = (match["name"], match["version"], Path(match["path"])) if match else (None, None, whole)
    if versions.is_registry(path):
        return [_promoted(path, name, version)]
    if name is not None:
        return [ModelSource(name, version, path)]
    if not path.is_dir():
        return [_of_stem(path)]
    files = sorted(path.glob("*.onnx"))
    if not files:
        raise ArtifactError(f"The folder {path} contains no model (*.onnx).")
    return [_of_stem(file) for file in files]


def _promoted(folder: Path, name: str | None, version: str | None) -> ModelSource:
    """Return the promoted version of a registry. It is read later, where files can do no harm.

    Raises:
        ArtifactError: none is promoted, or the registry is damaged.
        ConfigError: it was given a version.
    """
    if version is not None:
        raise ConfigError(
            f"{folder} is a registry, which says by itself which version answers: write {name}={folder}, or name the "
            f"file of one, {name}@{version}={folder}/{version}/{versions.MODEL}."
        )
    registry = Registry(folder)
    state = registry.state()
    if state.promoted is None:
        raise ArtifactError(f"No version of {folder} is promoted: textcls versions {folder} --promote 1 does that.")
    path = registry.path_of(state.promoted) / versions.MODEL
    return ModelSource(name or state.name, str(state.promoted), path, published=True)


def _of_stem(path: Path) -> ModelSource:
    name, at, version = path.stem.partition("@")
    return ModelSource(name, version if at else None, path)


def serve(
    classifier: Classifier,
    name: str | None = None,
    version: str | None = None,
    digest: str = "",
    *,
    published: bool = False,
) -> Served:
    """Return `classifier` as a model that answers, by default under the name of its file."""
    name, info = name or classifier.path.stem, classifier.info
    digest = digest or sha256(artifact.read_file(classifier.path)).hexdigest()
    version = version_of(version, digest)
    model = {"name": name, "version": version, "format_version": info.format_version, "labels": len(info.labels)}
    header = f'{quote(name, safe=" ,+=~")}; version="{version}"; sha256="{digest}"'
    return Served(
        name,
        version,
        digest,
        classifier,
        b'{"model":%b,"results":[' % orjson.dumps(model),
        (b"x-model", header.encode()),
        bins_of(info),
        published,
    )


def bins_json(info: ModelInfo) -> dict[str, Any] | None:
    """Return in which bins the answers of a model are counted, as plain data for those who have not loaded it."""
    bins = bins_of(info)
    return None if bins is None else bins.to_json()


def version_of(given: str | None, digest: str) -> str:
    """Return the version as the operator calls it, or else the beginning of the hash."""
    return given or digest[:12]


def generation(number: int, served: Sequence[Served]) -> Generation:
    """Return the generation of these models, the first of which is the default."""
    return Generation(number, MappingProxyType({model.name: model for model in served}))
