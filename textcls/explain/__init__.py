"""Explanations of answers, and of the model as a whole."""
