"""Labelled texts as training reads them.

`labelled_texts` is what is given; `corpus` its tokens, `feature_space` the hashed features of these, `dataset` both
with labels and human rationales; `split` holds validation rows out, `batches` orders the texts of an epoch.
"""
