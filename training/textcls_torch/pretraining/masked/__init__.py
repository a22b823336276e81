"""Pre-training by masked words with a mixing layer."""
