"""A training from rows to the file."""
