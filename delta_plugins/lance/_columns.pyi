from typing import Any

class DamagedColumnError(Exception): ...

def descriptor_rows(data: Any) -> int: ...
def parse_column(
    data: Any, file_size: int
) -> tuple[
    list[int],
    list[list[tuple[int, int]]],
    list[tuple[str, bytes] | None],
    list[tuple[int, int]],
    tuple[str, bytes] | None,
]: ...
