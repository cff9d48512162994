from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

class DamagedPageError(Exception): ...
class TooLongError(Exception): ...

_Values: TypeAlias = tuple[int, list[Any], list[tuple[int, int, Any]]]

def check_texts(offsets: Any, data: Any, n: int, is_wide: bool) -> None: ...

class Page:
    def __init__(
        self,
        layout: int,
        num_rows: int,
        data_size: int,
        layers: Sequence[int],
        codings: Sequence[tuple[Any, ...]],
        nodes: tuple[int, int, int, int],
        numbers: Mapping[str, int],
        outer: Sequence[int] | None,
        fields: Sequence[tuple[int, int, bool]],
    ) -> None: ...
    def open_chunks(self, words: Any, index: Any, depth: int) -> None: ...
    def open_rows(self, index: Any) -> None: ...
    def open_constant(self, value: bytes | None, rep: Any, definition: Any, num_rep: int, num_def: int) -> None: ...
    def fill_levels(self, level: int) -> None: ...
    def plan(self, ranges: NDArray[np.int64], gap: int) -> list[tuple[int, int]]: ...

class Column:
    def __init__(
        self,
        layers: Sequence[tuple[bool, bool]],
        bits: int,
        is_wide: bool,
        list_sizes: Sequence[int],
        children: Sequence[tuple[int, bool, Sequence[int]]],
    ) -> None: ...
    def read_dictionary(self, page: Page, data: Any) -> None: ...
    def append(self, page: Page, ranges: NDArray[np.int64], parts: Sequence[tuple[int, Any]]) -> None: ...
    def finish(self) -> tuple[list[tuple[int, int, Any, Any]], _Values, list[_Values]]: ...
