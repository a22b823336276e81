"""Training of textcls models, from rows to the file: data, compiled loops, calibration, export.

Needs `pip install 'textcls[train]'`. What needs PyTorch is `textcls_torch`, which is reached by `torch_parts` alone.
"""
