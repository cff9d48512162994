import numpy as np
from numpy.typing import NDArray

def may_have_any(
    filters: bytes, ends: NDArray[np.int64], keys: bytes, key_ends: NDArray[np.int64], found: NDArray[np.uint8]
) -> int: ...
