"""Two classifiers on the same labelled rows: is one better, by how much, and on which texts do they differ?

paired.py   what paired answers say: McNemar's test, and intervals of the differences
figures.py  these, of one label a row or of several
sides.py    what can be compared: a model file, a file of answers, a service
compare.py  the comparison: what `textcls compare` calls, and `textcls.compare` is
words.py    which words changed sides between two models
"""
