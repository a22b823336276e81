"""Training of textcls models, from rows to the file: data, compiled loops, calibration, export.

Needs `pip install 'textcls[train]'`. `textcls_torch` is what needs PyTorch; only `torch_parts` accesses it.
"""
