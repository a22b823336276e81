"""The device that a training runs on."""

from importlib.util import find_spec

import torch

from textcls.errors import SurroundingsError
from textcls_training.config.settings import Device


def resolve_device(name: Device) -> torch.device:
    """Return the device called `name`; `auto` is a GPU if there is one.

    Raises:
        SurroundingsError: a GPU is asked for, and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise SurroundingsError("PyTorch finds no GPU for --device cuda; choose cpu or auto, or install a CUDA build.")
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)


def on_gpu(name: Device) -> bool:
    """Return whether the device called `name` is a GPU.

    Raises:
        SurroundingsError: a GPU is asked for, and there is none.
    """
    return resolve_device(name).type == "cuda"


def runs_kernels(name: Device) -> bool:
    """Whether the kernels are used on the device called `name`, that is on a GPU with Triton.

    The table of rows is then on the device.

    Raises:
        SurroundingsError: a GPU is asked for, and there is none.
    """
    return on_gpu(name) and find_spec("triton") is not None


def multiplies_halves(device: torch.device) -> bool:
    """Return whether products in bfloat16 are fast on a device: on GPUs that have them in hardware."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
