"""Bounds of encoded values: files store another form, so their footers don't have them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from delta_core.engines.engine import Engine
from delta_core.engines.interface import Compiled
from delta_core.engines.records import ColumnStatistics, FileRead, WrittenFile
from delta_core.expressions.ast import Leaf, leaves
from delta_core.kernel.plugins.encodings import checked_decode
from delta_core.kernel.plugins.rules import ColumnEncoding
from delta_core.kernel.write.layout import arrow_type
from delta_core.kernel.write.plan import WritePlan
from delta_core.kernels import compute as pc
from delta_core.schema.fields import Path
from delta_core.schema.types import Field, StructType

__all__ = ["bounded_types", "with_encoded_bounds"]


def bounded_types(plan: WritePlan) -> dict[Path, pa.DataType]:
    """Return the encoded columns, by physical path, whose values have bounds in the log, with the values' types.

    Columns of floats are left out, since a NaN has no place among bounds, and so are types without an order.
    """
    table = plan.table
    found: dict[Path, pa.DataType] = {}
    for name, rule in table.encodings.items():
        path = table.column_map.physical_path(table.schema, (name,))
        field = table.schema.get(name)
        if rule.statistics and path in plan.statistics and field is not None:
            t = arrow_type(field.type, table.types)
            if _has_bounds(t):
                found[path] = t
    return found


def _has_bounds(t: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(t) or types.is_string(t) or types.is_date32(t) or types.is_timestamp(t) or types.is_decimal(t)
    )


def with_encoded_bounds(
    engine: Engine, plan: WritePlan, files: Sequence[WrittenFile]
) -> list[tuple[ColumnStatistics, ...]]:
    """Return the statistics of files that were written, with bounds of encoded values.

    Parameters
    ----------
    engine : Engine
        The engine that wrote the files.
    plan : WritePlan
        The plan of the write.
    files : sequence of WrittenFile
        The files.

    Notes
    -----
    Reads and decodes the columns of `bounded_types` from the files; nothing is read without such columns.
    """
    found = _Bounds(engine, plan, bounded_types(plan)) if files else None
    if found is None or not found.rules:
        return [f.statistics for f in files]
    found.read([f.path for f in files], [f.size for f in files])
    return [tuple(found.of(i, column) for column in f.statistics) for i, f in enumerate(files)]


class _Bounds:
    """The least and the greatest decoded values of columns, by file."""

    def __init__(self, engine: Engine, plan: WritePlan, types: Mapping[Path, pa.DataType]) -> None:
        table = plan.table
        self._engine = engine
        #: By the number of the file and the physical path: the least and the greatest value.
        self._found: dict[tuple[int, Path], tuple[Any, Any]] = {}
        self._lock = threading.Lock()
        self.rules: dict[Path, ColumnEncoding] = {
            table.column_map.physical_path(table.schema, (n,)): rule
            for n, rule in table.encodings.items()
            if table.column_map.physical_path(table.schema, (n,)) in types
        }
        self._table_types = table.types
        self._stored = pa.schema([(p[0], arrow_type(r.stored, table.types)) for p, r in self.rules.items()])
        self._columns = StructType([Field(p[0], r.stored) for p, r in self.rules.items()])
        self._decode: dict[Path, Compiled] = {}
        for path, rule in self.rules.items():
            leaf_types: dict[Leaf, pa.DataType] = dict.fromkeys(leaves(rule.decode), self._stored.field(path[0]).type)
            self._decode[path] = engine.evaluator.compile(checked_decode(rule), leaf_types, plan.functions)

    def read(self, paths: list[str], sizes: Sequence[int | None]) -> None:
        read = FileRead(paths, list(sizes), self._columns, "name", self._stored, types=self._table_types)
        for _ in self._engine.data.read(read, self._measure):
            pass

    def _measure(self, file: int, first: int, batch: pa.RecordBatch, *_: Any) -> None:
        for number, path in enumerate(self.rules):
            decode = self._decode[path]
            values = decode([batch.column(number)] * len(decode.leaves), batch.num_rows)
            bounds = pc.min_max(values)
            if not bounds["min"].is_valid:
                continue
            low, high = (_as_stored(bounds[kind]) for kind in ("min", "max"))
            with self._lock:
                least, greatest = self._found.get((file, path), (low, high))
                self._found[file, path] = min(low, least), max(high, greatest)

    def of(self, file: int, column: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of a column of a file; those of its footer for one that is not encoded."""
        if column.path not in self.rules:
            return column
        low, high = self._found.get((file, column.path), (None, None))
        return replace(column, low=low, high=high)


def _as_stored(value: pa.Scalar) -> Any:
    """Return a bound as Parquet would store it: see `ColumnStatistics`."""
    t = value.type
    if pa.types.is_string(t):
        return value.as_py().encode()
    if pa.types.is_decimal(t):
        sign, digits, exponent = value.as_py().as_tuple()
        return (-1 if sign else 1) * int("".join(map(str, digits))) * 10 ** (int(exponent) + t.scale)
    if pa.types.is_timestamp(t):
        return value.cast(pa.timestamp("us", t.tz)).cast(pa.int64()).as_py()
    return value.cast(pa.int64()).as_py() if pa.types.is_integer(t) else value.cast(pa.int32()).as_py()
