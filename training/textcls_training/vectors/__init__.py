"""Vectors of words: knowledge from outside the labelled rows, as a file that training can read (`--vectors`).

`word_vectors` defines what they are, `file` their file format, `build` makes them from raw vectors; these come from
`text_files` (word2vec, GloVe, fastText), from `model2vec` folders, or from `distil`, which asks a sentence encoder.
Only a teacher needs PyTorch.

Shapes: V words, D width of a vector.
"""
