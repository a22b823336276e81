"""The models: an embedding and a classifier for each view of a text, and their ensemble.

`classifier` is one view from token vectors to logits; `hashed_embedding` and `bit_embedding` are the two ways to a
token's vector, behind the protocol of `embedding`; `ensemble` is a trained model of one or more views. `ops` is the
maths as pure functions, `mixing` the layers in which tokens see each other, `initial_weights` how every weight begins.
"""
