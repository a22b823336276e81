"""Teachers that are trained with PyTorch."""
