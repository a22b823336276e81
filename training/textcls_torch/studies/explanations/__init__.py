"""Explanations beside the field's methods."""
