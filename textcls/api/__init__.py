"""The Python functions for more than asking a model; each imports what it needs when it is called."""
