"""A saved model: its file, its features, and the one way to ask it."""
