"""Global explanation: what a model goes by over many texts, the terms for and against each label, and shortcuts.

Texts are read one at a time and forgotten; what is kept is a row of sums for each word and each pair of neighbours,
`CELLS` numbers at the most. Words are compared in lower case.

    explainer.py   texts in, a global explanation out: what `textcls inspect --evidence` calls
    sums.py        attributions summed by word and by pair
    decisions.py   which words alone decide answers
    summary.py     what was found
"""
