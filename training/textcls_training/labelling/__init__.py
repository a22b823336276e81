"""Learning beside the page of `textcls label`.

learn.py     from answers to a model, the texts to ask for next, and what held-out answers say
process.py   the same in a process of its own, which ends with the one that asked
"""
