"""The choice of implementation: the plain PyTorch twin, or the Triton kernels."""

import importlib.util
import os
from typing import Literal, get_args

import torch

Impl = Literal["auto", "reference", "triton"]
Chosen = Literal["reference", "triton"]
# Only for `metric_attention`.
AttentionImpl = Literal["auto", "reference", "triton", "sdpa"]


def resolve_impl(device: torch.device | str, impl: Impl = "auto", names: tuple[str, ...] = get_args(Impl)) -> Chosen:
    """Return the implementation that `impl` means for tensors on `device`: the device alone decides "auto".

    Args:
        device: where the tensors are.
        impl: the implementation asked for.
        names: what may be asked for, as listed in an error.

    Raises:
        ValueError: `impl` is none of "auto", "reference" and "triton", or "triton" cannot run on the device.
        ModuleNotFoundError: the answer is "triton", which is not installed; the text contains the command to type.
    """
    kind = torch.device(device).type
    if impl not in get_args(Impl):
        raise ValueError(f"impl chooses the implementation; expected one of {list(names)}, got {impl!r}")
    if impl == "reference" or (impl == "auto" and kind != "cuda"):
        return "reference"
    if importlib.util.find_spec("triton") is None:
        raise ModuleNotFoundError(
            "impl 'triton' needs the package triton, which is not installed; type: pip install \"textcls[kernels]\""
            " or pass impl='reference'"
        )
    # Triton's interpreter, a tool of the tests, runs the same kernels on CPU tensors.
    if kind != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ValueError(f"impl 'triton' runs on a GPU; expected tensors on a cuda device, got {kind}")
    return "triton"
