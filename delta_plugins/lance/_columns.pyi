from typing import Any

import numpy as np
from numpy.typing import NDArray

class DamagedColumnError(Exception): ...

def descriptor_rows(data: Any) -> int: ...
def parse_column(
    data: Any, file_size: int, most_rows: int
) -> tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
]: ...
