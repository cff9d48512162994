from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Rows: TypeAlias = NDArray[np.int32]
_Mask: TypeAlias = NDArray[np.uint64]

def check_rows(rows: _Rows, num_rows: int) -> None: ...
def fixed(source: Any, offset: int, length: int, width: int, rows: _Rows, out: Any) -> None: ...
def bits(source: Any, offset: int, length: int, rows: _Rows | None, out: Any) -> int: ...
def count_kept(keep: _Mask, length: int) -> int: ...
def kept_indices(keep: _Mask, length: int) -> _Rows: ...
def kept_fixed(source: Any, offset: int, length: int, width: int, keep: _Mask, out: Any) -> None: ...
def kept_bits(source: Any, offset: int, length: int, keep: _Mask, out: Any) -> int: ...
def text(
    offsets: Any,
    data: Any,
    first: int,
    length: int,
    codes: Any,
    codes_first: int,
    valid: Any,
    valid_offset: int,
    num_rows: int,
    rows: _Rows | None,
) -> tuple[pa.Buffer, pa.Buffer]: ...
