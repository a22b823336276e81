"""Fused GPU kernels for textcls. Holds none yet: training runs on plain PyTorch everywhere."""
