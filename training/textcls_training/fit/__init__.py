"""Learning: rows in, a trained model out. Nothing here depends on the form of a saved model.

`trainer` is one fit, step by step; `cross_fit` validates fits on train-valid splits and trains on all rows; `selection`
chooses the epoch, `calibration` the ensemble weights and the temperature. `callbacks` are told of progress, which
`progress` draws; `interrupt` ends a training early; `threads` keeps it reproducible.
"""
