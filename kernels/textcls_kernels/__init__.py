"""Metric tensor attention: a plain PyTorch twin and fused Triton kernels behind one function. Also, for training on a
GPU, tables of rows (`rows`) and the readout with its loss (`readout`).

`import textcls_kernels` needs only PyTorch; Triton is imported when its kernels are first used.
"""

from textcls_kernels.attention.metric_attention import metric_attention, seed_metric_attention
from textcls_kernels.attention.packing import pack_metric, unpack_metric
from textcls_kernels.attention.texts import PackedTexts, packed_texts
from textcls_kernels.impl import resolve_impl

__all__ = [
    "PackedTexts",
    "metric_attention",
    "pack_metric",
    "packed_texts",
    "resolve_impl",
    "seed_metric_attention",
    "unpack_metric",
]
