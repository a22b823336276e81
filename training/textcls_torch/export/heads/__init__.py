"""Scoring heads with constants computed by PyTorch."""
