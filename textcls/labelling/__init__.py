"""Which texts to label next, and the page on which a person labels them.

vectors.py   texts as hashed TF-IDF vectors, without a model
choice.py    which texts teach most: a pure function of vectors and probabilities
suggest.py   the same of texts and a model: what `textcls suggest` calls
answers.py   the file of answers, on disk before anybody is told so
progress.py  what is known of the accuracy, and whether more labels would change much
learner.py   what a model has learned meanwhile, from a process of its own
matching.py  which texts have which answers, and which are copies of each other
proposals.py what is proposed for a text
session.py   who is asked what: leases, answers, undo
http.py      the page and its few requests, on this machine alone

Training is not imported here: `textcls label` brings a learner from `textcls_training.labelling`.
"""
