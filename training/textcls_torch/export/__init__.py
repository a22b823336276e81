"""The export of trained PyTorch models."""
