"""Everything that needs PyTorch: the reference trainer, mixing layers, and objectives without labels."""
