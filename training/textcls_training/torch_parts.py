"""The one door to `textcls_torch`, where all stands that needs PyTorch.

What stands behind it imports this package; here nothing imports it back but by `torch_part`, late, when a configuration
asks for it: the default training goes without PyTorch.
"""

from importlib import import_module
from typing import Any, Literal

from textcls._util import optional_dependencies

TorchPart = Literal[
    "distillation.tuned_teacher",
    "export.heads.vector_head",
    "export.save_prototypes",
    "fit.device",
    "fit.threads",
    "fit.trainer",
    "pretraining.clusters.run",
    "pretraining.masked.run",
]


def torch_part(name: TorchPart) -> Any:
    """Return a module of `textcls_torch`.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    with optional_dependencies.needed_by(f"textcls_torch.{name}"):
        return import_module(f"textcls_torch.{name}")


def look_for_torch(what: str) -> None:
    """Find out early whether what is behind the door can be had; `what` asks for it.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    optional_dependencies.require(what, "torch")
