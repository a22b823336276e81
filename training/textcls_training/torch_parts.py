"""The only access to `textcls_torch`, which contains everything that needs PyTorch.

`textcls_torch` imports this package; this package only imports it through `torch_part`, late, when a configuration asks
for it: the default training does not need PyTorch.
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
]


def torch_part(name: TorchPart) -> Any:
    """Return a module of `textcls_torch`.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    with optional_dependencies.needed_by(f"textcls_torch.{name}"):
        return import_module(f"textcls_torch.{name}")


def look_for_torch(what: str) -> None:
    """Check early that `textcls_torch` is available; `what` requires it.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    optional_dependencies.require(what, "torch")
