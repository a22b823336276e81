"""What a saved model was made with."""

import platform
from importlib.metadata import version
from typing import Final

VERSIONS_OF: Final = ("textcls", "torch", "onnx", "onnxscript", "onnxruntime", "numpy", "numba", "scipy", "mmh3")


def versions() -> dict[str, str]:
    """Return the version of each package whose work is in a saved model, and of Python."""
    return {name: version(name) for name in VERSIONS_OF} | {"python": platform.python_version()}
