"""Objectives without labels that need PyTorch."""
