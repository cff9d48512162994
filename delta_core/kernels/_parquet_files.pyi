from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

def footer_key(footer: bytes | memoryview) -> tuple[bytes, bytes] | None: ...

class Run:
    def __init__(self, schema: bytes, metadata: bytes, columns: Iterable[tuple[int, int, int, int]]) -> None: ...
    def read(
        self, paths: list[bytes], sizes: NDArray[np.int64], most_rows: int, most_bytes: int
    ) -> NDArray[np.int64]: ...
    def column(self, i: int) -> tuple[pa.Buffer | None, int, list[pa.Buffer]]: ...
