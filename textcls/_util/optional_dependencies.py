"""Packages of the extras: the table of them, and the one way to report a missing one.

`textcls` runs without PyTorch, so no module of it imports the training package; `load` opens it by name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from textcls.errors import MissingExtraError

EXTRA_OF_PACKAGE: Final = {
    "torch": "torch",
    "onnx": "train",
    "numba": "train",
    "scipy": "train",
    "safetensors": "train",
    "sklearn": "train",
    "threadpoolctl": "train",
    "sentence_transformers": "teacher",
    "fastapi": "serve",
    "httptools": "serve",
    "orjson": "serve",
    "prometheus_client": "serve",
    "pydantic": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "opentelemetry": "otel",
    "pyarrow": "parquet",
    "backports": "tables",
    "ijson": "tables",
    "openpyxl": "tables",
    "ray": "ray",
    "mlflow": "mlflow",
    "matplotlib": "plots",
    "optuna": "tune",
    "httpx2": "annotate",
    "openai": "annotate",
}
# What an extra adds to the 180 MB of the package alone, on Linux, where PyTorch from PyPI includes CUDA.
WEIGHT_OF_EXTRA: Final = {
    "train": "440 MB",
    "torch": "1.2 GB by the CPU build of PyTorch, 6 GB with CUDA",
    "teacher": "1.4 GB by the CPU build of PyTorch, 6.1 GB with CUDA",
    "serve": "30 MB",
    "otel": "10 MB",
    "parquet": "170 MB",
    "tables": "180 MB",
    "tune": "470 MB",
    "annotate": "35 MB",
    "ray": "420 MB",
    "mlflow": "100 MB",
    "plots": "100 MB",
    "kernels": "1 GB",
    "all": "780 MB",
}
# Extras that include another one.
_WITHIN: Final = {"tune": "train"}
# Packages that several distributions share, of which one may be missing.
_SHARED: Final = ("opentelemetry", "backports")
TRAIN: Final = "textcls_training.api:train"


@contextmanager
def needed_by(what: str, extra: str | None = None) -> Iterator[None]:
    """Report what to install if a package that is imported in this block is not installed.

    A package that is installed but broken raises its own error.

    Args:
        what: what needs the package, for the message.
        extra: the extra with all that it needs, if that is not the extra of the missing package.

    Raises:
        MissingExtraError: a package of the table is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = _missing(error.name or "")
        if package is None:
            raise
        extra = extra or EXTRA_OF_PACKAGE[package]
        raise MissingExtraError(what, package, extra, WEIGHT_OF_EXTRA[extra]) from error


def _missing(module: str) -> str | None:
    """Return the package that is not installed; None if only a module within it is missing, or no extra has it."""
    package = module.partition(".")[0]
    whole = module == package or package in _SHARED
    return package if whole and package in EXTRA_OF_PACKAGE else None


def look_for(*packages: str) -> None:
    """Check that `packages` are installed, without importing them, which may take seconds.

    Raises:
        ModuleNotFoundError: one is not; `needed_by` turns this into a sentence.
    """
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def require(what: str, *packages: str) -> None:
    """Check that `packages` are installed, without importing them.

    Raises:
        MissingExtraError: one is not; `what` names what needs it.
    """
    with needed_by(what):
        look_for(*packages)


def look_for_all_of(extra: str) -> None:
    """Check that all packages of an extra are installed, as `look_for` does."""
    look_for(*(package for package, its in EXTRA_OF_PACKAGE.items() if its in (extra, _WITHIN.get(extra))))


def load(place: str, what: str, extra: str | None = None) -> Any:
    """Return the object called `module:name`; `what` and `extra` are those of `needed_by`.

    Raises:
        MissingExtraError: a package that it needs is not installed.
    """
    with needed_by(what, extra):
        return above(place)


def above(place: str) -> Any:
    """Return the object called `module:name`, from a layer above that of the caller."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def installed(extra: str) -> bool:
    """Return whether all packages of an extra are installed, without importing them."""
    try:
        look_for_all_of(extra)
    except ModuleNotFoundError:
        return False
    return True
