from collections.abc import Sequence
from typing import Any

from delta_plugins.lance.files.write_requests import Requests

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
        multiple: int,
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
    def write(self, is_later: bool, requests: Requests) -> list[tuple[dict[str, Any], list[Any]]]: ...
