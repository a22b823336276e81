"""Embeddings, mixing layers, attention and the classifier of a view, as PyTorch modules."""
