"""Two classifiers on the same labelled rows: is one better, by how much, and on which texts do they differ?

paired.py   statistics of paired answers: McNemar's test, and confidence intervals of the differences
figures.py  these statistics, for one label per row or for several
sides.py    what can be compared: a model file, a file of answers, a service
compare.py  the comparison, which `textcls compare` and `textcls.compare` run
words.py    which words changed sides between two models
"""
