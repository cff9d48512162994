from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def split_manifest(source: Buffer) -> tuple[bytes, dict[str, Any]]: ...

class Segments:
    counts: NDArray[np.int64]
    def __init__(
        self, source: Buffer, starts: NDArray[np.int64], sizes: NDArray[np.int64], has_versions: bool
    ) -> None: ...
    def numbers(self, sequence: int, start: int, stop: int) -> NDArray[np.uint64]: ...
    def ranges(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]: ...
