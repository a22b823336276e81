"""Kernels run in Triton's interpreter here, which must be asked for before Triton's first import."""

import importlib.util
import os

import torch

if importlib.util.find_spec("triton") is not None and not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
