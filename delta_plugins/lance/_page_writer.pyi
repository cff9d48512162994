from collections.abc import Sequence
from typing import Any

class UnwritablePageError(Exception): ...

class PageCollector:
    def __init__(
        self,
        bits: int,
        is_wide: bool,
        list_sizes: Sequence[int],
        layers: Sequence[bool],
        code_bits: int,
        most_codes: int,
    ) -> None: ...
    @property
    def num_bytes(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    def append(
        self,
        layers: Sequence[tuple[int, int, int, int, int]],
        values: tuple[int, int, int, bool, Sequence[tuple[int, int, int]]],
        n: int,
    ) -> None: ...
    def write(
        self,
        has_constants: bool,
        has_large_chunks: bool,
        scheme: int,
        codec: Any,
        structure: int,
        wants_fsst: bool,
        needs_fsst: bool,
        splits_bytes: bool,
        run_threshold: float,
    ) -> tuple[dict[str, Any], list[Any]]: ...
