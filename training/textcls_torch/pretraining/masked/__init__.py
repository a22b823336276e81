"""Masked words under a mixing layer."""
