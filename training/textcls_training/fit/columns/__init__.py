"""What columns beside the text add to the logits of a text, fitted on held-out rows."""
