"""What needs PyTorch: the reference trainer, mixing layers, objectives without labels, and studies of them."""
