"""The commands that train: read options, make one call, show the result."""
