"""A saved model: its file, its features, and the single path of prediction."""
