"""A format in memory, to prove the seam of changes: units are tables, and a version is a list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.engines.engine import Engine
from delta_core.engines.opening import make_engine
from delta_core.errors import CommitConflictError, ConstraintViolationError, InvalidArgumentError
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Expression, leaves
from delta_core.kernel.scan.plan import ROW_INDEX, resolve_columns
from delta_core.kernels.row_set import RowSets
from delta_core.operations.changes import FILE_NUMBER, Changed, ChangeOptions, Dropped
from delta_core.operations.progress import ProgressReport
from delta_core.operations.rewrites import OptimizeOptions, Syncs, Units
from delta_core.scan.rows import PlannedRows
from delta_core.schema.fields import Path, Schema
from delta_core.schema.types import KNOWN_TYPES


class PlainStore:
    """The versions of a table: for each, its units (rows) and their deleted positions."""

    def __init__(self, schema: pa.Schema, engine: Engine) -> None:
        self.schema = schema
        self.engine = engine
        self.versions: list[dict[int, frozenset[int]]] = [{}]
        self.units: dict[int, pa.Table] = {}
        self.operations: list[str] = ["CREATE"]
        #: Called right before the next commit, once: another writer.
        self.meanwhile: Callable[[], object] | None = None

    @property
    def latest(self) -> PlainTable:
        return PlainTable(self, len(self.versions) - 1)

    def add_unit(self, rows: pa.Table) -> int:
        number = len(self.units)
        self.units[number] = rows.cast(self.schema)
        return number

    def append(self, rows: pa.Table) -> PlainTable:
        return self.commit("APPEND", len(self.versions) - 1, {}, {self.add_unit(rows): frozenset()}, ())

    def commit(
        self,
        operation: str,
        base: int,
        changed: Mapping[int, frozenset[int]],
        added: Mapping[int, frozenset[int]],
        removed: Sequence[int],
    ) -> PlainTable:
        if self.meanwhile is not None:
            other, self.meanwhile = self.meanwhile, None
            other()
        before, now = self.versions[base], self.versions[-1]
        touched = {*changed, *removed}
        if any(now.get(unit) != before[unit] for unit in touched):
            raise CommitConflictError("Another writer changed the same units.")
        self.versions.append({u: s for u, s in {**now, **changed, **added}.items() if u not in removed})
        self.operations.append(operation)
        return self.latest


class PlainRows(PlannedRows):
    """Rows of units, by position or by predicate."""

    def __init__(
        self,
        table: PlainTable,
        units: pa.Table,
        columns: Sequence[Path],
        metadata: Sequence[str] = (),
        predicate: Expression | None = None,
        rows: RowSets | None = None,
    ) -> None:
        self._table, self._units, self._rows, self._predicate = table, units, rows, predicate
        self._names = [c[0] for c in columns]
        self._metadata = list(metadata)

    @property
    def schema(self) -> pa.Schema:
        own = [self._table.store.schema.field(n) for n in self._names]
        return pa.schema([*own, *(pa.field(m, pa.int64()) for m in self._metadata)])

    @property
    def predicate(self) -> Expression | None:
        return self._predicate

    @property
    def source(self) -> Any:
        return self._table

    def explain(self, run: bool = False) -> Any:
        raise NotImplementedError

    def count(self) -> int:
        return sum(batch.num_rows for batch in self.batches())

    def read_batches(self, texts: Any = "plain", *, is_collected: bool = False) -> Iterator[pa.RecordBatch]:
        store = self._table.store
        numbers = self._units.column(FILE_NUMBER) if FILE_NUMBER in self._units.column_names else None
        for i, unit in enumerate(self._units.column("unit").to_pylist()):
            rows = store.units[unit]
            positions = self._table.live(unit) if self._rows is None else self._rows[i].positions()
            number = i if numbers is None else numbers[i].as_py()
            rows = rows.append_column(FILE_NUMBER, pa.array(np.full(rows.num_rows, number)))
            rows = rows.append_column(ROW_INDEX, pa.array(np.arange(rows.num_rows))).take(pa.array(positions))
            if self._predicate is not None:
                rows = rows.filter(self._table.test(rows, self._predicate))
            yield from rows.select(self.schema.names).combine_chunks().to_batches()


class PlainTable:
    """One version: a `ChangeTarget` and a `RewriteTarget`."""

    types = KNOWN_TYPES
    functions: Mapping[str, Any] = {}

    def __init__(self, store: PlainStore, version: int) -> None:
        self.store, self.version = store, version

    @property
    def schema(self) -> Schema:
        return Schema(Schema.from_arrow(self.store.schema).fields)

    @property
    def engine(self) -> Engine:
        return self.store.engine

    @property
    def state(self) -> dict[int, frozenset[int]]:
        return self.store.versions[self.version]

    def latest(self) -> PlainTable:
        return self.store.latest

    def has_applied(self, transactions: Mapping[str, int]) -> bool:
        return False

    def live(self, unit: int) -> np.ndarray[Any, Any]:
        return np.setdiff1d(np.arange(self.store.units[unit].num_rows), list(self.state[unit])).astype(np.int64)

    def test(self, rows: pa.Table, predicate: Expression) -> pa.ChunkedArray:
        types = {leaf: rows.schema.field(leaf.path[0]).type for leaf in leaves(predicate)}  # type: ignore[union-attr]
        compiled = self.engine.evaluator.compile(predicate, types)
        columns = [rows.column(leaf.path[0]).combine_chunks() for leaf in compiled.leaves]  # type: ignore[union-attr]
        return pc.fill_null(compiled(columns, rows.num_rows), False)

    def units(self) -> pa.Table:
        numbers = list(self.state)
        sizes = [self.store.units[n].nbytes for n in numbers]
        return pa.table({"unit": pa.array(numbers, pa.int64()), "size": pa.array(sizes, pa.int64())})

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            PlainRows(self, self.units(), [(n,) for n in self.store.schema.names]).to_table().to_pylist()
        )
        return found

    def begin_changes(
        self, operation: str, parameters: Mapping[str, Any], options: ChangeOptions, evolve: Any = None
    ) -> PlainChanges:
        if evolve is not None:
            raise InvalidArgumentError("Columns of this format do not change.")
        return PlainChanges(self, operation, options)

    def begin_rewrites(self, parameters: Mapping[str, Any], options: OptimizeOptions) -> PlainRewrites:
        return PlainRewrites(self, options)


class PlainChanges:
    """The `TableChanges` of the format: rows are dropped by positions."""

    changes_definition = False
    carried: Mapping[str, str] = {}
    carried_types: Mapping[str, pa.DataType] = {}
    computed: frozenset[str] = frozenset()

    def __init__(self, base: PlainTable, operation: str, options: ChangeOptions) -> None:
        self.base, self._operation = base, operation
        self.progress = ProgressReport(options.progress)
        self.num_updated = self.num_inserted = 0
        self._added: dict[int, frozenset[int]] = {}
        self._dropped: dict[int, frozenset[int]] = {}
        self._removed: list[int] = []

    @property
    def relations(self) -> Any:
        return self.base.engine.relations

    def default_of(self, path: Path, updates: bool = False) -> Expression | None:
        return to_expression("cast(null as string)", self.base.schema)

    def check_assigned(self, names: Any, used: Any = ()) -> None:
        pass

    def whole_units(self, predicate: Expression | None, *, to_remove: bool) -> tuple[pa.Table, int | None] | None:
        if predicate is not None:
            return None
        units = self.base.units()
        return units, sum(len(self.base.live(u)) for u in self.base.state)

    def candidates(self, predicate: Expression | None) -> tuple[pa.Table, int]:
        return self.base.units(), 0

    def read(self, predicate: Expression | None, files: pa.Table) -> None:
        pass

    def numbered_rows(self, files: pa.Table, predicate: Expression | None, columns: Sequence[str | Path]) -> PlainRows:
        bound = None if predicate is None else to_expression(predicate, self.base.schema)
        found = resolve_columns(self.base.schema, columns)
        return PlainRows(self.base, files, found, (FILE_NUMBER, ROW_INDEX), bound)

    def rows(
        self,
        files: pa.Table,
        rows: RowSets | None,
        columns: Sequence[str | Path] | None = None,
        metadata: Sequence[str] = (),
    ) -> PlainRows:
        wanted = self.base.store.schema.names if columns is None else columns
        return PlainRows(self.base, files, resolve_columns(self.base.schema, wanted), metadata, rows=rows)

    def positions(self, files: pa.Table, predicate: Expression | None) -> RowSets:
        found = PlainRows(self.base, files, [], (FILE_NUMBER, ROW_INDEX), predicate).to_table()
        return RowSets.from_positions(
            files.num_rows, found.column(FILE_NUMBER).to_numpy(), found.column(ROW_INDEX).to_numpy()
        )

    def find(self, predicate: Expression | None) -> tuple[pa.Table, RowSets]:
        units = self.base.units()
        return units, self.positions(units, predicate)

    def drop(self, files: pa.Table, deleted: RowSets | None = None, updated: RowSets | None = None) -> None:
        for i, unit in enumerate(files.column("unit").to_pylist()):
            gone = {p for rows in (deleted, updated) if rows is not None for p in rows[i].positions().tolist()}
            if gone:
                self._dropped[unit] = self.base.state[unit] | gone

    def drop_files(self, files: pa.Table, updated: bool = False) -> None:
        self._removed += files.column("unit").to_pylist()

    def drop_where(self, predicate: Expression | None) -> Dropped:
        if predicate is None:
            units = self.base.units()
            self.drop_files(units)
            return Dropped(sum(len(self.base.live(u)) for u in self.base.state))
        units, rows = self.find(predicate)
        self.drop(units, deleted=rows)
        return Dropped(int(rows.cardinalities().sum()))

    def write_updated(self, rows: Any) -> None:
        self.num_updated += self._write(rows)

    def write_inserted(self, rows: Any, *, task_index: int = 0, num_tasks: int = 1, checks: Sequence[Any] = ()) -> None:
        self.num_inserted += self._write(rows, checks)

    def _write(self, rows: Any, checks: Sequence[Any] = ()) -> int:
        found = self.relations.stream(rows).read_all().select(self.base.store.schema.names)
        for check in checks:
            if not pc.all(self.base.test(found, check.expression), min_count=0).as_py():
                raise ConstraintViolationError(f"A row does not fit {check.sql}.")
        self._added[self.base.store.add_unit(found)] = frozenset()
        return int(found.num_rows)

    def write_changes(self) -> None:
        pass

    def metrics(self) -> dict[str, int]:
        return {"numAddedFiles": len(self._added), "numRemovedFiles": len(self._removed)}

    def commit(self, options: ChangeOptions, metrics: Mapping[str, int]) -> Changed:
        store = self.base.store
        done = store.commit(self._operation, self.base.version, self._dropped, self._added, self._removed)
        return Changed(done, metrics, is_committed=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for unit in self._added:
                del self.base.store.units[unit]


class PlainUnits:
    """The `Rewritten` of the format."""

    def __init__(self, store: PlainStore, units: Sequence[int]) -> None:
        self.units = list(units)
        self.num_rows = sum(store.units[u].num_rows for u in units)
        self.adds = pa.table({"size": pa.array([store.units[u].nbytes for u in units], pa.int64())})
        self.paths = tuple(map(str, units))
        self._store = store

    def cleanup(self) -> None:
        for unit in self.units:
            del self._store.units[unit]


class PlainRewrites:
    """The `TableRewrites` of the format."""

    num_tasks = 2
    is_spread = in_doubt = False

    def __init__(self, base: PlainTable, options: OptimizeOptions) -> None:
        self.base = self._began = base
        self.target_size = options.target_size or 1 << 20

    @property
    def facts(self) -> Mapping[str, Any]:
        return {}

    def check_predicate(self, predicate: Expression) -> None:
        raise InvalidArgumentError("Units of this format have no partitions.")

    def order_columns(self, names: Sequence[str]) -> tuple[Path, ...]:
        return tuple(resolve_columns(self.base.schema, names))

    def units(self, predicate: Expression | None) -> Units:
        table = self.base.units()
        shares = [len(self.base.state[u]) / self.base.store.units[u].num_rows for u in self.base.state]
        numbers = np.arange(table.num_rows)
        return Units(table, np.zeros(len(numbers), np.int64), numbers, np.array(shares))

    def partitions(self, units: pa.Table) -> Any:
        return np.zeros(units.num_rows, np.int64)

    def num_rows(self, units: pa.Table) -> int:
        return sum(self.base.store.units[u].num_rows for u in units.column("unit").to_pylist())

    def deletions(self, units: pa.Table) -> tuple[int, int]:
        counts = [len(self.base.state[u]) for u in units.column("unit").to_pylist() if u in self.base.state]
        return sum(c > 0 for c in counts), sum(counts)

    def column_rows(self, units: pa.Table | None, columns: Sequence[Path]) -> PlainRows:
        return PlainRows(self.base, self.base.units() if units is None else units, columns)

    def moved(self, units: pa.Table, *, numbered: bool = False) -> pa.RecordBatchReader:
        names = [(n,) for n in self.base.store.schema.names]
        return PlainRows(self.base, units, names, (FILE_NUMBER,) if numbered else ()).to_reader()

    def write(self, units: pa.Table, syncs: Syncs) -> PlainUnits:
        return self.write_rows(self.moved(units).read_all(), syncs)

    def write_ordered(self, units: pa.Table, order: Any, syncs: Syncs) -> PlainUnits | None:
        return None

    def write_rows(self, rows: pa.Table, syncs: Syncs) -> PlainUnits:
        return PlainUnits(self.base.store, [self.base.store.add_unit(rows)])

    def join(self, parts: Sequence[PlainUnits]) -> PlainUnits:
        return PlainUnits(self.base.store, [u for p in parts for u in p.units])

    def described(self, written: PlainUnits, describe: Callable[[pa.Table], pa.Table]) -> PlainUnits:
        return written

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.base.store.units.pop(int(path), None)

    def live(self, columns: Sequence[str]) -> PlainRewrites:
        return self

    def have(self, units: pa.Table) -> bool:
        return all(u in self.base.state and not self._changed(u) for u in units.column("unit").to_pylist())

    def _changed(self, unit: int) -> bool:
        return self.base.state[unit] != self._began.state.get(unit)

    def now(self, units: pa.Table) -> pa.Table:
        return units.filter(pc.is_in(units.column("unit"), pa.array(list(self.base.state), pa.int64())))

    def follow(self) -> bool:
        self._began, self.base = self.base, self.base.latest()
        return True

    def commit(
        self,
        done: Sequence[tuple[pa.Table, PlainUnits]],
        syncs: Syncs,
        options: OptimizeOptions,
        metrics: Mapping[str, int],
    ) -> int:
        removed = [u for units, _ in done for u in units.column("unit").to_pylist()]
        added = {u: frozenset[int]() for _, written in done for u in written.units}
        self.base = self.base.store.commit("OPTIMIZE", self.base.version, {}, added, removed)
        return 1


def plain_table(uri: str, *appends: Mapping[str, list[Any]]) -> PlainTable:
    """Return a table with the columns ``id`` and ``x``; each append is one unit."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.string())])
    store = PlainStore(schema, make_engine("arrow", uri, None))
    for rows in appends:
        store.append(pa.table(dict(rows), schema))
    return store.latest
