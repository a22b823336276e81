"""Numbers of the model's definition that are also needed without PyTorch."""

from typing import Final

# The smallest divisor of quantities that are about 1.
TINY: Final = 1e-12
# The smallest square of a pooled norm. Beside out-of-vocabulary tokens with score 0, in-vocabulary ones with -16 have
# probabilities of 1e-7 and squares of 1e-14: far above it. The gradient divides by the square, and 1e30 still fits into
# a 32-bit number.
LEAST_SQUARE: Final = 1e-30
# The length to which the longest vector of a file is scaled. AdamW's steps have one length, so this determines how fast
# query and head learn.
VECTOR_LENGTH: Final = 10.0
