"""Teachers that learn by PyTorch."""
