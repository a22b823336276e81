"""The objective of mutual information: two views of a text each predict its cluster, and should predict the same one.

`objective` is the maths, `start` finds the first clusters, `trainer` learns by the objective, `names` names the
resulting clusters, `run` does it all: texts in, a model whose labels are clusters out.
"""
