"""A second engine, to prove the seam: DuckDB reads the data files and evaluates; log and storage are Arrow's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from delta_core.engines.arrow import map_threads
from delta_core.engines.arrow.log_files import ArrowLogFiles
from delta_core.engines.engine import Engine
from delta_core.engines.interface import Apply, Storage
from delta_core.engines.records import FileRead
from delta_core.errors import DataFileError, DataFileNotFoundError, UnsupportedExpressionError
from delta_core.expressions.ast import Call, Cast, Expression, Leaf, Literal, leaves
from delta_core.expressions.plugin_functions import Function
from delta_core.storage.stores import open_storage

#: Functions whose meaning in DuckDB is Spark's; every other one is rejected by name.
_OPERATORS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "+": "+", "-": "-", "*": "*"}
_FUNCTIONS = {"coalesce", "abs", "lower", "upper", "isnan"}


class CompiledQuery:
    """An expression as a DuckDB query over one table of its leaves."""

    def __init__(self, expression: Expression, types: Mapping[Leaf, pa.DataType]) -> None:
        self.leaves = leaves(expression)
        self._types = [types[leaf] for leaf in self.leaves]
        self._sql = _sql(expression, {leaf: f"c{i}" for i, leaf in enumerate(self.leaves)})
        self.type = self._run([pa.array([], t) for t in self._types], 0).type

    def __call__(self, columns: Sequence[Any], num_rows: int) -> pa.Array:
        full = [pa.repeat(c, num_rows) if isinstance(c, pa.Scalar) else _flat(c) for c in columns]
        return self._run(full, num_rows)

    def _run(self, columns: Sequence[pa.Array], num_rows: int) -> pa.Array:
        names = [f"c{i}" for i in range(len(columns))]
        batch = pa.table([*columns, pa.array(range(num_rows), pa.int64())], [*names, "n"])
        with duckdb.connect() as connection:
            connection.register("batch", batch)
            found = connection.sql(f"SELECT {self._sql} AS r FROM batch ORDER BY n").to_arrow_table()
        return found.column("r").combine_chunks()


def _flat(column: Any) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


def _sql(e: Expression, names: Mapping[Leaf, str]) -> str:
    if isinstance(e, Literal):
        return "NULL" if e.value is None else f"'{e.value}'" if isinstance(e.value, str) else str(e.value)
    if isinstance(e, Cast):
        kinds = {"integer": "INTEGER", "long": "BIGINT", "double": "DOUBLE", "string": "VARCHAR"}
        kind = kinds.get(getattr(e.type, "type", ""))
        if kind is None:
            raise UnsupportedExpressionError(f"The DuckDB engine has no cast to {e.type}.")
        return f"CAST({_sql(e.arg, names)} AS {kind})"
    if not isinstance(e, Call):
        return names[e]
    args = [_sql(a, names) for a in e.args]
    if e.function in ("and", "or"):
        return "(" + f" {e.function} ".join(args) + ")"
    if e.function == "not":
        return f"(NOT {args[0]})"
    if e.function in ("isnull", "isnotnull"):
        return f"({args[0]} IS {'NOT ' * (e.function == 'isnotnull')}NULL)"
    if e.function == "if":
        return f"(CASE WHEN {args[0]} THEN {args[1]} ELSE {args[2]} END)"
    if e.function in _OPERATORS and len(args) == 2:
        return f"({args[0]} {_OPERATORS[e.function]} {args[1]})"
    if e.function == "in":
        return f"({args[0]} IN ({', '.join(args[1:])}))"
    if e.function in _FUNCTIONS:
        return f"{e.function}({', '.join(args)})"
    raise UnsupportedExpressionError(f"The DuckDB engine has no function {e.function!r}.")


class DuckEvaluator:
    """Evaluator of the seam."""

    def compile(
        self, expression: Expression, types: Mapping[Leaf, pa.DataType], functions: Mapping[str, Function] | None = None
    ) -> CompiledQuery:
        return CompiledQuery(expression, types)


class DuckDataFiles:
    """DataFiles of the seam: flat columns, matched by name."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def read(self, read: FileRead, apply: Apply) -> Iterator[pa.RecordBatch]:
        if read.match != "name":
            raise DataFileError("The DuckDB engine matches columns by name only.")
        for index, path in enumerate(read.paths):
            local = self._storage.local_path(path)
            if local is None or not Path(local).exists():
                raise DataFileNotFoundError(f"Data file {path!r}, which the log names, is not there.", path=path)
            yield from self._file(index, local, read, apply)

    def _file(self, index: int, local: str, read: FileRead, apply: Apply) -> Iterator[pa.RecordBatch]:
        with duckdb.connect() as connection:
            relation = connection.read_parquet(local)
            have = set(relation.columns)
            columns = ", ".join(f'"{n}"' for n in read.schema.names if n in have) or "1 AS nothing"
            rows = connection.sql(f"SELECT {columns} FROM relation").to_arrow_reader(read.batch_rows)
            if read.opened is not None:
                read.opened(index, self.row_counts([local], [None])[0])
            position = 0
            for batch in rows:
                found = [
                    batch.column(f.name).cast(f.type) if f.name in have else pa.nulls(batch.num_rows, f.type)
                    for f in read.schema
                ]
                out = apply(index, position, _batch(found, read.schema, batch.num_rows))
                position += batch.num_rows
                if out is not None and out.num_rows:
                    yield out

    def row_counts(self, paths: Sequence[str], sizes: Sequence[int | None]) -> list[int]:
        local = [self._storage.local_path(p) for p in paths]
        with duckdb.connect() as connection:
            return [connection.execute("SELECT count(*) FROM read_parquet(?)", [p]).fetchall()[0][0] for p in local]


def _batch(columns: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def engine(uri: str, storage_options: Mapping[str, Any] | None = None) -> Engine:
    """Return the engine for a table, as an entry point of the group ``delta_core.engines`` would."""
    storage = open_storage(uri, storage_options)
    logs = ArrowLogFiles(storage, map_threads)
    return Engine("duckdb", storage, logs, DuckDataFiles(storage), DuckEvaluator(), map=map_threads)
