"""The log of a table with very many files, replayed by a Spark job.

Executors read the checkpoint, drop what newer commits touched, and test partition values and statistics; the files that
remain stay in the driver's JVM.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.interface import CheckpointHandle
from delta_core.engines.records import FileIdentity
from delta_core.engines.spark.expressions import to_column
from delta_core.engines.spark.failures import cause_of, reason
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.checkpoint_frame import (
    NUM_RECORDS,
    VECTOR,
    Shape,
    canonical_path,
    is_readable,
    leaf_type,
    vector_id,
)
from delta_core.engines.spark.plan.files import Rows, check_rows, hadoop_path, root_of
from delta_core.engines.spark.plan.indexed_route import IndexedRelation, VectorForm, constant_schema, internal_values
from delta_core.engines.spark.plan.names import VECTOR as VECTOR_COLUMN
from delta_core.engines.spark.plan.pruning import FilterReader
from delta_core.engines.spark.plan.replay_cache import CachedCheckpoint, CheckpointKey, Facts, cached_checkpoint, forget
from delta_core.engines.spark.types import spark_type
from delta_core.errors import CheckpointError, DeltaError, EngineError, InvalidArgumentError, LogChangedError, shortened
from delta_core.expressions.ast import (
    Call,
    Column as ColumnLeaf,
    Expression,
    FileConstant,
    FileStatistic,
    Literal,
    PartitionValue,
    Values,
    all_parts,
    conjuncts,
    leaves,
)
from delta_core.expressions.skipping import SkippingPlan
from delta_core.kernel.log.files import MOST_CHANGES, FileSet
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.protocol.actions import DELETION_VECTOR, FILE_COLUMNS
from delta_core.kernel.scan.plan import LOCATION
from delta_core.kernel.scan.scan import Scan
from delta_core.kernel.scan.vectors import read_row_sets
from delta_core.kernels.row_set import RowSet
from delta_core.runtime.processes import cached_property
from delta_core.schema.types import PrimitiveType, parse_decimal

__all__ = ["LEAST_ACTIONS", "MOST_CORES", "SETTING", "Replay", "plan_replay"]

_Found = TypeVar("_Found")

#: Actions of a checkpoint from which executors with many cores replay the log sooner than this process, which is done
#: with fewer before a job has begun; and how many cores: a core of an executor replays far fewer actions in a second.
LEAST_ACTIONS, MOST_CORES = 20_000_000, 32
#: The session's own number.
SETTING = "spark.delta_core.parallelPlanning.minActions"
#: Columns of file actions that Spark reads as they are.
_FIELDS = frozenset(
    {"size", "modificationTime", "dataChange", "baseRowId", "defaultRowCommitVersion", "clusteringProvider", "version"}
)
_TESTS = frozenset((
    "and", "or", "not", "=", "!=", "<=>", "<", "<=", ">", ">=", "isnull", "isnotnull", "in", "if", "isnan",
    "startswith",
    "like",
))  # fmt: skip
_TYPES = frozenset(
    ("byte", "short", "integer", "long", "float", "double", "boolean", "string", "binary", "date", "timestamp_ntz")
)
#: Vectors decoded at a time.
_WINDOW = 2048
#: The column of the protocol's descriptors, and what else is handed over of a file under names of its own.
_VECTOR = "deletionVector"
_NAMES = frozenset({"path", "records", *(f.name.lower() for f in VECTOR)})
#: Types whose values are the same in JSON.
_HANDED = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)


def plan_replay(spark: Any, scan: Scan, least: int | None) -> Replay | None:
    """Return a scan's files as a job finds them; None for a checkpoint that is too small, or not of plain columns.

    Parameters
    ----------
    spark : SparkSession
        The session whose executors would run the job.
    scan : Scan
        The scan, whose files need not be loaded.
    least : int, optional
        Actions of a checkpoint from which a job is worth it; the session's unless given.
    """
    requested = _requested_actions(spark, least)
    source = scan.source
    touched = getattr(source, "touched", None)
    if not private.is_available(spark) or not scan.is_of_table or touched is None:
        return None
    parts = source.files.parts
    older = [(p, p.chunk.place) for p in parts if p.chunk.place is not None]
    count = sum(h.group_rows[g] for _, (h, g) in older)
    if not older or count < (LEAST_ACTIONS if requested is None else requested):
        return None
    if requested is None and count * _cores(spark) < LEAST_ACTIONS * MOST_CORES:
        return None
    if any(p.alive is not None or p.candidates is not None for p, _ in older):
        return None
    handles = {id(h): h for _, (h, _) in older}
    own = {f.name: f.type for f in getattr(source, "action_fields", ()) if f.action == "add"}
    selected = _Selected.of(scan, own)
    constants = _constants(scan)
    if selected is None or not (_FIELDS | own.keys()).issuperset(constants):
        return None
    if not is_readable(list(handles.values()), [*constants, *selected.fields]):
        return None
    tail = FileSet([p for p in parts if p.chunk.place is None], source.engine.map)
    has_vectors = any(not h.all_null(g, ("add", _VECTOR, "storageType")) for _, (h, g) in older)
    return Replay(
        spark, scan, list(handles.values()), tail, touched(), selected, has_vectors and _VECTOR in selected.columns
    )


class _Selected(NamedTuple):
    """The facts about each file that the row selectors of a scan need.

    Parameters
    ----------
    columns : tuple of str
        Columns of the file table.
    fields : Mapping of str to pyarrow.DataType
        Those of them that are fields of ``add``, and neither of these two: its path and its vector.
    is_by_vector : bool
        Whether the protocol's descriptor alone decides which files have dropped rows.
    """

    columns: tuple[str, ...]
    fields: Mapping[str, pa.DataType]
    is_by_vector: bool

    @staticmethod
    def of(scan: Scan, own: Mapping[str, pa.DataType]) -> _Selected | None:
        """Return what the selectors need, None if it can't be handed over as JSON; ``own``: fields of plugins."""
        columns = tuple(dict.fromkeys(c for s in scan.plan.selectors for c in s.columns))
        known = {n: FILE_COLUMNS[n] for n in _FIELDS} | dict(own)
        fields = {c: known.get(c) for c in columns if c not in ("path", _VECTOR)}
        typed = {c: t for c, t in fields.items() if t is not None and any(test(t) for test in _HANDED)}
        # fields of a vector have these names in the JSON
        if typed.keys() != fields.keys() or _NAMES.intersection(name.lower() for name in typed):
            return None
        return _Selected(columns, typed, all(s.columns == (_VECTOR,) for s in scan.plan.selectors))

    def table(self, found: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Return the columns of files, from what was handed over for each."""
        columns: dict[str, pa.Array] = {}
        for name in self.columns:
            if name == _VECTOR:
                vectors = [
                    {f.name: d.get(f.name) for f in DELETION_VECTOR} if "storageType" in d else None for d in found
                ]
                columns[name] = pa.array(vectors, DELETION_VECTOR)
            else:
                columns[name] = pa.array([d.get(name) for d in found], self.fields.get(name, pa.string()))
        return pa.table(columns) if columns else pa.table({"path": pa.array([str(d["path"]) for d in found])})


def _constants(scan: Scan) -> list[str]:
    """Return the columns of file actions that the scan attaches to rows, each once."""
    found = [c.name for c in scan.plan.constants if isinstance(c, FileConstant) and c != LOCATION]
    return list(dict.fromkeys(found))


def _cores(spark: Any) -> int:
    return min(MOST_CORES, max(1, int(spark.sparkContext.defaultParallelism)))


def _requested_actions(spark: Any, given: int | None) -> int | None:
    """Return the number of actions that the call or the session requests."""
    found = spark.conf.get(SETTING, None) if given is None else given
    if found is None:
        return None
    try:
        number = int(found)
    except ValueError:
        number = -1
    if number < 0:
        raise InvalidArgumentError(f"Found {found!r} for {SETTING}, expected a number of actions, from 0 on.")
    return number


class Replay:
    """The files of a scan, found by jobs over the checkpoint when a query is planned.

    Parameters
    ----------
    tail : FileSet
        The live files of the commits above the checkpoint.
    touched : pyarrow.Table
        Path and vector id of what these commits touch.
    selected : _Selected
        The facts about each file that row selectors need.
    has_vectors : bool
        Whether files of the checkpoint may have descriptors of vectors that are needed.
    """

    def __init__(
        self,
        spark: Any,
        scan: Scan,
        handles: Sequence[CheckpointHandle],
        tail: FileSet,
        touched: pa.Table,
        selected: _Selected,
        has_vectors: bool,
    ) -> None:
        self._spark = spark
        self._scan = scan
        self._tail = tail
        self._touched = touched
        source = scan.source
        state = source.state
        self._uri = source.engine.storage.uri_for_engine
        physical = [state.column_map.physical_path(state.schema, (c,))[0] for c in state.partition_columns]
        self._selected = selected
        constants = dict.fromkeys([*_constants(scan), *selected.fields])
        self._base = Shape(tuple(physical), tuple(constants), has_vectors, records=not selected.is_by_vector)
        self._take(handles)
        #: Files that a thread handed to the driver stay known to this process until the driver has taken them.
        self._handed = threading.local()

    def _mark(self) -> Column:
        """Return whether a file may have dropped rows."""
        return F.col("vector").isNotNull() if self._selected.is_by_vector else F.lit(True)

    def _take(self, handles: Sequence[CheckpointHandle]) -> None:
        self._files = {hadoop_path(self._uri(h.path)): h for h in handles}
        self._key = CheckpointKey(
            str(self._spark.sparkContext.applicationId),
            self._uri(""),
            self._scan.source.state.metadata.id,
            self._identities(handles),
        )

    def _identities(self, handles: Sequence[CheckpointHandle]) -> tuple[tuple[str, FileIdentity], ...]:
        paths = [h.path for h in handles]
        try:
            return tuple(zip(paths, self._scan.source.engine.storage.identify(paths), strict=True))
        except FileNotFoundError as e:
            raise self._failure(str(e), shortened(e)) from e

    # --- what is read of the table as a whole ----------------------------------------------

    @cached_property
    def facts(self) -> Facts:
        """Sums over all live files; raises CheckpointError if the checkpoint can't be read."""
        return self._reading(self._found_facts)

    def _found_facts(self) -> Facts:
        checkpoint = self._cached(())
        version = self._scan.source.state.version
        found = checkpoint.facts.get(version)
        if found is None:
            found = self._sum(checkpoint)
            checkpoint.remember(version, found)
        return found

    def _sum(self, checkpoint: CachedCheckpoint) -> Facts:
        every = self._all_live(checkpoint, SkippingPlan(None, None))
        marked = self._mark()
        records = F.col("records")
        row = every.agg(
            F.sum("size"),
            F.count_if(marked),
            F.sum(F.col("vector.sizeInBytes")),
            F.count_if(marked & records.isNull()),
            F.sum(F.when(marked, F.floor((records + 63) / 64) * 8)),
            F.max(F.when(marked, records)),
        ).collect()[0]
        size, count, stored, unknown, bits, largest = (0 if v is None else int(v) for v in row)
        # how large the vectors of any selector are is not known before they are read
        return Facts(size, count, stored if self._selected.is_by_vector else bits, None if unknown else bits, largest)

    def read(self, relation: IndexedRelation) -> DataFrame:
        """Return the raw columns and constants of all rows that are not dropped, as `read_indexed` does."""
        facts = self.facts
        vectors = VectorForm((VECTOR_COLUMN,) if facts.num_vectors else (), facts.bits, facts.stored)
        filters = FilterReader(relation.scan, relation.shown, relation.logical)

        def answer(request: str) -> Any:
            if request == "size":
                return str(facts.size)
            if request.startswith("files "):
                text = request.removeprefix("files ")
                skipping = filters.plan(text)
                # what drops no file is answered by all files, which are found once
                return self._select(skipping, vectors) if text == "[]" or self._prunes(skipping) else None
            return self._write_vectors(vectors, request.split("\n")[1:])

        return relation.make(self._spark, vectors, "replayed", answer)

    def _prunes(self, skipping: SkippingPlan) -> bool:
        return any(map(_Tests(self._spark, self._scan, SkippingPlan(None, None)).is_known, _parts(skipping)))

    # --- the job ---------------------------------------------------------------------------

    def _cached(self, statistics: tuple[FileStatistic, ...]) -> CachedCheckpoint:
        base = self._base
        shape = Shape(base.partitions, base.constants, base.vectors, statistics, base.records)
        return cached_checkpoint(self._spark, self._key, self._files, shape)

    def _select(self, skipping: SkippingPlan, vectors: VectorForm) -> Any:
        """Return the files that a filter leaves, for the driver."""
        tests = _Tests(self._spark, self._scan, skipping)
        found = self._reading(lambda: self._collect(self._cached(tests.statistics), skipping, vectors))
        self._handed.rows = found
        return found

    def _collect(self, checkpoint: CachedCheckpoint, skipping: SkippingPlan, vectors: VectorForm) -> Any:
        spark, scan = self._spark, self._scan
        state = scan.source.state
        kinds = ""
        columns: list[Column] = []
        shape = checkpoint.shape
        for leaf in scan.plan.constants:
            if leaf == LOCATION:
                kind, column = "p", F.lit(None).cast("string")
            elif isinstance(leaf, PartitionValue):
                kind, column = "t", F.col(shape.partition(leaf.name))
            else:
                kind, column = "v", F.col(shape.constant(leaf.name)).cast(spark_type(leaf.type, state.types))
            kinds += kind
            columns.append(column.alias(f"value_{len(columns)}"))
        files = self._all_live(checkpoint, skipping).select("path", "size", self._descriptor(shape), *columns)
        found = private.ReplayedRows(spark, files, kinds, constant_schema(scan, vectors))
        for i, leaf in enumerate(scan.plan.constants):
            if isinstance(leaf, PartitionValue) and (texts := found.texts(i)):
                zone, text = scan.source.timezone, pa.array(texts, pa.string())
                values = parse_partition_values(text, leaf.type, zone, column=leaf.name, types=state.types)
                found.type(i, spark.createDataFrame(pa.table({"value": internal_values(values)})))
        self._place(found)
        root = root_of(self._uri)
        return found.finish(root, hadoop_path(root))

    def _descriptor(self, shape: Shape) -> Column:
        """Return what selectors need of the files that may have dropped rows, as JSON."""
        vector = F.col("vector")
        parts = [vector.getField(f.name).alias(f.name) for f in VECTOR]
        parts += [F.col(shape.constant(name)).alias(name) for name in self._selected.fields]
        return F.when(self._mark(), F.to_json(F.struct("path", *parts, "records"))).alias("descriptor")

    def _place(self, found: private.ReplayedRows) -> None:
        odd = found.odd()
        if not odd:
            return
        named = dict(zip(odd, decode_paths(pa.chunked_array([pa.array(odd, pa.string())])), strict=True))
        unsized = found.unsized()
        stats = self._scan.source.engine.storage.stat([named[p] for p in unsized]) if unsized else []
        sizes = dict(zip(unsized, (size for size, _ in stats), strict=True))
        for path, name in named.items():
            place = self._uri(name)
            found.place(path, place, hadoop_path(place), sizes.get(path, 0))

    def _all_live(self, checkpoint: CachedCheckpoint, skipping: SkippingPlan) -> DataFrame:
        """Return the live files that a filter leaves: those of newer commits, then the checkpoint's."""
        tests = _Tests(self._spark, self._scan, skipping)
        older = tests.apply(checkpoint.frame, checkpoint.shape)
        if self._touched.num_rows:
            keys = self._spark.createDataFrame(_strings(self._touched))
            keys = keys.select(
                canonical_path(F.col("path")).alias("touched_path"), F.col("dvId").alias("touched_vector")
            )
            same = canonical_path(F.col("path")) == F.col("touched_path")
            same &= vector_id(F.col("vector")).eqNullSafe(F.col("touched_vector"))
            older = older.join(F.broadcast(keys), same, "left_anti")
        columns = ["path", "size", "vector", "records"]
        columns += [checkpoint.shape.partition(n) for n in self._base.partitions]
        columns += [checkpoint.shape.constant(n) for n in self._base.constants]
        newer = self._newer(checkpoint.shape, skipping)
        older = older.select(columns)
        return older if newer is None else newer.select(columns).unionAll(older)

    def _newer(self, shape: Shape, skipping: SkippingPlan) -> DataFrame | None:
        """Return the files of newer commits, which this process has parsed already."""
        source, files = self._scan.source, self._tail
        evaluator, zone = source.engine.evaluator, source.timezone
        for plan in (self._scan.skipping, skipping):
            files = files.where(plan.partition, evaluator, zone, exact=True).where(plan.statistics, evaluator, zone)
        if not files.count:
            return None
        base = self._base
        names = ["path", "size", "deletionVector", *(f"partition:{n}" for n in base.partitions), *base.constants]
        table = files.columns(list(dict.fromkeys(names)))
        columns = {n: table.column(n) for n in ("path", "size")}
        columns["vector"] = table.column("deletionVector").cast(DELETION_VECTOR)
        columns["records"] = files.statistics([NUM_RECORDS]).column(0)
        for n in base.partitions:
            columns[shape.partition(n)] = table.column(f"partition:{n}").cast(pa.string())
        for n in base.constants:
            columns[shape.constant(n)] = table.column(n)
        frame = self._spark.createDataFrame(_strings(pa.table(columns)))
        vector = F.when(F.col("vector.storageType").isNotNull(), F.col("vector").cast(VECTOR)).alias("vector")
        rest = [F.col(c) for c in columns if c not in ("path", "size", "vector")]
        return frame.select("path", "size", vector, *rest)

    def _reading(self, job: Callable[[], _Found]) -> _Found:
        """Run a job over the checkpoint; what it can't read is named as on the driver.

        Executors open files by name: if one was replaced meanwhile, the result may be of both, and the job runs again
        on the files of a fresh listing.
        """
        for _ in range(MOST_CHANGES):
            failure: Exception | None = None
            try:
                found = job()
            except DeltaError:
                raise
            except Exception as e:  # noqa: BLE001 (raised below, where the files are those that were listed)
                failure = e
            if self._identities(list(self._files.values())) == self._key.files:
                if failure is None:
                    return found
                forget(self._key)
                raise self._failure(str(failure), reason(failure)) from cause_of(failure)
            forget(self._key)
            self._start_again()
        raise LogChangedError.of_replaced(self._key.files[0][0])

    def _start_again(self) -> None:
        source: Any = self._scan.source
        source.reload()
        parts = source.files.parts
        handles = {id(h): h for h, _ in (p.chunk.place for p in parts if p.chunk.place is not None)}
        if not handles:
            raise LogChangedError.of_replaced(self._key.files[0][0])
        self._tail = FileSet([p for p in parts if p.chunk.place is None], source.engine.map)
        self._touched = source.touched()
        self._take(list(handles.values()))

    def _failure(self, text: str, shown: str) -> DeltaError:
        storage = self._scan.source.engine.storage
        for handle in self._files.values():
            try:
                storage.stat([handle.path])
            except FileNotFoundError:
                return CheckpointError.of_missing(handle.path)
        broken = next((h.path for h in self._files.values() if h.path.rpartition("/")[2] in text), None)
        if broken is None:
            return EngineError(f"The log of {self._uri('')} can't be replayed by Spark: {shown}", path=self._uri(""))
        return CheckpointError.of_unreadable(broken, shown)

    # --- vectors ---------------------------------------------------------------------------

    def _write_vectors(self, form: VectorForm, lines: Sequence[str]) -> str:
        numbers: list[int] = []
        found: list[Mapping[str, Any]] = []
        for line in lines:
            number, _, descriptor = line.partition(" ")
            numbers.append(int(number))
            found.append(json.loads(descriptor))
        paths = dict(zip(numbers, (str(d["path"]) for d in found), strict=True))
        return form.write(self._rows(numbers, found), lambda n: _decoded(paths[n]))

    def _rows(self, numbers: Sequence[int], found: Sequence[Mapping[str, Any]]) -> Iterator[Rows]:
        storage, selectors = self._scan.source.engine.storage, self._scan.plan.selectors
        for start in range(0, len(numbers), _WINDOW):
            window = found[start : start + _WINDOW]
            sets = read_row_sets(storage, selectors, self._selected.table(window))
            for at, descriptor in enumerate(window):
                rows = sets.get(at, RowSet.empty())
                check_rows(rows, descriptor.get("records"), _decoded(str(descriptor["path"])))
                yield Rows(numbers[start + at], rows, False)


def _parts(skipping: SkippingPlan) -> list[Expression]:
    return [*conjuncts(skipping.partition), *conjuncts(skipping.statistics)]


def _decoded(path: str) -> str:
    return decode_paths(pa.chunked_array([pa.array([path], pa.string())]))[0]


def _strings(table: pa.Table) -> pa.Table:
    """Return a table of plain strings, whichever way these were kept."""
    plain = [pa.string() if pa.types.is_dictionary(t) or pa.types.is_null(t) else t for t in table.schema.types]
    return table.cast(pa.schema(list(zip(table.column_names, plain, strict=True))))


class _Tests:
    """The tests of files that Spark makes, weaker than the kernel's if they might not mean the same."""

    def __init__(self, spark: Any, scan: Scan, skipping: SkippingPlan) -> None:
        zones = {str(spark.conf.get("spark.sql.session.timeZone")).upper(), scan.source.timezone.upper()}
        self._types = _TYPES | ({"timestamp"} if zones <= {"UTC", "ETC/UTC"} else frozenset())
        self._functions = scan.source.plugins.functions
        plans = (scan.skipping, skipping)
        self._partition = [e for p in plans for e in conjuncts(p.partition) if self.is_known(e)]
        self._statistics = [e for p in plans for e in conjuncts(p.statistics) if self.is_known(e)]
        found = dict.fromkeys(leaf for e in self._statistics for leaf in leaves(e) if isinstance(leaf, FileStatistic))
        #: The statistics that are looked at.
        self.statistics = tuple(found)

    def is_known(self, e: Expression) -> bool:
        """Whether Spark requires this as the kernel does."""
        return all(map(self._is_known_part, all_parts(e)))

    def _is_known_part(self, e: Expression) -> bool:
        if isinstance(e, Call):
            return e.function in _TESTS
        if isinstance(e, FileStatistic):
            return _is_typed(leaf_type(e), _TYPES | {"timestamp"})
        if isinstance(e, PartitionValue):
            return isinstance(e.type, PrimitiveType) and _is_typed(e.type.type, self._types)
        return isinstance(e, (Literal, Values))

    def apply(self, files: DataFrame, shape: Shape) -> DataFrame:
        """Return the files that may pass: partition values are queried before statistics."""
        every = [*self._partition, *self._statistics]
        values = dict.fromkeys(leaf for e in every for leaf in leaves(e) if isinstance(leaf, PartitionValue))
        names = {leaf: f"typed_{i}" for i, leaf in enumerate(values)}
        typed = [_typed(_text(shape, leaf), leaf).alias(name) for leaf, name in names.items()]
        out = files.select("*", *typed) if typed else files

        def place(leaf: Any) -> Expression:
            return ColumnLeaf((names[leaf] if isinstance(leaf, PartitionValue) else shape.leaf(leaf),))

        def test(e: Expression, unknown: bool) -> Column:
            passed = F.coalesce(to_column(e, place, self._functions), F.lit(unknown))
            for leaf in leaves(e):
                if isinstance(leaf, PartitionValue):  # what is no value of the type is rejected by name, later
                    passed |= F.col(names[leaf]).isNull() & _text(shape, leaf).isNotNull()
            return passed

        for e in self._partition:
            out = out.where(test(e, unknown=False))
        for e in self._statistics:
            out = out.where(test(e, unknown=True))
        return out


def _is_typed(kind: str, known: frozenset[str]) -> bool:
    return kind in known or parse_decimal(kind) is not None


def _text(shape: Shape, leaf: PartitionValue) -> Column:
    return F.nullif(F.col(shape.partition(leaf.name)), F.lit(""))


def _typed(text: Column, leaf: PartitionValue) -> Column:
    kind = str(leaf.type.type)
    return text if kind == "string" else text.cast("binary") if kind == "binary" else text.try_cast(kind)
