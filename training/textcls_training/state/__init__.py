"""The stored state of a training: checkpoints of its fits while it runs, and what another training continues from.

`checkpoints` says what a fit keeps and where, `arrays_file` is the format, `folder` the folder of one training.
"""
