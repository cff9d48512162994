from typing import TypeAlias, TypeVar

from delta_core.kernels.arrow_buffers import StringBuffers

_T = TypeVar("_T")
Parts: TypeAlias = list[tuple[StringBuffers | None, int]]

def decoded(parts: Parts, size: int) -> tuple[list[str | None], list[int]]: ...
def uris(
    parts: Parts, size: int, before: bytes, behind: bytes, percents: bool, colons: bool
) -> tuple[list[str | None], list[int]]: ...
def moved_together(lists: list[list[_T]]) -> list[_T]: ...
