"""Checks of the data files themselves: their footers, or all of their rows, against what the log specifies."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.commit.intents import read_columns
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
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import is_valid
from delta_core.log.files import FileSet
from delta_core.log.indexed_columns import statistics_leaves
from delta_core.log.paths import decode_paths
from delta_core.operations.verify_files import numbers_of, true_of
from delta_core.plugins.checks import Finding
from delta_core.plugins.rules import RowCheck
from delta_core.protocol.types import PrimitiveType
from delta_core.scan.scan import Scan
from delta_core.snapshot import Snapshot
from delta_core.write.stats import statistics_json

__all__ = ["check_footers", "check_rows"]

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


class _Leaves:
    """The statistics of columns that have an order: top-level ones, as the log has them."""

    def __init__(self, snapshot: Snapshot) -> None:
        kinds = {p[0]: t for p, t in statistics_leaves(snapshot.state) if len(p) == 1 and _is_ordered(t)}
        fields = zip(snapshot.schema.fields, snapshot.state.column_map.physical.fields, strict=True)
        #: Logical names, by physical ones.
        self.logical = {p.name: f.name for f, p in fields if p.name in kinds}
        self.types = {name: kinds[name].to_arrow() for name in self.logical}
        self.all = [
            FileStatistic(k, (n,), kinds[n] if k != "nullCount" else _LONG) for n in self.logical for k in _KINDS
        ]


def _is_ordered(kind: object) -> bool:
    return isinstance(kind, PrimitiveType) and kind.type not in ("binary", "boolean", "variant", "void")


def check_footers(snapshot: Snapshot, progress: Progress) -> Iterator[Finding]:
    """Yield files whose footers can't be read, or contradict their statistics or the schema."""
    files = snapshot.files.columns(["path", "size", "dvId"])
    leaves = _Leaves(snapshot)
    claimed = snapshot.files.statistics([NUM_RECORDS, *leaves.all])
    paths, sizes = decode_paths(files.column("path")), files.column("size").to_pylist()
    counts = np.full(len(paths), -1, np.int64)
    for start in range(0, len(paths), _WINDOW):
        progress("footers", start, len(paths))
        window = slice(start, start + _WINDOW)
        try:
            counts[window] = snapshot.engine.data.row_counts(paths[window], sizes[window])
        except DeltaError:
            for i in range(*window.indices(len(paths))):
                try:
                    (counts[i],) = snapshot.engine.data.row_counts([paths[i]], [sizes[i]])
                except DeltaError as e:
                    yield from _unreadable(snapshot, files, i, e)
    listed = numbers_of(claimed.column(0))
    for i in np.flatnonzero((listed >= 0) & (counts >= 0) & (listed != counts)).tolist():
        yield _finding(snapshot, files, i, f"numRecords is {listed[i]}", f"{counts[i]}, the rows of the file")
    by_name = snapshot.state.column_map.match == "name"
    readable = np.flatnonzero(counts >= 0)
    for start in range(0, len(readable) if by_name else 0, _WINDOW):
        progress("statistics", start, len(readable))
        yield from _check_bounds(snapshot, files, claimed, leaves, paths, readable[start : start + _WINDOW])


def _check_bounds(
    snapshot: Snapshot, files: pa.Table, claimed: pa.Table, leaves: _Leaves, paths: Sequence[str], rows: NDArray[np.int64]
) -> Iterator[Finding]:  # fmt: skip
    """Yield statistics that exclude values which the footers have; files with vectors may have narrower ones."""
    schema = pa.schema(list(leaves.types.items()))
    names = [(n,) for n in leaves.types]
    good, stats = [], []
    data = snapshot.engine.data
    for i in rows.tolist():
        try:
            (found,) = data.describe([paths[i]], schema, names, strict=False)
        except SchemaError as e:
            yield Finding(
                "data-file-columns", str(e), "columns of the table's types", _RESTORE, "error",
                files.column("path")[i].as_py(), snapshot.version,
            )  # fmt: skip
            continue
        good.append(i)
        stats.append(statistics_json(found.num_rows, found.statistics, {(n,): t for n, t in leaves.types.items()}))
    picked = pa.array(good, pa.int64())
    part, have = files.take(picked), claimed.take(picked)
    texts = pa.table({"path": part.column("path"), "stats": pa.array(stats, pa.string())})
    should = FileSet.of(texts).statistics([NUM_RECORDS, *leaves.all])
    plain = ~is_valid(part.column("dvId"))
    yield from _compare(snapshot, part, leaves, have, should, plain, cut=True)


def _compare(
    snapshot: Snapshot, files: pa.Table, leaves: _Leaves, have: pa.Table, should: pa.Table, plain: NDArray[np.bool_],
    cut: bool,
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
        else:
            wrong = _excludes(leaf.kind, listed, there, cut)
            misleading = wrong = wrong & plain if cut else wrong
        column = leaves.logical[leaf.path[0]]
        for i in np.flatnonzero(wrong).tolist():
            found, expected = (f"{leaf.kind} is {c[i]}" for c in (listed, there))
            yield _finding(snapshot, files, i, found, f"{expected}, as the file has it", column, bool(misleading[i]))


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


def _finding(
    snapshot: Snapshot, files: pa.Table, row: int, found: str, expected: str, column: str | None = None, error: bool = True
) -> Finding:  # fmt: skip
    advice = "Readers may leave the file out although it has matching rows: write its rows again."
    path = files.column("path")[row].as_py()
    return Finding(
        "statistics-wrong", found, expected, advice, "error" if error else "warning", path, snapshot.version, column
    )


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
    leaves = _Leaves(snapshot)
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


def _statistics_of(snapshot: Snapshot, file: pa.Table, leaves: _Leaves) -> pa.Table:
    """Return the statistics of a file's live rows; reads all of its columns, so that each is known to be readable."""
    low: dict[str, pa.Scalar] = {}
    high: dict[str, pa.Scalar] = {}
    nulls = dict.fromkeys(leaves.logical, 0)
    count = 0
    for batch in Scan(snapshot, files=FileSet.of(file)).to_reader():
        count += batch.num_rows
        for name, logical in leaves.logical.items():
            column = batch.column(batch.schema.get_field_index(logical))
            nulls[name] += column.null_count
            found = pc.min_max(column)
            bounds = ((low, found["min"], pc.less), (high, found["max"], pc.greater))
            for known, value, is_further in bounds:
                if value.is_valid and (name not in known or is_further(value, known[name]).as_py()):
                    known[name] = value
    columns = [pa.array([count], pa.int64())]
    for leaf in leaves.all:
        name = leaf.path[0]
        if leaf.kind == "nullCount":
            columns.append(pa.array([nulls[name]], pa.int64()))
            continue
        value = (low if leaf.kind == "min" else high).get(name)
        columns.append(pa.nulls(1, leaves.types[name]) if value is None else pa.repeat(value, 1))
    return pa.Table.from_arrays(columns, [str(i) for i in range(len(columns))])


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
