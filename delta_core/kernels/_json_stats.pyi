from collections.abc import Sequence

import pyarrow as pa

class Exported:
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

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
