"""From the bytes of a request about texts to those of its answer.

`schemas` defines the form of both, `parsing` reads the request and `answers` makes the answer; `micro_batching` answers
requests together that arrive together.
"""
