"""The model as a table: what each word, short sequence of words, and piece of a word says of each label by itself.

A model file holds hashes and not words, so the words come from elsewhere: from texts, from a list, or from the one that
`textcls train --keep-words` has left beside the model.
"""
