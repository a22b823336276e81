"""The device of a training: compiled loops on the CPU, or the reference if PyTorch finds something better."""

from textcls_training.config.resolve import Trainers
from textcls_training.config.settings import Device
from textcls_training.torch_parts import torch_part


def on_gpu(impl: Trainers, name: Device) -> bool:
    """Return whether a trainer takes its steps on a GPU, on the device called `name`.

    Raises:
        SurroundingsError: a GPU is asked for, and there is none.
    """
    return impl == "reference" and bool(torch_part("fit.device").on_gpu(name))


def device_type(name: Device) -> str:
    """Return PyTorch's type of the device called `name`: "cpu" or "cuda".

    Raises:
        SurroundingsError: a GPU is asked for, and there is none.
    """
    found: str = torch_part("fit.device").resolve_device(name).type
    return found
