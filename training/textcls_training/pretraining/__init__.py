"""Pre-training: what can be learned from texts without labels.

`texts` reads them, `run` passes them to the chosen objective: `cooccurrence` makes vectors of words, `clusters` learns
which texts belong together, `label_names` which label's name is nearest. The last two learn a model with labels that
were not given: `saved_model` writes it.
"""
