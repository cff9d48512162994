from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

class Exported:
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class Parser:
    def __init__(
        self, kinds: Sequence[tuple[Any, ...]], skipped: Sequence[str], wanted: Collection[str] | None
    ) -> None: ...
    def feed(
        self, version: int, data: bytes | bytearray | memoryview | pa.Buffer
    ) -> tuple[int, int, int, str, bytes] | None: ...
    def feed_files(
        self, paths: Sequence[bytes], versions: npt.NDArray[np.int64], threads: int
    ) -> tuple[int, int, int, str, bytes] | None: ...
    def take(self, schemas: Sequence[pa.Schema]) -> list[list[Exported]]: ...

class Rows:
    def __init__(self, source: tuple[Any, ...]) -> None: ...

def format_rows(head: bytes, tail: bytes, batches: list[Rows]) -> bytes | tuple[str, int, int, bytes]: ...

class Fields:
    def __init__(self, fields: Sequence[tuple[tuple[str, ...], str, int, int]], schema: pa.Schema) -> None: ...
    def read(
        self,
        rows: int,
        first: int,
        validity: pa.Buffer | None,
        offsets: pa.Buffer | None,
        text: pa.Buffer | None,
        large: bool,
        threads: int,
    ) -> Exported: ...
