"""Pre-training: what texts without labels teach, by themselves.

`texts` reads them, `run` gives them to the objective that was chosen: `cooccurrence` and `masked` learn vectors of
words, `clusters` learns which texts go together.
"""
