"""Studies of what needs PyTorch."""
