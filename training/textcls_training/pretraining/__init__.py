"""Pre-training: what texts without labels teach, by themselves.

`texts` reads them, `run` gives them to the objective that was chosen: `cooccurrence` and `masked` learn vectors of
words, `clusters` learns which texts go together, `label_names` which label's name is nearest. What the last two learn
is a model of labels that nobody gave: `saved_model` writes it.
"""
