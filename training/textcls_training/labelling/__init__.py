"""Learning in the background of the page of `textcls label`.

learn.py     from answers to a model, the texts to ask about next, and the results on held-out answers
process.py   the same in a separate process, which ends with its parent
"""
