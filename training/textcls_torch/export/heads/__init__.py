"""Scoring heads whose constants PyTorch computes."""
