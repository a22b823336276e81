"""The served models: which names refer to which files, and the generation that is served.

A generation is all models at one time, exchanged as a whole: a request keeps the one that it started with.
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

# As long as the file names that `textcls train-many` makes of the names of groups.
_LONGEST: Final = 250
_NAMED: Final = re.compile(r"(?:(?P<name>[^=@/]+)(?:@(?P<version>[^=@/]+))?=)?(?P<path>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model comes from.

    Attributes:
        name: the name by which requests choose it.
        version: the operator's version; None for the start of the file's hash.
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
        name: the name by which requests choose it.
        version: the operator's version, or the start of the hash.
        sha256: the SHA-256 of the file.
        classifier: the model.
        head: the start of its answers, as JSON.
        header: name and value of the header that says which model answered.
        bins: bins in which answers are counted, for comparison with held-out rows; None if the file has none.
    """

    name: str
    version: str
    sha256: str
    classifier: Classifier
    head: bytes
    header: tuple[bytes, bytes]
    bins: Bins | None

    def is_of(self, digest: str, version: str | None, path: Path) -> bool:
        """Return whether this is the model of a file with this SHA-256, version and path."""
        return (self.sha256, self.version) == (digest, version_of(version, digest)) and self.classifier.path == path


@dataclass(frozen=True, slots=True)
class Generation:
    """All models served at one time.

    Attributes:
        number: the number of the exchange.
        models: the models by name; the first answers requests that name none.
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
    """Return the models that `arguments` name: `FILE`, `NAME=FILE`, `NAME@VERSION=FILE`, folders of files, registries.

    Raises:
        ArtifactError: a folder contains no model, or a registry is damaged or has no promoted version.
        ConfigError: there is no argument, two models have the same name, or a name cannot be used.
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
    """Return whether a model may have this name; HTTP paths and headers write non-ASCII characters as %XX."""
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
    """Return the promoted version of a registry; the file is read later, where it can do no harm.

    Raises:
        ArtifactError: none is promoted, or the registry is damaged.
        ConfigError: a version was given with it.
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


def serve(classifier: Classifier, name: str | None = None, version: str | None = None, digest: str = "") -> Served:
    """Return `classifier` as a served model, by default under the name of its file."""
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
    )


def bins_json(info: ModelInfo) -> dict[str, Any] | None:
    """Return the bins in which a model's answers are counted, as plain data for processes that have not loaded it."""
    bins = bins_of(info)
    return None if bins is None else bins.to_json()


def version_of(given: str | None, digest: str) -> str:
    """Return the operator's version, or else the start of the hash."""
    return given or digest[:12]


def generation(number: int, served: Sequence[Served]) -> Generation:
    """Return the generation of these models, the first of which is the default."""
    return Generation(number, MappingProxyType({model.name: model for model in served}))
