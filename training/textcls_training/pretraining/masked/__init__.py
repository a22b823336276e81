"""The objective of masked words: words of a text are hidden, and guessed from the others.

`masking` hides them, `model` makes contexts of what is left, `softmax` guesses, `trainer` learns, `held_out` measures.
"""
