"""The configuration of a training: every option once, without PyTorch.

`options` defines what an option is, and checks its values; the fields of `settings.TrainConfig` are the options, from
which the command line, the Python function and the scikit-learn estimator take names, kinds, defaults, help and checks;
`resolve` decides what is left open, by documented rules based on the training texts.
"""
