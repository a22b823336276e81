"""The objective of mutual information: two views of a text name its cluster, and are to name the same one.

`objective` is the maths, `start` finds the first clusters, `trainer` learns by the objective, `names` names what came
of it, `run` is all of it: texts in, a model whose labels are clusters out.
"""
