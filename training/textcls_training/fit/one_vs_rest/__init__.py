"""The one-vs-rest trainer: a linear support vector machine for each label, by dual coordinate descent.

It is for texts with several labels. Its features are those of the hashed views, TF-IDF of words, pairs of words and
character n-grams; each distinct token of a text counts once, however often it comes. A label's machine is the one of
least squared hinge loss, which has one answer whatever the seed, and ranks labels of few rows better than gradient
steps do; where rows are many and short, these are ahead (training/README.md). `features` makes rows of numbers of
texts, `solver` has the loops, `trainer` is the fit. Where a text has one label, `beside` sets them beside the views.
"""
