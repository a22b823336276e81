"""The exponential of many numbers at once, which vector instructions compute: `np.exp` is called number by number.

exp(x) = 2^n exp(r) with n the integer nearest to x / log 2 and |r| <= log(2) / 2. exp(r) is approximated by a
polynomial after Cody and Waite's reduction, with the coefficients of Cephes' `expf` (Moshier 1989); 2^n is written as
the exponent of a 32-bit number. Relative error: 1e-7.
"""

from typing import Final

import numpy as np

from textcls_training.data.arrays import Float32
from textcls_training.data.compiling import compiled

# Beyond these, the result would not be a normal 32-bit number.
_LEAST, _MOST = np.float32(-87), np.float32(88)
_PER_LOG2: Final = np.float32(1.44269504)
# log 2 in two parts; n times the first is exact.
_LOG2_HIGH, _LOG2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_C0, _C1, _C2 = np.float32(5.0000001201e-1), np.float32(1.6666665459e-1), np.float32(4.1665795894e-2)
_C3, _C4, _C5 = np.float32(8.3334519073e-3), np.float32(1.3981999507e-3), np.float32(1.9875691500e-4)
_HALF, _ONE = np.float32(0.5), np.float32(1)
_BIAS, _MANTISSA = np.int32(127), np.int32(23)


@compiled
def exponential(x_X: Float32) -> None:
    """Replace each number by its exponential; below -87 that of -87 is used, above 88 that of 88."""
    bits_X = np.empty(len(x_X), np.int32)
    for i in range(len(x_X)):
        x = min(max(x_X[i], _LEAST), _MOST)
        n = np.floor(x * _PER_LOG2 + _HALF)
        r = x - n * _LOG2_HIGH - n * _LOG2_LOW
        tail = ((((_C5 * r + _C4) * r + _C3) * r + _C2) * r + _C1) * r + _C0
        x_X[i] = tail * r * r + r + _ONE
        bits_X[i] = (np.int32(n) + _BIAS) << _MANTISSA
    power_X = bits_X.view(np.float32)
    for i in range(len(x_X)):
        x_X[i] *= power_X[i]
