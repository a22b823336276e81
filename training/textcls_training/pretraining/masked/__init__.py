"""The objective of masked words: words of a text are hidden, and guessed from the others.

`masking` hides them, `model` turns the rest into contexts, `softmax` guesses, `trainer` learns, `held_out` measures.
"""
