from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Binary: TypeAlias = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]

def to_json(metadata: Binary, value: Binary, rows: int) -> tuple[bytes, NDArray[np.int64]]: ...
def unshred(metadata: Binary, slot: tuple[Any, ...]) -> tuple[bytes, NDArray[np.int64]]: ...
