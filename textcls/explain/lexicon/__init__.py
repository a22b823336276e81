"""The model as a table: what each word, short sequence of words, and piece of a word says about each label by itself.

A model file contains hashes and not words, so the words come from elsewhere: from texts, from a list, or from the one
that `textcls train --keep-words` has left beside the model.
"""
