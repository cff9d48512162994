from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

class UnsupportedPagesError(Exception): ...

class Workspace:
    @property
    def address(self) -> int: ...
    @property
    def is_small(self) -> bool: ...
    def take_page_counts(self) -> tuple[int, int]: ...

#: Offset, bytes, codec, width, how values are stored, level of a value, whether strings are requested as codes, their
#: expected bytes, and how pages of another codec are decompressed.
Chunk: TypeAlias = tuple[int, int, int, int, int, int, bool, int, Callable[[pa.Buffer, int], Any] | None]

#: Offset, bytes, codec, width, definition and repetition level of a value, definition level of an element
#: of the innermost list, entries, expected bytes of strings, and how pages of another codec are decompressed.
NestedChunkTuple: TypeAlias = tuple[
    int, int, int, int, int, int, int, int, int, int, Callable[[pa.Buffer, int], Any] | None
]

#: A descriptor, bytes, or a function(offset, size) that returns bytes.
Source: TypeAlias = int | bytes | memoryview | Callable[[int, int], Any]

class ColumnBatch:
    def __init__(
        self, source: Source, groups: list[list[Chunk]], group_rows: list[int], keep: NDArray[np.uint64] | None = None
    ) -> None: ...
    def decode(self, space: Workspace) -> None: ...
    def finish(self, schema: pa.Schema) -> pa.RecordBatch | None: ...

class ColumnStretches:
    def __init__(self, source: Source, chunks: list[Chunk], num_rows: int, window: int, most_kept: int) -> None: ...
    def read(
        self, space: Workspace, first: int, stop: int, keep: NDArray[np.uint64] | None = None
    ) -> tuple[int, list[tuple[Any, ...] | None]]: ...

class NestedStretches:
    def __init__(
        self, source: Source, chunks: list[NestedChunkTuple], num_rows: int, window: int, most_kept: int
    ) -> None: ...
    def read(
        self, space: Workspace, first: int, stop: int, keep: NDArray[np.uint64] | None = None
    ) -> list[tuple[Any, ...] | None]: ...

class Levels:
    def lists(
        self, repetition: int, slot: int, there: int, element: int
    ) -> tuple[int, int, int, pa.Buffer | None, pa.Buffer] | None: ...
    def structs(self, repetition: int, slot: int, there: int) -> tuple[int, int, pa.Buffer | None]: ...

def copied_levels(definitions: NDArray[np.uint8], repetitions: NDArray[np.uint8], most_repetition: int) -> Levels: ...

class Column:
    def __init__(
        self, space: Workspace, source: Source, offset: int, size: int, codec: int, most_level: int,
        num_rows: int, decompress: Callable[[pa.Buffer, int], Any] | None = None,
    ) -> None: ...  # fmt: skip
    def text_page(self) -> tuple[int, pa.Buffer | None, int, pa.Buffer, pa.Buffer] | None: ...

class ValueTest:
    def __init__(
        self, kind: int, is_float: bool = False, least: float = 0, most: float = 0, with_nan: bool = False,
        keys: NDArray[np.uint8] | bytes | None = None, ends: NDArray[np.int32] | None = None, is_wide: bool = False,
        with_key: bool = False, is_negated: bool = False, with_null: bool = False, parts: tuple[ValueTest, ...] = (),
    ) -> None: ...  # fmt: skip
    def fits_form(self, width: int, stored: int) -> bool: ...
    def address_for(self, width: int, stored: int) -> int: ...
    def is_excluded(self, source: Source, offset: int, size: int, width: int, stored: int = 0) -> bool: ...
    def find_rows(
        self, source: Source, columns: tuple[int, int], offsets: tuple[int, int], width: int,
        num_rows: int, rows: NDArray[np.uint64], stored: int = 0,
    ) -> bool: ...  # fmt: skip

def read_columns(
    space: Workspace, source: Source, chunks: list[Chunk], num_rows: int, keep: NDArray[np.uint64] | None = None
) -> tuple[int, list[tuple[Any, ...] | None]]: ...
def read_joined(
    space: Workspace, source: Source, columns: list[list[Chunk]], group_rows: list[int]
) -> list[tuple[Any, ...] | None]: ...
def page_values(source: Source, offset: int, size: int, num_values: int) -> int: ...
def read_passing(
    space: Workspace,
    source: Source,
    chunk: Chunk,
    num_rows: int,
    values: ValueTest,
    has_values: bool,
    passed: NDArray[np.uint64],
    keep: NDArray[np.uint64] | None = None,
) -> tuple[int, tuple[Any, ...] | None] | None: ...
def read_nested(
    space: Workspace,
    source: Source,
    chunks: list[NestedChunkTuple],
    num_rows: int,
    keep: NDArray[np.uint64] | None = None,
) -> list[tuple[Any, ...] | None]: ...
def has_zstd() -> bool: ...
def has_libdeflate() -> bool: ...
def decompress_gzip(data: bytes | memoryview, size: int) -> bytes | None: ...
def decompress_snappy(data: bytes | memoryview, size: int, is_text: bool) -> bytes | None: ...
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
