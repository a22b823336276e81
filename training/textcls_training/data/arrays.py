"""Names of array types."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
