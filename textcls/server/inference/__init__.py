"""From the bytes of a request about texts to those of its answer.

`schemas` are the forms of both, `parsing` reads the one and `answers` makes the other; `micro_batching` lets the model
answer those together that came together.
"""
