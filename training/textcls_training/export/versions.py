"""The versions of the packages that a saved model was made with."""

import platform
from functools import cache
from importlib import metadata
from typing import Final

from textcls_training.config.resolve import Trainers

VERSIONS_OF: Final = ("textcls", "onnx", "onnxruntime", "numpy", "numba", "scipy", "mmh3")
# Additional packages, for a model trained by the reference.
REFERENCE: Final = ("torch",)


def versions(impl: Trainers) -> dict[str, str]:
    """Return the version of each package that contributes to a saved model, and of Python."""
    names = (*VERSIONS_OF, *REFERENCE) if impl == "reference" else VERSIONS_OF
    return {name: _version(name) for name in names} | {"python": platform.python_version()}


@cache
def _version(name: str) -> str:
    return metadata.version(name)  # reads files for some milliseconds
