"""Labels by their names alone: each text gets the label whose name is nearest to it, and an ordinary model learns that.

`descriptions` reads the names, `nearest` is the maths, `run` does it all: texts and names in, a model out.
"""
