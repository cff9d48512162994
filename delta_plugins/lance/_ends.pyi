from typing import Any

import numpy as np
from numpy.typing import NDArray

def read_ends(
    ends: Any, ranges: NDArray[np.int64], adjustment: int, limit: int, is_wide: bool
) -> tuple[Any, Any, int, list[int]]: ...
def decode_texts(table: bytes, offsets: Any, data: Any, n: int, is_wide: bool) -> tuple[Any, Any]: ...
