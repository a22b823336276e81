"""Metric tensor attention: a plain PyTorch twin and fused Triton kernels behind one function.

`import textcls_kernels` needs PyTorch alone; Triton is imported when its kernels are first asked for.
"""

from textcls_kernels.metric_attention import metric_attention, resolve_impl, seed_metric_attention
from textcls_kernels.packing import pack_metric, unpack_metric

__all__ = ["metric_attention", "pack_metric", "resolve_impl", "seed_metric_attention", "unpack_metric"]
