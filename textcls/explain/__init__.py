"""What explains answers, and the model as a whole."""
