"""Pre-training: what texts without labels teach, by themselves.

`texts` reads them, `run` gives them to the objective that was chosen, a package each: `masked` learns vectors of words.
"""
