import numpy as np
from numpy.typing import NDArray

def assign(
    num_records: NDArray[np.int64], valid: NDArray[np.uint8], mark: int, base: NDArray[np.int64]
) -> tuple[int, int]: ...
