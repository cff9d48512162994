"""Checks of the data files themselves: their footers, or all of their rows, against what the log specifies."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import structs

from delta_core.engines.records import FilesStatistics
from delta_core.errors import (
    AccessDeniedError,
    DeltaError,
    EngineError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    shortened,
)
from delta_core.expressions.ast import NUM_RECORDS, Call, Expression, FileStatistic, Literal
from delta_core.expressions.coercion import bounds_type
from delta_core.kernel.commit.intents import read_columns
from delta_core.kernel.log.decimal_bounds import is_rounded, widen_bounds
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.indexed_columns import statistics_leaves
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.checks import Finding, UniqueCheck
from delta_core.kernel.plugins.encodings import encoded_names, stored_columns
from delta_core.kernel.plugins.rules import RowCheck
from delta_core.kernel.scan.scan import Scan
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.layout import arrow_type
from delta_core.kernel.write.stats import statistics_texts
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of, int64_values, is_valid, number_array, one_array
from delta_core.kernels.nested import reach
from delta_core.operations.verify.version import numbers_of, true_of
from delta_core.schema.fields import Path, format_path, leaf_fields
from delta_core.schema.types import PrimitiveType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StatisticsLeaves", "check_footers", "check_rows"]

Progress = Callable[[str, int, int], None]
_LONG = PrimitiveType("long")
_KINDS = ("min", "max", "nullCount")
#: Files whose footers are read at a time.
_WINDOW = 512
#: Later times are the same in every calendar that writers use.
_MODERN = dt.datetime(1900, 1, 2)  # noqa: DTZ001 (of all zones)
#: Functions whose value is that of the write.
_MOMENTS = frozenset({"now", "current_date", "current_timestamp", "localtimestamp", "rand", "randn", "uuid"})
#: Texts of footers that are longer may be cut.
_MOST_TEXT = 16
_RESTORE = "Restore the file from a copy, or write its rows again."
_WRONG = "Readers may leave the file out although it has matching rows: write its rows again."
_ROUNDED = (
    "Its writer recorded decimals as doubles, as deltalake does. Reads here allow for that, but other readers may "
    "leave the file out although it has matching rows: repair with deep=True drops such bounds; writing the rows "
    "again records exact ones."
)


_WITHOUT_BOUNDS = ("binary", "boolean", "variant", "void")


class StatisticsLeaves:
    """The statistics of columns that have an order, fields of structs among them, as the log has them.

    With ``of_values``, they are compared with values: bounds of encoded columns are among them if the log has any.
    """

    def __init__(self, snapshot: Snapshot, *, of_values: bool = False) -> None:
        state = snapshot.state
        bounded = ((p, bounds_type(t)) for p, t in statistics_leaves(state))
        kinds = {p: t for p, t in bounded if t is not None and t.type not in _WITHOUT_BOUNDS}
        both = zip(leaf_fields(snapshot.schema), leaf_fields(state.column_map.physical), strict=True)
        #: Logical paths, by physical ones.
        self.logical: dict[Path, Path] = {physical: path for (path, _), (physical, _) in both if physical in kinds}
        encoded = encoded_names(state, with_bounds=not of_values)
        #: The types of their bounds; null for encoded columns, whose bounds in files are not those of the values.
        self.types: dict[Path, pa.DataType] = {
            path: pa.null() if path[0] in encoded else kinds[path].to_arrow() for path in self.logical
        }
        self.all: list[FileStatistic] = [
            FileStatistic(k, p, kinds[p] if k != "nullCount" else _LONG)
            for p in self.logical
            for k in (_KINDS if p[0] not in encoded else ("nullCount",))
        ]
        tops = {path[0] for path in self.logical}
        #: The columns that contain them, as files have them.
        self.schema: pa.Schema = pa.schema(
            [(f.name, arrow_type(f.type, state.types)) for f in stored_columns(state) if f.name in tops]
        )


def check_footers(snapshot: Snapshot, progress: Progress) -> Iterator[Finding]:
    """Yield files whose footers can't be read, or contradict their statistics or the schema."""
    files = snapshot.files.columns(["path", "dvId"])
    leaves = StatisticsLeaves(snapshot)
    claimed = snapshot.files.statistics([NUM_RECORDS, *leaves.all])
    paths = decode_paths(files.column("path"))
    by_name = snapshot.state.column_map.match == "name"
    for start in range(0, len(paths), _WINDOW):
        progress("footers", start, len(paths))
        numbers = np.arange(start, min(start + _WINDOW, len(paths)))
        try:
            found = _footers(snapshot, paths, numbers, leaves, by_name)
        except DeltaError:
            found = []
            for i in numbers.tolist():
                try:
                    found += _footers(snapshot, paths, numbers[i - start : i - start + 1], leaves, by_name)
                except SchemaError as e:
                    yield Finding(
                        "data-file-columns", str(e), "columns of the table's types", _RESTORE, "error",
                        files.column("path")[i].as_py(), snapshot.version,
                    )  # fmt: skip
                    found += _footers(snapshot, paths, numbers[i - start : i - start + 1], leaves, False)
                except DeltaError as e:
                    yield from _unreadable(snapshot, files, i, e)
        for part, has_columns in found:
            yield from _check_footers(snapshot, files, claimed, leaves, part, has_columns)


def _footers(
    snapshot: Snapshot, paths: Sequence[str], numbers: NDArray[np.int64], leaves: StatisticsLeaves, with_columns: bool
) -> list[tuple[FilesStatistics, bool]]:
    """Return what the footers of some files report, with the files' numbers in the list of all."""
    schema, columns = (leaves.schema, list(leaves.types)) if with_columns else (pa.schema([]), [])
    footers = snapshot.engine.data.footers([paths[i] for i in numbers.tolist()])
    found = footers.statistics(schema, columns)
    return [(structs.replace(part, files=numbers[part.files]), with_columns) for part in found]


def _check_footers(
    snapshot: Snapshot, files: pa.Table, claimed: pa.Table, leaves: StatisticsLeaves, found: FilesStatistics,
    has_columns: bool,
) -> Iterator[Finding]:  # fmt: skip
    """Yield statistics that exclude values which the footers have; files with vectors may have narrower ones."""
    picked = number_array(found.files)
    part, have = files.take(picked), claimed.take(picked)
    listed = numbers_of(have.column(0))
    for i in np.flatnonzero((listed >= 0) & (listed != found.num_rows)).tolist():
        yield _finding(snapshot, part, i, f"numRecords is {listed[i]}", f"{found.num_rows[i]}, the rows of the file")
    if has_columns:
        texts = pa.table({"path": part.column("path"), "stats": statistics_texts(found, leaves.types)})
        should = FileSet.of(texts).statistics([NUM_RECORDS, *leaves.all])
        yield from _compare(snapshot, part, leaves, have, should, ~is_valid(part.column("dvId")), cut=True)


def _compare(
    snapshot: Snapshot, files: pa.Table, leaves: StatisticsLeaves, have: pa.Table, should: pa.Table,
    plain: NDArray[np.bool_], cut: bool,
) -> Iterator[Finding]:  # fmt: skip
    """Yield statistics that contradict what is there.

    ``have`` and ``should`` are the statistics as the log and as the files have them: the number of rows, then those of
    ``leaves``. ``plain`` are the files without deletion vector. ``cut``: the statistics are from footers, so that only
    those of ``plain`` files are compared, and texts may be cut.
    """
    rows_there = numbers_of(should.column(0))
    rows_listed = numbers_of(have.column(0))
    for number, leaf in enumerate(leaves.all, 1):
        listed, there = have.column(number), should.column(number)
        if leaf.kind == "nullCount":
            a, b = (numbers_of(c) for c in (listed, there))
            known = (a >= 0) & (b >= 0) & (plain if cut else True)
            misleading = known & ((a == 0) & (b > 0) | (a == rows_listed) & (b < rows_there))
            wrong = misleading | known & plain & (a != b)
            rounded = np.zeros(len(wrong), np.bool_)
        else:
            wrong = _excludes(leaf.kind, listed, there, cut)
            misleading = wrong = wrong & plain if cut else wrong
            rounded = wrong & _is_rounded(leaf.kind, listed, there, cut)
        column = format_path(leaves.logical[leaf.path])
        for i in np.flatnonzero(wrong).tolist():
            found, expected = (f"{leaf.kind} is {c[i]}" for c in (listed, there))
            is_error = bool(misleading[i] and not rounded[i])
            yield _finding(
                snapshot, files, i, found, f"{expected}, as the file has it", column, is_error, bool(rounded[i])
            )


def _excludes(kind: str, listed: pa.ChunkedArray, there: pa.ChunkedArray, cut: bool) -> NDArray[np.bool_]:
    """Return which bounds of the log exclude values that are there."""
    compare = pc.greater if kind == "min" else pc.less
    found = compare(listed, there)
    if pa.types.is_temporal(there.type):
        # writers differ in the calendar of earlier times
        found = pc.and_(found, pc.greater(there, pa.scalar(_MODERN, pa.timestamp("us")).cast(there.type)))
    if pa.types.is_timestamp(there.type):
        # texts have milliseconds: some writers cut a greatest value, others round it up
        there = pc.subtract(there, pa.scalar(1000, pa.duration("us"))) if kind == "max" else there
        found = pc.and_(found, compare(listed, there))
    elif pa.types.is_float64(there.type):
        # a column that was of type float has the shortest texts of floats
        found = pc.and_(found, compare(*(pc.cast(c, pa.float32(), safe=False) for c in (listed, there))))
    elif cut and pa.types.is_string(there.type):
        found = pc.and_(found, pc.less(pc.binary_length(there), _MOST_TEXT))
    return true_of(found)


def _is_rounded(kind: str, listed: pa.ChunkedArray, there: pa.ChunkedArray, cut: bool) -> NDArray[np.bool_]:
    """Return which bounds of the log exclude no value if their writer rounded them, as some do with decimals."""
    if not len(listed) or not is_rounded(there.type):
        return np.zeros(len(listed), np.bool_)
    return ~_excludes(kind, pa.chunked_array([widen_bounds(one_array(listed), kind == "max")]), there, cut)


def _finding(
    snapshot: Snapshot, files: pa.Table, row: int, found: str, expected: str, column: str | None = None,
    is_error: bool = True, rounds: bool = False
) -> Finding:  # fmt: skip
    rule, advice = ("statistics-rounded", _ROUNDED) if rounds else ("statistics-wrong", _WRONG)
    path = files.column("path")[row].as_py()
    return Finding(rule, found, expected, advice, "error" if is_error else "warning", path, snapshot.version, column)


def _unreadable(snapshot: Snapshot, files: pa.Table, row: int, error: DeltaError) -> Iterator[Finding]:
    if isinstance(error, AccessDeniedError):
        raise error
    if isinstance(error, FileNotFoundError):
        return  # reported as missing
    if isinstance(error, EngineError):
        raise error
    path = files.column("path")[row].as_py()
    yield Finding("data-file-unreadable", shortened(error), "a Parquet file", _RESTORE, "error", path, snapshot.version)


def check_rows(snapshot: Snapshot, progress: Progress) -> Iterator[Finding]:
    """Yield files whose rows can't be read or contradict their statistics, and conditions that rows break."""
    leaves = StatisticsLeaves(snapshot, of_values=True)
    files = snapshot.files.columns(read_columns(snapshot.action_fields))
    claimed = snapshot.files.statistics([NUM_RECORDS, *leaves.all])
    paths, sizes = decode_paths(files.column("path")), files.column("size").to_pylist()
    for i in range(files.num_rows):
        progress("rows", i, files.num_rows)
        one = files.slice(i, 1)
        try:
            (count,) = snapshot.engine.data.row_counts([paths[i]], [sizes[i]])
            found = _statistics_of(snapshot, one, leaves)
        except DeltaError as e:
            yield from _unreadable(snapshot, files, i, e)
            continue
        listed = claimed.column(0)[i].as_py()
        if listed is not None and listed != count:
            yield _finding(snapshot, one, 0, f"numRecords is {listed}", f"{count}, the rows of the file")
        plain = ~is_valid(one.column("dvId"))
        yield from _compare(snapshot, one, leaves, claimed.slice(i, 1), found, plain, cut=False)
    yield from _check_conditions(snapshot)
    yield from _check_unique(snapshot)


def _statistics_of(snapshot: Snapshot, file: pa.Table, leaves: StatisticsLeaves) -> pa.Table:
    """Return the statistics of a file's live rows; reads all of its columns, so that each is known to be readable."""
    low: dict[Path, pa.Scalar] = {}
    high: dict[Path, pa.Scalar] = {}
    nulls = dict.fromkeys(leaves.logical, 0)
    count = 0
    for batch in Scan(snapshot, files=FileSet.of(file)).to_reader():
        count += batch.num_rows
        for name, logical in leaves.logical.items():
            column = _reached(batch, logical)
            nulls[name] += column.null_count
            found = pc.min_max(column)
            bounds = ((low, found["min"], pc.less), (high, found["max"], pc.greater))
            for known, value, is_further in bounds:
                if value.is_valid and (name not in known or is_further(value, known[name]).as_py()):
                    known[name] = value
    columns = [array_of([count], pa.int64())]
    for leaf in leaves.all:
        name = leaf.path
        if leaf.kind == "nullCount":
            columns.append(array_of([nulls[name]], pa.int64()))
            continue
        value = (low if leaf.kind == "min" else high).get(name)
        columns.append(pa.nulls(1, leaves.types[name]) if value is None else pa.repeat(value, 1))
    return pa.Table.from_arrays(columns, [str(i) for i in range(len(columns))])


def _reached(batch: pa.RecordBatch, path: Path) -> pa.Array:
    column = batch.column(batch.schema.get_field_index(path[0]))
    places, t = [], column.type
    for part in path[1:]:
        places.append(t.get_field_index(part))
        t = t.field(places[-1]).type
    return reach(column, places)


def _check_conditions(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the conditions of the table, such as constraints, that live rows break."""
    try:
        rules = snapshot.plugins.collect("write_rules", table=snapshot.state, operation="WRITE")
    except (UnsupportedFeatureError, UnsupportedOperationError) as e:
        found, expected = f"the table's conditions are not known: {e}", "a table that can be written"
        advice = "Verify it with an engine that supports the table's features."
        yield Finding("conditions-not-checked", found, expected, advice, "information", version=snapshot.version)
        return
    for check in rules:
        if not isinstance(check, RowCheck) or any(f"{name}(" in check.sql.lower() for name in _MOMENTS):
            continue
        passed = Call("coalesce", (check.expression, Literal(check.null_passes, PrimitiveType("boolean"))))
        broken: Expression = Call("not", (passed,))
        count = snapshot.scan(columns=[], predicate=broken).count()
        if count:
            yield Finding(
                "rows-break-condition",
                f"{count} row{'s' * (count > 1)} for which {check.sql or check.name} is not true",
                f"rows that meet {check.name}",
                "Correct or delete these rows.",
                "warning",
                version=snapshot.version,
            )


def _check_unique(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the values that several rows have, of metadata columns that must not; takes 8 bytes a row."""
    for check in snapshot.plugins.collect("check_table", table=snapshot.state):
        if not isinstance(check, UniqueCheck):
            continue
        parts = [np.zeros(0, np.int64)]
        for batch in snapshot.scan(columns=[], metadata=(check.column,)).to_reader():
            column = batch.column(check.column)
            parts.append(int64_values(column)[is_valid(column)])
        values = np.sort(np.concatenate(parts))
        repeated = np.unique(values[1:][values[1:] == values[:-1]])
        if len(repeated):
            shown = ", ".join(map(str, repeated[:10].tolist())) + (", ..." if len(repeated) > 10 else "")
            found = f"{len(repeated)} value{'s' * (len(repeated) > 1)} of {check.column} in several rows: {shown}"
            yield Finding(check.rule, found, "a value of its own for each row", check.advice, version=snapshot.version)
