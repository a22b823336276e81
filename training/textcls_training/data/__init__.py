"""Labelled texts as training reads them.

`labelled_texts` is the input; `corpus` contains its tokens, `feature_space` their hashed features, `dataset` the tokens
with labels and human rationales; `split` holds validation rows out, `batches` orders the texts of an epoch.
"""
