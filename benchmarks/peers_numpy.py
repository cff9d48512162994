"""What plugins compute in Numba, in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.ours import Work
from benchmarks.sums import summing
from delta_core.api import Call, Column, Schema, bind
from delta_core.engines.arrow import engine


def checksums(table: Path, small: Path) -> Work:
    """Sum rows by ``xxhash64`` of the Arrow engine, which goes word by word over all rows."""
    types = {Column(("id",)): pa.int64(), Column(("category",)): pa.string()}
    schema = Schema.from_arrow(pa.schema([(leaf.path[0], t) for leaf, t in types.items()]))
    compiled = engine(str(table)).evaluator.compile(bind(Call("xxhash64", tuple(types)), schema, {}), types)

    def checksum(*columns: Any) -> Any:
        by_name = dict(zip(types, columns, strict=True))
        return compiled([by_name[leaf] for leaf in compiled.leaves], len(columns[0]))

    return summing(checksum, table, small)
