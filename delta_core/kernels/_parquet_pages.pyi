from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

class UnsupportedPagesError(Exception): ...

class Workspace:
    @property
    def is_small(self) -> bool: ...

class Column:
    @property
    def num_kept(self) -> int: ...
    def __init__(
        self, space: Workspace, source: int | bytes | memoryview, offset: int, size: int, codec: int, width: int, most_level: int,
        num_rows: int, keep: NDArray[np.uint64] | None = None,
        decompress: Callable[[pa.Buffer, int], Any] | None = None,
    ) -> None: ...  # fmt: skip
    def values(self) -> tuple[pa.Buffer | None, int, pa.Buffer]: ...
    def codes(self) -> tuple[pa.Buffer | None, int, pa.Buffer, pa.Buffer, pa.Buffer, int]: ...
    def text(self, expected: int) -> tuple[pa.Buffer | None, int, pa.Buffer, pa.Buffer]: ...
    def text_page(self) -> tuple[int, pa.Buffer | None, int, pa.Buffer, pa.Buffer] | None: ...

def decompress_snappy(data: bytes | memoryview, size: int) -> bytes | None: ...
