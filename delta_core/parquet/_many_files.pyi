from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

def footer_key(footer: bytes | memoryview) -> tuple[bytes, bytes] | None: ...

class Runs:
    def __init__(
        self,
        layouts: Iterable[
            tuple[
                bytes,
                bytes,
                Sequence[tuple[int, int, int, int, int]],
                Sequence[tuple[Any, ...]],
                Sequence[tuple[int, int, int, int, int, int, int, Sequence[tuple[int, int, int]]]],
            ]
        ],
        codecs: dict[int, Callable[[pa.Buffer, int], Any]],
        whole_bytes: int,
        blocks: int,
    ) -> None: ...
    def read(
        self, space: int, paths: list[bytes], sizes: NDArray[np.int64], most_rows: int, most_bytes: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def column(self, number: int, i: int) -> tuple[pa.Buffer | None, int, list[pa.Buffer]]: ...
    def leaf(
        self, number: int, i: int
    ) -> tuple[pa.Buffer, pa.Buffer, int, int, int, pa.Buffer | None, list[pa.Buffer]]: ...
