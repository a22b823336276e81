"""A training from rows to the model file."""
