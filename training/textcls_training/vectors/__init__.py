"""Vectors of words: knowledge from outside the labelled rows, as a file that training can read (`--vectors`).

`word_vectors` says what they are, `file` how they stand in a file, `build` makes them of raw vectors; these come from
`text_files` (word2vec, GloVe, fastText), from `model2vec` folders, or from `distil`, which asks a sentence encoder.
None of this needs PyTorch; only a teacher does.

Shapes: V words, D width of a vector.
"""
