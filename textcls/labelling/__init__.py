"""Which texts to label next, and the page on which a person labels them.

vectors.py   texts as hashed TF-IDF vectors, without a model
choice.py    which texts are most informative: a pure function of vectors and probabilities
suggest.py   the same for texts and a model: what `textcls suggest` runs
answers.py   the file of answers, which are on disk before they are confirmed
progress.py  what is known of the accuracy, and whether more labels would change much
learner.py   what a model has learned so far, in a process of its own
matching.py  which texts have which answers, and which are copies of each other
proposals.py what is proposed for a text
session.py   who is asked what: leases, answers, undo
http.py      the page and its few requests, on this machine only

Training is not imported here: `textcls label` gets a learner from `textcls_training.labelling`.
"""
