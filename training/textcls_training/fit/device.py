"""Where a training runs: the compiled trainer on the CPU, the reference where PyTorch finds something better."""

from typing import NamedTuple

from textcls_training.config.resolve import Trainers
from textcls_training.config.settings import Device
from textcls_training.torch_parts import torch_part


class Place(NamedTuple):
    """Where steps are taken.

    Attributes:
        on_gpu: whether on a GPU.
        fused_metric: whether one fused kernel there gives metric scores and pools.
    """

    on_gpu: bool
    fused_metric: bool


def place_of(impl: Trainers, name: Device) -> Place:
    """Return where a trainer takes its steps on the device called `name`.

    Raises:
        SurroundingsError: a GPU is asked for, and there is none.
    """
    if impl == "compiled":
        return Place(on_gpu=False, fused_metric=False)
    device = torch_part("fit.device")
    return Place(device.on_gpu(name), device.runs_kernels(name))


def device_type(name: Device) -> str:
    """Return what PyTorch calls the kind of the device called `name`: "cpu" or "cuda".

    Raises:
        SurroundingsError: a GPU is asked for, and there is none.
    """
    found: str = torch_part("fit.device").resolve_device(name).type
    return found
