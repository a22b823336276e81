"""Numbers of the model's definition that also those need who leave PyTorch alone."""

from typing import Final

# The smallest divisor of what is about 1.
TINY: Final = 1e-12
# The smallest square of a pooled norm. Beside out-of-vocabulary tokens of score 0, in-vocabulary ones of -16 have
# probabilities of 1e-7 and squares of 1e-14: far above it. The gradient divides by the square, and 1e30 is still a
# number of 32 bits.
LEAST_SQUARE: Final = 1e-30
# How long the longest vector of a file becomes. AdamW's steps have one length, so this sets how fast query and head
# learn.
VECTOR_LENGTH: Final = 10.0
