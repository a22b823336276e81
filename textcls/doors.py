"""What is imported only when it is asked for, by its name: parts that need an extra, and the training package.

`textcls` runs without PyTorch, so no module of it imports the training package; this opens it by name, or says what to
install.
"""

from importlib import import_module
from typing import Any, Final

from textcls.errors import MissingExtraError

EXTRA_OF_PACKAGE: Final = {
    "torch": "train",
    "onnx": "train",
    "onnxscript": "train",
    "numba": "train",
    "scipy": "train",
    "sklearn": "train",
    "threadpoolctl": "train",
    "fastapi": "serve",
    "httptools": "serve",
    "opentelemetry": "otel",
    "orjson": "serve",
    "prometheus_client": "serve",
    "uvicorn": "serve",
}
TRAIN: Final = "textcls_training.api:train"
STORE_THRESHOLD: Final = "textcls_training.stored:store_threshold"


def load(place: str, what: str, extra: str | None = None) -> Any:
    """Return what is called `module:name`.

    Args:
        place: where it is.
        what: who asks, for the message.
        extra: the extra that has all it needs, where that is not the one of the missing package.

    Raises:
        MissingExtraError: a package that it needs is not installed.
    """
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF_PACKAGE:
            raise
        raise MissingExtraError(what, package, extra or EXTRA_OF_PACKAGE[package]) from error
