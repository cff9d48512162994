"""The files of a scan for a reader outside of this library: the columns to read, and how batches become rows.

Everything is an Arrow array or table. Plans pickle with the rows that deletion vectors drop, so that another process
needs neither the log nor the vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import ArgumentTypeError, DataFileError, InvalidArgumentError
from delta_core.expressions.ast import Expression, PartitionValue
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.plugins.rules import RowSelector
from delta_core.kernel.scan.apply import CompiledPlan
from delta_core.kernel.scan.file_context import FileContext
from delta_core.kernel.scan.plan import ReadPlan
from delta_core.kernel.scan.vectors import locate, read_dropped_rows
from delta_core.kernels.arrow_buffers import bool_array, number_array
from delta_core.kernels.nested import rebuild_list, rebuild_map, rebuild_struct
from delta_core.kernels.row_set import RowSet, RowSets
from delta_core.parquet.types import UnconvertibleError, num_leaves, plan_file
from delta_core.runtime.arguments import check_number
from delta_core.runtime.processes import cached_property
from delta_core.scan.sources import ConstantSource, PhysicalSource, Source
from delta_core.schema.fields import FIELD_ID
from delta_core.schema.types import ArrayType, DataType, Field, MapType, StructType, TypeDef

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.interface import Compiled, Evaluator, Storage
    from delta_core.parquet.types import FilePlan

__all__ = ["PlanContext", "ScanFiles", "ScanStep"]

#: The steps from the rows of the files to those of the scan.
ScanStep = Literal[
    "deleted_rows", "decoded_columns", "partition_values", "column_names", "checks", "filter", "computed_columns"
]
#: The ranges of rows of a file: ``stop`` is null for the end of a file whose rows the log does not count.
_RANGES = pa.struct([("start", pa.int64()), ("stop", pa.int64())])


class PlanContext(Struct, frozen=True):
    """The part of a plan that is the same for all its files; it pickles.

    Parameters
    ----------
    plan : ReadPlan
        The plan of the scan.
    evaluator : Evaluator
        Of the engine.
    functions : Mapping of str to Function
        Functions of plugins.
    types : Mapping of str to TypeDef
        The primitive types of the table.
    """

    plan: ReadPlan
    evaluator: Evaluator
    functions: Mapping[str, Function]
    types: Mapping[str, TypeDef]


class ScanFiles:
    """The files that a scan reads, for a reader of your own; `Scan.plan_files` makes it.

    Read `physical_schema` of each file, and let `to_logical` or `read_file` make the rows of it: these drop deleted
    rows, add partition values, rename columns, convert types and filter. A reader that does this itself looks at
    `steps` first, and rejects a plan with a step that it does not do.

    Immutable but for what it has loaded; methods can be called from several threads. ``plan[i]`` and ``plan[i:j]`` are
    plans of some of the files. A pickle contains the deleted rows, and no credentials.

    Examples
    --------
    >>> plan = tracked.scan(columns=["id", "city"]).plan_files()
    >>> len(plan), plan.deleted_rows().to_pylist()
    (1, [[1]])
    >>> plan.steps
    ('deleted_rows',)
    """

    def __init__(
        self,
        context: PlanContext,
        files: pa.Table,
        constants: Sequence[pa.Array],
        paths: Sequence[str],
        dropped: RowSets | None,
        vectors: pa.Table | None = None,
        storage: Storage | None = None,
    ) -> None:
        self._context = context
        self._files = files
        self._constants = constants
        self._paths = paths
        self._vectors = vectors
        self._storage = storage
        self._known_dropped = dropped

    # --- the files ---

    @property
    def files(self) -> pa.Table:
        """A row for each file.

        ``path`` is that of the log, ``uri`` the place of the file, ``local_path`` its path on this machine (null for a
        file elsewhere). ``num_rows`` counts its physical rows, null if the log has no count. ``partition_values`` is a
        struct with the typed value of each partition column that the scan uses.

        Examples
        --------
        >>> by_city.scan(predicate="city = 'Rome'").plan_files().files.column("partition_values").to_pylist()
        [{'city': 'Rome'}]
        """
        return self._files

    def __len__(self) -> int:
        return int(self._files.num_rows)

    def __getitem__(self, index: int | slice) -> ScanFiles:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise InvalidArgumentError(f"Found a slice of files with step {step}, expected neighbouring files.")
            stop = max(start, stop)
        else:
            start = range(len(self))[index]
            stop = start + 1
        count, vectors, dropped = stop - start, self._vectors, self._known_dropped
        return ScanFiles(
            self._context,
            self._files.slice(start, count),
            [c.slice(start, count) for c in self._constants],
            self._paths[start:stop],
            None if dropped is None else dropped[start:stop],
            None if vectors is None else vectors.slice(start, count),
            self._storage,
        )

    def __iter__(self) -> Iterator[ScanFiles]:
        """Yield a plan for each file.

        Examples
        --------
        >>> [len(file) for file in by_city.scan().plan_files()]
        [1, 1, 1]
        """
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"ScanFiles({len(self)} files, {', '.join(self.schema.names)})"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._files.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._files.schema.__arrow_c_schema__()

    def __reduce__(self) -> tuple[Any, ...]:
        sets = self._dropped
        numbers = np.flatnonzero(sets.cardinalities()).tolist()
        table = self._files
        for number, column in enumerate(self._constants):
            table = table.append_column(f"constant {number}", column)
        return _loaded, (self._context, _table_bytes(table), list(self._paths), {n: sets[n] for n in numbers})

    # --- what to read of each file ---

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows of the scan.

        Examples
        --------
        >>> table.scan(columns=["id"]).plan_files().schema
        id: int64
        """
        return self._context.plan.schema

    @cached_property
    def physical_schema(self) -> pa.Schema:
        """The columns to read of each file, as the files name them.

        A file may lack some of them, which are null, and may store a narrower type. Fields have their Parquet field ids
        as ``PARQUET:field_id``, if the table maps columns.

        Examples
        --------
        >>> len(mapped.scan(columns=["id"]).plan_files().physical_schema.names[0])
        40
        """
        plan = self._context.plan
        return pa.schema([_with_id(f, c) for f, c in zip(plan.physical, plan.columns.members, strict=True)])

    @property
    def logical_schema(self) -> pa.Schema:
        """The same columns in the same order, under the names of the table.

        Examples
        --------
        >>> mapped.scan(columns=["id"]).plan_files().logical_schema
        id: int32
        """
        return self._context.plan.logical

    @property
    def match(self) -> Literal["name", "id"]:
        """Whether columns of files are found by name, or by Parquet field id.

        Examples
        --------
        >>> table.scan().plan_files().match
        'name'
        """
        return self._context.plan.match

    @property
    def filter(self) -> Expression | None:
        """The condition on the rows of these files, over the columns of the table; None if all are returned.

        Conditions that partition values decide are not in it.

        Examples
        --------
        >>> from delta_core.api import format_sql
        >>> format_sql(table.scan(predicate="id = 3").plan_files().filter)
        'id = 3L'
        """
        return self._context.plan.condition

    @cached_property
    def steps(self) -> tuple[ScanStep, ...]:
        """The steps that `to_logical` takes with the rows of these files, in this order.

        ``deleted_rows``: drop rows by position; ``decoded_columns``: compute the values of columns that files store in
        another form; ``checks``: fail on rows that a feature forbids; ``filter``: keep the rows that `filter` is true
        of; ``partition_values``: add columns that have one value in a file; ``column_names``: rename columns, or find
        them by id; ``computed_columns``: add metadata columns and what features compute. Missing columns are filled
        with nulls and narrower types converted in any case.

        Examples
        --------
        >>> by_city.scan(predicate="city = 'Rome' AND id > 1").plan_files().steps
        ('filter', 'partition_values')
        """
        plan = self._context.plan
        names = plan.logical.names
        of_partitions = [o for o in plan.outputs if _is_partition(plan, o.value)]
        stored = [
            o
            for o in plan.outputs
            if o.field.name in plan.decoded
            or o.value == ConstantSource(None)
            or (isinstance(o.value, PhysicalSource) and names[o.value.index] == o.field.name)
        ]
        found: dict[ScanStep, bool] = {
            "deleted_rows": self._has_vectors,
            "decoded_columns": bool(plan.decoded),
            "checks": bool(plan.checks),
            "filter": plan.filter is not None,
            "partition_values": bool(of_partitions),
            "column_names": plan.match == "id" or not plan.physical.equals(plan.logical),
            "computed_columns": len(plan.outputs) > len(of_partitions) + len(stored),
        }
        return tuple(step for step, is_needed in found.items() if is_needed)

    @cached_property
    def _has_vectors(self) -> bool:
        if self._known_dropped is not None or self._vectors is None:
            return bool(self._dropped.cardinalities().any())
        return any(locate(s, self._vectors).num_rows for s in self._context.plan.selectors)

    # --- deleted rows ---

    @property
    def _dropped(self) -> RowSets:
        if self._known_dropped is None:
            nothing = np.empty(0, np.int64)
            selectors: Sequence[RowSelector] = self._context.plan.selectors
            if self._storage is None or self._vectors is None or not selectors:
                self._known_dropped = RowSets.from_positions(len(self), nothing, nothing)
            else:
                self._known_dropped = read_dropped_rows(self._storage, selectors, self._vectors)
        return self._known_dropped

    def deleted_rows(self) -> pa.LargeListArray:
        """Return the positions of the deleted rows of each file, ascending: a list for each file.

        Reads the deletion vectors of these files, once.

        Raises
        ------
        DataFileNotFoundError
            If a file with deletion vectors is missing.

        Examples
        --------
        >>> tracked.scan().plan_files().deleted_rows().to_pylist()
        [[1]]
        """
        sets = self._dropped
        counts = sets.cardinalities()
        found = [sets[n].positions() for n in np.flatnonzero(counts).tolist()]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        values = np.concatenate([np.empty(0, np.int64), *found])
        return pa.LargeListArray.from_arrays(number_array(ends), number_array(values))

    def selected_ranges(self) -> pa.LargeListArray:
        """Return the rows of each file that are not deleted, as ranges from ``start`` to before ``stop``.

        ``stop`` of the last range is null if the log does not count the rows of the file: it ends with the file.

        Raises
        ------
        DataFileNotFoundError
            If a file with deletion vectors is missing.

        Examples
        --------
        >>> tracked.scan().plan_files().selected_ranges().to_pylist()
        [[{'start': 0, 'stop': 1}, {'start': 2, 'stop': 3}]]
        """
        sets = self._dropped
        rows = self._files.column("num_rows").to_pylist()
        counts = sets.cardinalities()
        starts: list[NDArray[np.int64]] = []
        stops: list[NDArray[np.int64]] = []
        for number, num_rows in enumerate(rows):
            dropped = sets[number].positions() if counts[number] else np.empty(0, np.int64)
            begin = np.concatenate([np.zeros(1, np.int64), dropped + 1])
            end = np.concatenate([dropped, np.full(1, -1 if num_rows is None else num_rows)])
            chosen = (end > begin) | (end < 0)
            starts.append(begin[chosen])
            stops.append(end[chosen])
        ends = np.cumsum([0, *(len(s) for s in starts)], dtype=np.int64)
        first, last = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in (starts, stops))
        ranges = pa.StructArray.from_arrays(
            [number_array(first), number_array(last, valid=last >= 0)], fields=[_RANGES.field(0), _RANGES.field(1)]
        )
        return pa.LargeListArray.from_arrays(number_array(ends), ranges)

    def selection_mask(self, file: int, num_rows: int, first_row: int = 0) -> pa.BooleanArray:
        """Return which rows of a part of a file are not deleted.

        Parameters
        ----------
        file : int
            The number of the file in this plan.
        num_rows : int
            The rows of the part.
        first_row : int
            The position of its first row in the file.

        Raises
        ------
        DataFileNotFoundError
            If a file with deletion vectors is missing.

        Examples
        --------
        >>> tracked.scan().plan_files().selection_mask(0, 3).to_pylist()
        [True, False, True]
        """
        self._check_file(file)
        check_number("num_rows", num_rows, 0)
        check_number("first_row", first_row, 0)
        return bool_array(~self._dropped[file].mask(num_rows, first_row))

    # --- rows ---

    def to_logical(self, file: int, batch: Any, first_row: int = 0) -> pa.RecordBatch | None:
        """Return the rows of the scan that are in a batch of a file; None if none is.

        Parameters
        ----------
        file : int
            The number of the file in this plan.
        batch : pyarrow.RecordBatch, or any object with ``__arrow_c_array__``
            All rows of a part of the file, in their order, with the columns of `physical_schema`; further ones are
            ignored, and missing ones are null.
        first_row : int
            The position of its first row in the file.

        Raises
        ------
        DataFileError
            A column that can't be converted to its type, or is matched by id and has none; a row that breaks a check or
            lacks a value that it must have.
        ArgumentTypeError
            For an object that is no batch.
        InvalidArgumentError
            There is no such file.

        Examples
        --------
        >>> plan = tracked.scan(columns=["id"], metadata=["_file_row_index"]).plan_files()
        >>> plan.to_logical(0, pa.record_batch({"id": [1, 2, 3]})).to_pydict()
        {'id': [1, 3], '_file_row_index': [0, 2]}
        """
        self._check_file(file)
        check_number("first_row", first_row, 0)
        return self._applied(file, first_row, _as_batch(batch))

    def read_file(self, file: int, batches: Any) -> pa.RecordBatchReader:
        """Return the rows of the scan that are in a file, as a stream; batches are read when its rows are.

        Parameters
        ----------
        file : int
            The number of the file in this plan.
        batches : any object with ``__arrow_c_stream__``, or iterable of pyarrow.RecordBatch
            All rows of the file in their order, as of `to_logical`.

        Raises
        ------
        DataFileError
            By the stream: what `to_logical` raises; another number of rows than the log has; deleted rows beyond the
            end.
        ArgumentTypeError
            For an object that is neither; by the stream: for an item that is no batch.
        InvalidArgumentError
            There is no such file.

        Examples
        --------
        >>> plan = tracked.scan(columns=["id"]).plan_files()
        >>> plan.read_file(0, pa.table({"id": [1, 2, 3]})).read_all().to_pydict()
        {'id': [1, 3]}
        """
        self._check_file(file)
        batches = _as_batches(batches)
        return pa.RecordBatchReader.from_batches(self.schema, self._rows_of(file, batches))

    def _rows_of(self, file: int, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        first = 0
        for given in batches:
            batch = _as_batch(given)
            found = self._applied(file, first, batch)
            first += batch.num_rows
            if found is not None:
                yield found
        expected = self._files.column("num_rows")[file].as_py()
        if expected is not None and first != expected:
            raise DataFileError(
                f"Found {first} rows of data file {self._paths[file]!r}, expected {expected}, as the log counts. Pass "
                "all rows of the file in their order, none filtered; pass parts of it to to_logical.",
                path=self._paths[file],
            )
        self._check_fits(file, first)

    def _check_fits(self, file: int, num_rows: int) -> None:
        last = int(self._dropped[file : file + 1].last()[0])
        if last >= num_rows:
            raise DataFileError(
                f"The deleted rows of data file {self._paths[file]!r} do not fit it: found position {last}, expected "
                f"less than its {num_rows} rows.",
                path=self._paths[file],
            )

    def _applied(self, file: int, first: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        try:
            physical = _Conversion.of(self._conversions, batch.schema, self._context)(batch)
        except UnconvertibleError as e:
            raise DataFileError(f"Data file {self._paths[file]!r}: {e}.", path=self._paths[file]) from e
        return self._compiled(file, first, physical)

    @cached_property
    def _conversions(self) -> dict[bytes, _Conversion]:
        return {}

    @cached_property
    def _compiled(self) -> CompiledPlan:
        context = self._context

        def build(expression: Expression) -> Compiled:
            return context.evaluator.compile(expression, context.plan.types, context.functions)

        files = FileContext(
            self._paths, self._constants, lambda path: path, _Dropped(self), lambda file, rows: None, None, _unknown
        )
        return CompiledPlan(context.plan, files, build)

    def _check_file(self, file: int) -> None:
        check_number("file", file, 0)
        if file >= len(self):
            raise InvalidArgumentError(
                f"Found file {file}, expected a number below {len(self)}, the files of the plan."
            )


class _Dropped:
    """The deleted rows of a plan as `FileContext` takes them."""

    def __init__(self, plan: ScanFiles) -> None:
        self._plan = plan

    def __bool__(self) -> bool:
        return bool(self._plan._dropped.cardinalities().any())

    def rows(self, file: int) -> RowSet | None:
        """Return those of a file, None for a file without any."""
        return self._plan._dropped[file] or None

    def between(self, first: int, stop: int) -> tuple[NDArray[np.int64], RowSets] | None:
        """Return which of neighbouring files have any, and these; None if no file has."""
        sets = self._plan._dropped[first:stop]
        files = np.flatnonzero(sets.cardinalities())
        return (files + first, sets.take(files)) if len(files) else None


class _Conversion:
    """From batches of a reader, all of one schema, to those of the plan."""

    def __init__(self, found: pa.Schema, context: PlanContext) -> None:
        plan = context.plan
        self._file: FilePlan = plan_file(found, plan.physical, plan.columns, plan.match, types=context.types)
        leaves = frozenset(self._file.leaves)
        self._columns: list[tuple[int, int]] = []
        first = 0
        for number, f in enumerate(found):
            count = num_leaves(f.type)
            if not leaves.isdisjoint(range(first, first + count)):
                self._columns.append((number, first))
            first += count
        self._leaves = leaves

    @staticmethod
    def of(known: dict[bytes, _Conversion], found: pa.Schema, context: PlanContext) -> _Conversion:
        """Return that of a schema: files have few."""
        key = found.serialize().to_pybytes()  # schemas are equal even if their field ids differ
        made = known.get(key)
        if made is None:
            made = known[key] = _Conversion(found, context)
        return made

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._columns:
            empty = pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), batch.num_rows, [None]))
            return self._file.convert(empty)
        arrays = [_only(batch.column(number), self._leaves, first) for number, first in self._columns]
        names = [batch.schema.field(number).name for number, _ in self._columns]
        return self._file.convert(pa.RecordBatch.from_arrays(arrays, names))


def _only(array: pa.Array, leaves: frozenset[int], first: int) -> pa.Array:
    """Return an array with some of its leaves, which are numbered from ``first`` on; at least one of them."""
    t = array.type
    if leaves.issuperset(range(first, first + num_leaves(t))):
        return array
    if pa.types.is_struct(t):
        names, children = [], []
        for i in range(t.num_fields):
            count = num_leaves(t.field(i).type)
            if not leaves.isdisjoint(range(first, first + count)):
                names.append(t.field(i).name)
                children.append(_only(array.field(i), leaves, first))
            first += count
        return rebuild_struct(array, names, children)
    if pa.types.is_map(t):
        return rebuild_map(array, array.keys, _only(array.items, leaves, first + num_leaves(t.key_type)))
    return rebuild_list(array, _only(array.values, leaves, first))


def _as_batch(rows: Any) -> pa.RecordBatch:
    """Return a batch of any Arrow library."""
    if isinstance(rows, pa.RecordBatch):
        return rows
    expected = "expected a pyarrow.RecordBatch, or an object with __arrow_c_array__ that is one"
    if not hasattr(rows, "__arrow_c_array__"):
        raise ArgumentTypeError(f"Found a batch as {type(rows).__name__}, {expected}; read_file takes whole streams.")
    try:
        return pa.record_batch(rows)
    except (TypeError, ValueError, pa.ArrowException) as e:
        raise ArgumentTypeError(f"Found a batch as {type(rows).__name__}, {expected}: {e}.") from e


def _as_batches(rows: Any) -> Any:
    """Return the batches of a stream of any Arrow library, or the items of an iterable."""
    expected = "expected an object with __arrow_c_stream__, such as a pyarrow.Table, or an iterable of record batches"
    if not hasattr(rows, "__arrow_c_stream__"):
        if isinstance(rows, Iterable):
            return rows
        raise ArgumentTypeError(f"Found batches as {type(rows).__name__}, {expected}.")
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except (TypeError, ValueError, pa.ArrowException) as e:
        raise ArgumentTypeError(f"Found batches as {type(rows).__name__}, {expected}: {e}.") from e


def _loaded(context: PlanContext, data: bytes, paths: list[str], dropped: dict[int, RowSet]) -> ScanFiles:
    with pa.ipc.open_stream(data) as reader:
        table = reader.read_all().combine_chunks()
    names = [n for n in table.column_names if n.startswith("constant ")]
    constants = [_whole(table.column(n)) for n in names]
    nothing = np.empty(0, np.int64)
    sets = RowSets.from_positions(table.num_rows, nothing, nothing).with_more(dropped)
    return ScanFiles(context, table.drop_columns(names), constants, paths, sets)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _table_bytes(table: pa.Table) -> bytes:
    """Return a table as Arrow's stream: unlike a pickle it has the rows of a slice only."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _is_partition(plan: ReadPlan, value: Source | Expression) -> bool:
    return (
        isinstance(value, ConstantSource)
        and value.index is not None
        and isinstance(plan.constants[value.index], PartitionValue)
    )


def _unknown(first: int, stop: int) -> NDArray[np.int64] | None:
    return None


def _with_id(f: pa.Field, column: Field) -> pa.Field:
    """Return a field with its Parquet field ids, at any depth."""
    made = f.with_type(_type_with_ids(f.type, column.type))
    field_id = column.metadata.get(FIELD_ID)
    return made if field_id is None else made.with_metadata({"PARQUET:field_id": str(field_id)})


def _type_with_ids(t: pa.DataType, column: DataType) -> pa.DataType:
    if isinstance(column, StructType) and pa.types.is_struct(t):
        return pa.struct([_with_id(t.field(i), c) for i, c in enumerate(column.members)])
    if isinstance(column, ArrayType) and pa.types.is_list(t):
        return pa.list_(t.value_field.with_type(_type_with_ids(t.value_type, column.element_type)))
    if isinstance(column, MapType) and pa.types.is_map(t):
        return pa.map_(
            t.key_field.with_type(_type_with_ids(t.key_type, column.key_type)),
            t.item_field.with_type(_type_with_ids(t.item_type, column.value_type)),
        )
    return t
