"""Metric tensor attention: a plain PyTorch twin and fused Triton kernels behind one function.

`import textcls_kernels` needs PyTorch alone; Triton is imported when its kernels are first asked for.
"""

from textcls_kernels.metric_attention import metric_attention, resolve_impl, seed_metric_attention
from textcls_kernels.packing import pack_metric, unpack_metric
from textcls_kernels.texts import PackedTexts, packed_texts

__all__ = [
    "PackedTexts",
    "metric_attention",
    "pack_metric",
    "packed_texts",
    "resolve_impl",
    "seed_metric_attention",
    "unpack_metric",
]
