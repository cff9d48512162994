from delta_core.kernels.arrow_buffers import StringBuffers

def string_codes(
    parts: list[tuple[StringBuffers | None, int]], outs: list[tuple[int, int]], most_bytes: int
) -> tuple[bytes, bytes] | None: ...
