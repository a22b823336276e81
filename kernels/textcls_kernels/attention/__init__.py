"""Metric tensor attention; `textcls_kernels` exports its public part."""
