"""Metric tensor attention; `textcls_kernels` has what is public of it."""
