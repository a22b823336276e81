"""Ablations of views and mixing layers, measured and drawn."""
