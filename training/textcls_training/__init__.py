"""Training of textcls models: data, model, loop, calibration, export.

Needs PyTorch: `pip install 'textcls[train]'`.
"""
