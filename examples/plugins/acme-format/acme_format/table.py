"""The format, its tables and their scans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_core.api import (
    Column,
    ColumnNotFoundError,
    Engine,
    InvalidArgumentError,
    PlannedRows,
    ScanReport,
    Schema,
    UnsupportedOperationError,
    VersionNotFoundError,
    make_engine,
    to_expression,
)

__all__ = ["FORMAT", "ArrowTable"]

_NAME = re.compile(r"version-(\d+)\.arrow")


class ArrowFormat:
    """The object of the entry point."""

    name = "acme_format"

    def recognise(self, engine: Engine) -> bool:
        """Whether the place has a version: one listing."""
        return bool(_versions(engine))

    def open(self, engine: Engine, uri: str, *, version: int | None = None) -> ArrowTable:
        """Open a version, the latest unless given."""
        versions = _versions(engine)
        if not versions or (version is not None and version not in versions):
            raise VersionNotFoundError(f"{uri} has no version {version}, but {versions}.", version=version)
        chosen = max(versions) if version is None else version
        return ArrowTable(engine, uri, chosen, [v for v in versions if v <= chosen])


FORMAT = ArrowFormat()


def _versions(engine: Engine) -> list[int]:
    """Return the versions, in order."""
    names = engine.storage.list_from("", "version-").names
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


class ArrowTable:
    """A version of a table.

    Parameters
    ----------
    engine : Engine
        Of the place.
    uri : str
        As the caller wrote it.
    version : int
        The version.
    versions : sequence of int
        This version and those before, in order.
    """

    format_name = FORMAT.name
    functions: Mapping[str, Any] = {}
    commands = frozenset({"info", "schema", "history", "files", "head", "count"})
    changes: frozenset[str] = frozenset()

    def __init__(self, engine: Engine, uri: str, version: int, versions: Sequence[int]) -> None:
        self._engine, self.uri, self.version, self._versions = engine, uri, version, versions

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.uri, self.version)

    @property
    def _path(self) -> str:
        return f"version-{self.version}.arrow"

    def read(self) -> pa.Table:
        """Return all rows."""
        with self._engine.storage.open(self._path) as file:
            return pa.ipc.open_file(file).read_all()

    @property
    def _size(self) -> int:
        ((size, _),) = self._engine.storage.stat([self._path])
        return size

    @property
    def schema(self) -> Schema:
        """The columns."""
        return Schema.from_arrow(self.read().schema)

    def scan(
        self, columns: Any = None, *, metadata: Sequence[str] = (), predicate: Any = None, limit: int | None = None
    ) -> ArrowScan:
        """Plan a read of some columns and rows."""
        if metadata:
            raise UnsupportedOperationError(f"Tables of {self.format_name} have no metadata column {metadata[0]}.")
        rows = self.read()
        names = rows.column_names if columns is None else [c if isinstance(c, str) else ".".join(c) for c in columns]
        missing = [n for n in names if n not in rows.column_names]
        if missing:
            raise ColumnNotFoundError(f"There is no column {missing[0]}, but {', '.join(rows.column_names)}.")
        bound = to_expression(predicate, Schema.from_arrow(rows.schema))
        return ArrowScan(self, rows.schema, names, bound, limit)

    def select(self, rows: pa.Table, predicate: Any) -> pa.Table:
        """Return the rows for which a predicate is true."""
        types: Any = {Column((f.name,)): f.type for f in rows.schema}
        compiled = self._engine.evaluator.compile(predicate, types)
        columns = [rows.column(leaf.path[0]).combine_chunks() for leaf in compiled.leaves]
        return rows.filter(compiled(columns, rows.num_rows))

    # --- facts ---

    def describe(self) -> Mapping[str, Any]:
        """Return what the table is."""
        return {"Rows": self.read().num_rows, "Size": self._size}

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the versions, newest first."""
        return [{"version": v, "operation": "WRITE"} for v in reversed(self._versions)][:limit]

    def file_table(self, predicate: Any = None) -> pa.Table:
        """Return the file of the version."""
        return pa.table({"path": [self._path], "size": [self._size]})

    def version_files(self) -> pa.Table:
        """Return the files of metadata: the file of the rows has the schema."""
        return pa.table({"file": [self._path], "kind": ["rows"], "size": [self._size]})

    def run_command(self, command: str, options: Mapping[str, Any], confirm: Any, progress: Any) -> Mapping[str, Any]:
        """Reject every change."""
        raise UnsupportedOperationError(f"Tables of {self.format_name} are read only.")

    def verify(self) -> Any:
        """Reject the check, which is not in ``commands``."""
        raise UnsupportedOperationError(f"Tables of {self.format_name} have no checks.")

    def report(self, *, store: bool = True) -> Any:
        """Reject the report, which is not in ``commands``."""
        raise UnsupportedOperationError(f"Tables of {self.format_name} have no reports.")


def _reopened(uri: str, version: int) -> ArrowTable:
    return FORMAT.open(make_engine("arrow", uri, None), uri, version=version)


class ArrowScan(PlannedRows):
    """A planned read of a version."""

    def __init__(
        self, table: ArrowTable, schema: pa.Schema, names: Sequence[str], predicate: Any, limit: int | None
    ) -> None:
        self._table, self._names, self._predicate, self._limit = table, names, predicate, limit
        self._schema = pa.schema([schema.field(n) for n in names])
        if limit is not None and limit < 0:
            raise InvalidArgumentError(f"Found limit={limit}, expected 0 or more.")

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._schema

    @property
    def predicate(self) -> Any:
        """The predicate, bound to the columns."""
        return self._predicate

    @property
    def source(self) -> ArrowTable:
        """The version that is read."""
        return self._table

    def count(self) -> int:
        """Return the number of rows."""
        return sum(batch.num_rows for batch in self.read_batches())

    def read_batches(self, texts: Any = "plain", *, is_collected: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        rows = self._table.read()
        if self._predicate is not None:
            rows = self._table.select(rows, self._predicate)
        yield from rows.slice(0, self._limit).select(self._names).to_batches()

    def explain(self, run: bool = False) -> ScanReport:
        """Return how the rows are read."""
        return ScanReport(self._table.uri, tuple(self._names), self._limit, (), (), ())
