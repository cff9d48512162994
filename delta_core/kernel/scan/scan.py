"""Scan: what users hold of a read that is planned. Rows move only when they are requested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from delta_core.engines.records import FileRead
from delta_core.errors import (
    ColumnNotFoundError,
    CorruptTableError,
    DataFileError,
    UnsupportedOperationError,
    did_you_mean,
)
from delta_core.expressions.ast import NUM_RECORDS, Column, Expression, FileConstant, Leaf, PartitionValue, transform
from delta_core.expressions.filters import to_expression
from delta_core.expressions.skipping import SkippingPlan
from delta_core.kernel.log import value_parts
from delta_core.kernel.log.files import LISTED_COLUMNS, FileSet
from delta_core.kernel.log.paths import decode_paths, path_uris
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.rules import MetadataColumn
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.scan import parts
from delta_core.kernel.scan.file_context import FileContext, NoVectors
from delta_core.kernel.scan.plan import (
    FILE_PATH,
    LOCATION,
    ROW_INDEX,
    ReadPlan,
    offered_metadata,
    plan_row_groups,
    plan_scan,
    plan_table_skipping,
    resolve_columns,
)
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of, int64_values, is_valid, one_array, strings_of
from delta_core.runtime.logs import debug_log
from delta_core.runtime.processes import cached_property
from delta_core.scan.rows import PlannedRows, Texts
from delta_core.schema.fields import Path, Schema
from delta_core.schema.types import DataType, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.engine import Engine
    from delta_core.engines.interface import Compiled
    from delta_core.expressions.filters import PredicateLike
    from delta_core.kernel.scan.scan_files import ScanFiles
    from delta_core.kernel.scan.vectors import Vectors
    from delta_core.scan.report import RunCounters, ScanReport

from delta_core.runtime.arguments import check_names, check_number

__all__ = ["Scan", "ScanSource", "offered_columns"]

#: Files whose statistics are queried first if a limit is given.
_FIRST_FILES = 64


class ScanSource(Protocol):
    """The source of a scan: a Snapshot."""

    @property
    def state(self) -> TableState:
        """Protocol, metadata, schema and features."""
        ...

    @property
    def plugins(self) -> PluginSet:
        """The plugins that serve the features."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine that reads for this table."""
        ...

    @property
    def files(self) -> FileSet:
        """The live files."""
        ...

    @property
    def timezone(self) -> str:
        """The zone of partition timestamps that name none."""
        ...


class Scan(PlannedRows):
    """A planned read of a snapshot.

    Parameters
    ----------
    source : Snapshot
    columns : sequence of str or Path, optional
        Names, ignoring case; dotted ones reach into structs and return the struct with that field alone. None: all.
    metadata : sequence of str
        Metadata columns, after the others: ``_file_path``, ``_file_row_index`` and what features offer.
    predicate : str, filters or Expression, optional
        Only rows for which it is true; files and row groups that can't hold one are not read. It may use the metadata
        columns that are requested.
    limit : int, optional
        The most rows to return.
    files : FileSet, optional
        Read these instead of the snapshot's live files; one with ``keep`` returns only those rows of a file.
    constants : Mapping, optional
        Further output columns, between columns and metadata: name to (column of the file table or expression, type).
    purpose : str
        The purpose that hooks get: ``rows``, or ``changes`` for a change feed.
    beside_write : bool
        See `FileRead`.

    Examples
    --------
    >>> scan = table.scan(columns=["id"], predicate="city = 'Oslo'")
    >>> scan.to_table().to_pydict()
    {'id': [1, 3]}
    """

    def __init__(
        self,
        source: ScanSource,
        columns: Sequence[str | Path] | None = None,
        metadata: Sequence[str] = (),
        predicate: PredicateLike | None = None,
        limit: int | None = None,
        *,
        files: FileSet | None = None,
        constants: Mapping[str, tuple[str | Expression, DataType]] | None = None,
        purpose: Literal["rows", "changes"] = "rows",
        beside_write: bool = False,
    ) -> None:
        check_number("limit", limit, 0)
        check_names("metadata", metadata)
        state, plugins = source.state, source.plugins
        self._source = source
        self._given = files
        self._arguments = columns, tuple(metadata), predicate, limit, constants
        self._purpose: Literal["rows", "changes"] = purpose
        self._beside_write = beside_write
        bound = self._predicate = _bound(source, predicate, metadata, constants or {}, purpose)
        request = ReadRequest(
            None if columns is None else _find_columns(source, columns),
            tuple(dict.fromkeys(metadata)),
            bound,
            purpose,
            tuple(constants or ()),
        )
        rules = self._rules = plugins.collect("read_rules", table=state, request=request)
        # file sets that carry row sets can't be filtered: their rows are
        prunes = files is None or files.keep is None
        self.plan: ReadPlan = plan_scan(
            state, request, rules, functions=plugins.functions, constants=constants, limit=limit, prunes_files=prunes
        )
        self._skipping = plan_table_skipping(state, self.plan.pruning)

    def __repr__(self) -> str:
        return f"Scan({', '.join(self.schema.names)})"

    def _repr_html_(self) -> str:
        files = self.__dict__.get("_files")
        return parts.page(
            "Scan",
            {
                "rows of": repr(self._source),
                "where": None if self._predicate is None else parts.format_sql(self._predicate),
                "limit": self.plan.limit,
                "files": None if files is None else f"{files.count:,}",
            },
            parts.schema_table(self.schema),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if self._given is not None:
            raise UnsupportedOperationError(
                "A scan of files that were given to it can't be pickled: pickle the table, and scan it again."
            )
        return _scan_again, (self._source, *self._arguments, self._purpose)

    def __copy__(self) -> Scan:
        return self

    def __deepcopy__(self, memo: Any) -> Scan:
        return self

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows.

        Examples
        --------
        >>> table.scan(columns=["id", "city"]).schema
        id: int64
        city: string
        """
        return self.plan.schema

    @cached_property
    def _files(self) -> FileSet:
        """The files that may hold a row; columns load on demand."""
        start = perf_counter()
        found = everything = self._source.files if self._given is None else self._given
        if found.keep is not None:
            return found
        evaluator, zone = self._source.engine.evaluator, self._source.timezone
        found = found.where(self._skipping.partition, evaluator, zone, exact=True)
        found = found.where(self._skipping.statistics, evaluator, zone)
        if (log := debug_log(__name__)) is not None:
            took = (perf_counter() - start) * 1000
            log.debug(
                "Planned a scan of %r: %d of %d files (%.1f ms)", self._source, found.count, everything.count, took
            )
        return found

    @property
    def is_of_table(self) -> bool:
        """Whether the live files of the source are read, and no others.

        Examples
        --------
        >>> table.scan().is_of_table
        True
        """
        return self._given is None

    @property
    def skipping(self) -> SkippingPlan:
        """The tests that choose files.

        Examples
        --------
        >>> table.scan(predicate="id = 3").skipping.partition is None
        True
        """
        return self._skipping

    @property
    def source(self) -> ScanSource:
        """The plan that is read.

        Examples
        --------
        >>> table.scan().source
        Snapshot('table', version=1)
        """
        return self._source

    @property
    def predicate(self) -> Expression | None:
        """The predicate, bound to the table's schema.

        Examples
        --------
        >>> from delta_core.api import format_sql
        >>> format_sql(table.scan(predicate="amount > 15").predicate)
        'amount > 15.0D'
        """
        return self._predicate

    @property
    def file_set(self) -> FileSet:
        """The files that may hold a row; columns load on demand.

        Examples
        --------
        >>> table.scan(predicate="id = 3").file_set.count
        1
        """
        return self._files

    def files(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the planned files, one row each.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of `actions.FILE_COLUMNS`. By default all that ``add`` has but ``stats`` and ``tags``, which are
            larger than all others together.

        Raises
        ------
        ColumnNotFoundError
            For a name that neither the core nor a feature of the table has.
        ArgumentTypeError
            For a text in place of a list.

        Examples
        --------
        >>> table.scan(predicate="id = 3").files(["path", "size"]).num_rows
        1
        """
        check_names("columns", columns)
        for name in columns or ():
            if self._given is None:  # files that the caller has may carry columns of their own
                self._check_file_column(name)
        return self._files.columns(LISTED_COLUMNS if columns is None else columns)

    def _check_file_column(self, name: str) -> None:
        declared = [f.name for feature in self._source.plugins.features.values() for f in feature.fields]
        if name not in FILE_COLUMNS and name not in declared and not name.startswith("partition:"):
            known = [*FILE_COLUMNS, *declared]
            text = f"Files have no column {name!r}; they have: {', '.join(known)}.{did_you_mean(name, known)}"
            raise ColumnNotFoundError(text, column=name)

    def plan_files(self) -> ScanFiles:
        """Return the planned files for a reader of your own, with what makes rows of the scan of their content.

        Reads no data file, and deletion vectors only when they are needed.

        Raises
        ------
        UnsupportedOperationError
            For a scan with a limit, which no reader of one file can apply, and one of given rows of files.

        Examples
        --------
        >>> sorted(table.scan(columns=["id"]).plan_files().files.column("num_rows").to_pylist())
        [1, 2]
        """
        limit = self.plan.limit
        if limit is not None:
            raise UnsupportedOperationError(
                f"Found a scan with limit {limit}; expected one without: each reader of a file would apply it by "
                "itself. Leave the limit out, and stop reading after as many rows."
            )
        if self._files.keep is not None:
            raise UnsupportedOperationError("Found a scan of given rows of files, expected one of whole files.")
        return _Inputs(self, self._files).planned()

    def read_batches(self, texts: Texts = "plain", *, is_collected: bool = False) -> Iterator[pa.RecordBatch]:
        """See `PlannedRows`.

        Parameters
        ----------
        texts : str
            How strings are returned: ``plain``, ``codes`` or ``views``.
        is_collected : bool
            Whether the caller keeps all batches, so that memory need not be bounded.

        Examples
        --------
        >>> sum(batch.num_rows for batch in table.scan().read_batches("codes"))
        3
        """
        return self._batches(texts=texts, is_collected=is_collected)

    def _batches(
        self, counters: RunCounters | None = None, texts: Texts = "plain", *, is_collected: bool = False
    ) -> Iterator[pa.RecordBatch]:
        left = self.plan.limit
        if left is None:
            yield from self._read(_Inputs(self, self._files), counters, texts, is_collected=is_collected)
            return
        for inputs in self._in_parts(left):
            for batch in self._read(inputs, counters, texts):
                yield batch.slice(0, left)
                left -= batch.num_rows
                if left <= 0:
                    return

    def _in_parts(self, limit: int) -> Iterator[_Inputs]:
        """Yield the files that are enough for a limit by their statistics, then the rest."""
        if limit <= 0:
            return
        done: list[str] = []
        if self.plan.filter is None and self._files.keep is None:
            some = _Inputs(self, self._files.head(_FIRST_FILES))
            first = some.slice(0, some.enough_for(limit))
            yield first
            done = first.table.column("path").to_pylist()
        rest = _Inputs(self, self._files).without(done)
        if rest.paths:
            yield rest

    def explain(self, run: bool = False) -> ScanReport:
        """Return how the scan reads: the files that each step leaves, and where the parts of the predicate are tested.

        Parameters
        ----------
        run : bool
            Read the rows too, drop them, and report counts and times. Data files are opened only then.

        Notes
        -----
        The files are listed and pruned once more for it. A scan that is not explained counts nothing.

        Examples
        --------
        >>> table.scan(predicate="id = 3").explain().files[-1].files
        1
        """
        source, plan = self._source, self.plan
        files, steps = parts.prune_in_steps(
            lambda: source.files if self._given is None else self._given,
            self._skipping,
            source.engine.evaluator,
            source.timezone,
        )
        report = None
        if run:
            counters, start, rows = parts.RunCounters(), perf_counter(), 0
            for batch in self._batches(counters):
                rows += batch.num_rows
            report = counters.finished(rows, (perf_counter() - start) * 1000)
        return parts.ScanReport(
            repr(source),
            tuple(self.schema.names),
            plan.limit,
            steps,
            parts.describe_predicate(self._predicate, plan, self._rules, source.state, files.keep is None, self._build),
            parts.describe_effects(plan, self._rules, self._arguments[1], source.state, files),
            report,
        )

    def _build(self, expression: Expression) -> Compiled:
        """Compile an expression over the columns of the plan."""
        source = self._source
        return source.engine.evaluator.compile(expression, self.plan.types, source.plugins.functions)

    def count(self) -> int:
        """Return the number of rows; from statistics and footers if these report, else by reading.

        Notes
        -----
        Rows are counted without being read if no predicate, filter or check looks at them. An engine whose rows are on
        other machines counts them there.

        Examples
        --------
        >>> table.scan(predicate="city = 'Oslo'").count()
        2
        """
        known = self._known_count()
        if known is not None:
            return known if self.plan.limit is None else min(known, self.plan.limit)
        bare = Scan(
            self._source, (), predicate=self._predicate, limit=self.plan.limit, files=self._given, purpose=self._purpose
        )
        remote = self._source.engine.remote_rows
        return sum(batch.num_rows for batch in bare.batches()) if remote is None else remote.count(bare)

    def first(self) -> dict[str, Any] | None:
        """Return one of the rows, by column; None if there is none.

        Examples
        --------
        >>> table.scan(columns=["id", "city"]).first()
        {'id': 1, 'city': 'Oslo'}
        """
        remote = self._source.engine.remote_rows
        if remote is not None:
            return remote.first(self)
        return super().first()

    def bounds(self) -> tuple[Any, Any]:
        """Return the least and the greatest value of the only column of the scan; None without a value.

        Notes
        -----
        Reads the column; statistics may be truncated, or missing.

        Examples
        --------
        >>> table.scan(columns=["amount"]).bounds()
        (10.0, 30.0)
        """
        remote = self._source.engine.remote_rows
        if remote is not None:
            return remote.bounds(self)
        found = [pc.min_max(batch.column(0)).as_py() for batch in self.batches()]
        least, greatest = ([b[n] for b in found if b[n] is not None] for n in ("min", "max"))
        return (min(least), max(greatest)) if least else (None, None)

    def _known_count(self) -> int | None:
        if self.plan.filter is not None or self.plan.checks or self._files.keep is not None:
            return None
        inputs = _Inputs(self, self._files)
        dropped = inputs.vectors.num_dropped()
        return None if dropped is None else inputs.num_physical_rows() - dropped

    def _read(
        self,
        inputs: _Inputs,
        counters: RunCounters | None = None,
        texts: Texts = "plain",
        *,
        is_collected: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        plan, engine = self.plan, self._source.engine
        context = inputs.context()
        apply = parts.CompiledPlan(plan, context, self._build, texts=texts)
        # a file that is read at all is checked whole
        state = self._source.state
        prune = None if plan.checks else plan_row_groups(state, plan.pruning, self._skipping)
        read = FileRead(
            inputs.paths,
            inputs.sizes,
            plan.columns,
            plan.match,
            plan.physical,
            prune,
            encoded=True,
            keeps_codes=texts != "plain",
            types=self._source.state.types,
            opened=inputs.opened,
            selection=context.selection,
            tests=apply.tests(),
            tested_only=apply.tested_only(),
            apply_files=apply.whole_files,
            apply_passing=None if apply.looks_at_positions else apply.passing_files,
            select_files=None if apply.looks_at_positions else apply.select_files,
            requested=context.requested if context.drops_rows else None,
            most_rows=None if plan.filter is not None or plan.checks else plan.limit,
            most_passing=None if plan.filter is None or plan.checks else plan.limit,
            beside_write=self._beside_write,
            is_collected=is_collected,
        )
        read, called = (read, apply) if counters is None else counters.observed(read, apply)
        inputs.vectors.start()
        try:
            yield from engine.data.read(read, called)
        finally:
            inputs.vectors.close()


def offered_columns(source: ScanSource) -> dict[str, MetadataColumn]:
    """Return the metadata columns that scans of a table's rows can return, by name.

    A metadata column is left out if the table has a column of its name.
    """
    request = ReadRequest(None, (), None, "rows", ())
    offered = offered_metadata(source.plugins.collect("read_rules", table=source.state, request=request))
    return {name: column for name, column in offered.items() if source.state.schema.get(name) is None}


def _scan_again(
    source: ScanSource, columns: Any, metadata: Any, predicate: Any, limit: Any, constants: Any, purpose: Any
) -> Scan:
    return Scan(source, columns, metadata, predicate, limit, constants=constants, purpose=purpose)


def _bound(
    source: ScanSource,
    predicate: PredicateLike,
    metadata: Sequence[str],
    constants: Mapping[str, tuple[str | Expression, DataType]],
    purpose: Literal["rows", "changes"],
) -> Expression | None:
    """Return the predicate, bound to the table's schema. It may use the requested metadata columns and constants."""
    schema, functions = source.state.schema, source.plugins.functions
    try:
        return to_expression(predicate, schema, functions)
    except ColumnNotFoundError:
        if not metadata and not constants:
            raise
    own = {n: (FileConstant(v, t) if isinstance(v, str) else v, t) for n, (v, t) in constants.items()}
    request = ReadRequest(None, tuple(metadata), None, purpose, tuple(constants))
    offered = offered_metadata(source.plugins.collect("read_rules", table=source.state, request=request))
    own |= {n: (offered[n].expression, offered[n].type) for n in metadata if n in offered}
    own = {n: made for n, made in own.items() if schema.get(n) is None}
    extended = Schema([*schema.members, *(Field(n, t) for n, (_, t) in own.items())])
    found = to_expression(predicate, extended, functions)
    assert found is not None

    def made(leaf: Leaf) -> Expression:
        return own[leaf.path[0]][0] if isinstance(leaf, Column) and leaf.path[0] in own else leaf

    return to_expression(transform(found, made), schema, functions)


def _find_columns(source: ScanSource, columns: Sequence[str | Path]) -> tuple[Path, ...]:
    try:
        return resolve_columns(source.state.schema, columns)
    except ColumnNotFoundError:
        rules = source.plugins.collect("read_rules", table=source.state, request=ReadRequest())
        offered = {FILE_PATH, ROW_INDEX, *(r.name for r in rules if isinstance(r, MetadataColumn))}
        asked = next((c for c in columns if c in offered), None)
        if asked is None:
            raise
        raise ColumnNotFoundError(
            f"{asked} is no column of the table but a metadata column: request it in metadata, not in columns.",
            column=asked,
        ) from None


class _Inputs:
    """The files of one read as the engine needs them: decoded paths, constants, vectors."""

    def __init__(
        self, scan: Scan, files: FileSet, table: pa.Table | None = None, first: int = 0, *, has_order: bool = True
    ) -> None:
        self._scan = scan
        self._plan = scan.plan
        self._source = scan._source
        self._files = files
        self._first = first
        #: Whether the files are neighbours in the set.
        self._has_order = has_order
        self.table = files.columns(self._names()) if table is None else table
        self.paths = decode_paths(self.table.column("path"))
        self.sizes: list[int | None] = self.table.column("size").to_pylist()
        selectors, storage = self._plan.selectors, self._source.engine.storage
        self.vectors: Vectors | NoVectors = parts.Vectors(storage, selectors, self.table) if selectors else NoVectors()

    def _names(self) -> list[str]:
        names = ["path", "size", *(c for s in self._plan.selectors for c in s.columns)]
        for leaf in self._plan.constants:
            if isinstance(leaf, PartitionValue):
                names.append(f"partition:{leaf.name}")
            elif leaf != LOCATION:
                names.append(leaf.name)
        return list(dict.fromkeys(names))

    def slice(self, start: int, stop: int | None = None) -> _Inputs:
        """Return some of the files."""
        if start == 0 and (stop is None or stop >= len(self.paths)):
            return self
        count = len(self.paths) if stop is None else stop
        table, first = self.table.slice(start, count - start), self._first + start
        return _Inputs(self._scan, self._files, table, first, has_order=self._has_order)

    def without(self, paths: Sequence[str]) -> _Inputs:
        """Return the files but some, by their paths in the log: two looks at a file set may order files differently."""
        if not paths:
            return self
        given = self.table.column("path")
        kept = pc.invert(pc.is_in(given, value_set=array_of(paths, given.type)))
        return _Inputs(self._scan, self._files, pc.filter(self.table, kept), has_order=False)

    def enough_for(self, limit: int) -> int:
        """Return how many of the files hold a number of rows, as far as statistics report: at least one, if any."""
        counts = _filled(self._files.statistics([NUM_RECORDS]).column(0))
        dropped = np.zeros(len(counts), np.int64)
        for _, located in self.vectors.located:
            np.add.at(dropped, int64_values(located.column("file")), _filled(located.column("cardinality")))
        return min(int(np.searchsorted(np.cumsum(counts - dropped), limit)) + 1, len(counts))

    def num_physical_rows(self) -> int:
        """Return the rows of all files, from statistics, else from footers."""
        counts = self._files.statistics([NUM_RECORDS]).column(0)
        known = int(_filled(counts).sum())
        if not counts.null_count:
            return known
        missing = np.flatnonzero(~is_valid(counts))
        paths, sizes = [self.paths[i] for i in missing], [self.sizes[i] for i in missing]
        return known + sum(self._source.engine.data.row_counts(paths, sizes))

    def opened(self, file: int, num_rows: int) -> None:
        """Reject vectors and row sets that reach beyond the file."""
        dropped = self.vectors.rows(file)  # a vector that is missing or broken has its own error
        try:
            if dropped:
                dropped.check_fits(num_rows)
        except CorruptTableError as e:
            path = self.paths[file]
            raise DataFileError(f"The deleted rows of data file {path!r} do not fit it: {e}", path=path) from e

    def context(self) -> FileContext:
        """Return what applying the plan requires of each file."""
        columns = [self._constant(leaf) for leaf in self._plan.constants]
        kept = self._files.keep
        if kept is not None and self._first:
            kept = {file - self._first: rows for file, rows in kept.items()}
        uri = self._source.engine.storage.uri
        return FileContext(self.paths, columns, uri, self.vectors, self.opened, kept, self._num_rows)

    def planned(self) -> ScanFiles:
        """Return the files for a reader outside of this library."""
        source, plan = self._source, self._plan
        storage, state = source.engine.storage, source.state
        paths = self.table.column("path")
        uris = strings_of(path_uris(paths, storage.uri))
        constants = [uris if leaf == LOCATION else self._constant(leaf) for leaf in plan.constants]
        columns = {
            "path": paths,
            "uri": uris,
            "local_path": strings_of(storage.local_paths(self.paths)),
            "size": self.table.column("size"),
            "num_rows": self._files.statistics([NUM_RECORDS]).column(0),
        }
        values = {
            leaf.name: a for leaf, a in zip(plan.constants, constants, strict=True) if isinstance(leaf, PartitionValue)
        }
        partitions = {
            name: values[physical]
            for name in state.partition_columns
            if (physical := state.column_map.physical_path(state.schema, (name,))[0]) in values
        }
        if partitions:
            columns["partition_values"] = pa.StructArray.from_arrays(list(partitions.values()), list(partitions))
        vectors = self.table.select(list(dict.fromkeys(c for s in plan.selectors for c in s.columns)))
        context = parts.PlanContext(plan, source.engine.evaluator, source.plugins.functions, state.types)
        return parts.ScanFiles(context, pa.table(columns), constants, self.paths, None, vectors, storage)

    def _num_rows(self, first: int, stop: int) -> NDArray[np.int64] | None:
        counts = self._counts
        if counts is None:
            return None
        start = self._first + first
        found = counts.slice(start, stop - first)
        return None if found.null_count or len(found) < stop - first else int64_values(found)

    @cached_property
    def _counts(self) -> pa.ChunkedArray | None:
        """The physical rows of all files of the set by their statistics; None if this has some of them only."""
        return self._files.statistics([NUM_RECORDS]).column(0) if self._has_order else None

    def _constant(self, leaf: FileConstant | PartitionValue) -> pa.Array | None:
        """Return the typed values of all files, None for the files' own places, which are made when read."""
        state = self._source.state
        if isinstance(leaf, PartitionValue):
            text = self.table.column(f"partition:{leaf.name}")
            return value_parts.parse_partition_values(
                text, leaf.type, self._source.timezone, column=leaf.name, types=state.types
            )
        if leaf == LOCATION:
            return None
        column = one_array(self.table.column(leaf.name))
        wanted = leaf.type.to_arrow(state.types)
        return column if column.type.equals(wanted) else pc.cast(column, wanted)


def _filled(counts: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return counts, unknown ones as 0."""
    return np.where(is_valid(counts), int64_values(counts), 0)
