"""The report of a Delta table: the log and the statistics of its files are read, data files are not."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from delta_core import operations
from delta_core.errors import LogError, UnsupportedOperationError, VersionNotFoundError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.timestamps import format_ms
from delta_core.kernels.arrow_buffers import int64_values, is_valid, values_of
from delta_core.operations.report.facts import (
    ColumnOrder,
    Compaction,
    Coverage,
    LogUpkeep,
    PartitionSize,
    ServedFeature,
    VersionSize,
    histogram,
    table_checks,
)
from delta_core.operations.report.table_report import TableReport
from delta_core.table import interop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.kernel.snapshot import Snapshot

__all__ = ["order_of", "partition_sizes", "report_of"]

#: Versions, columns, partitions and spans of a column that a report shows at most.
MOST_VERSIONS, MOST_COLUMNS, MOST_PARTITIONS, MOST_SPANS = 100, 12, 20, 120
_RETENTION = {
    "delta.logRetentionDuration": ("history", "interval 30 days"),
    "delta.deletedFileRetentionDuration": ("removed files", "interval 1 week"),
}


def report_of(snapshot: Snapshot, *, store: bool = True) -> TableReport:
    """Return the report of a version.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    store : bool
        Whether the store is listed, for files that are missing, and for those that a vacuum would delete.

    Raises
    ------
    EngineError
        If the store fails.
    """
    start = perf_counter()
    sizes = interop.sizes(snapshot)
    files = interop.file_table(snapshot, statistics=True)
    each = int64_values(files.column("size"))
    clustered = {".".join(p) for p in snapshot.plugins.request_values("cluster_by", snapshot.state)}
    partitions, skew = partition_sizes(_partitions(files, snapshot.state.partition_columns), each)
    verified = operations.verify_table(snapshot.context, snapshot, operations.VerifyOptions(False, store))
    metadata, protocol = snapshot.metadata, snapshot.protocol
    report = TableReport(
        uri=shown_uri(interop.root_uri(snapshot)),
        format="Delta",
        version=snapshot.version,
        timestamp=snapshot.timestamp_ms,
        facts={
            "Name": metadata.name or "",
            "Description": metadata.description or "",
            "Id": metadata.id,
            "Created": format_ms(metadata.created_time, snapshot.timezone) or "",
            "Columns": f"{len(snapshot.schema)}",
            "Partitioned by": ", ".join(snapshot.state.partition_columns),
            "Clustered by": ", ".join(sorted(clustered)),
            "Protocol": f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}",
        },
        files=sizes.files or 0,
        size_bytes=sizes.size_bytes or 0,
        rows=sizes.rows,
        deleted_rows=sizes.deleted_rows,
        sizes=histogram(each),
        compaction=_compaction(snapshot),
        versions=_versions(snapshot, sizes.files or 0, sizes.size_bytes or 0),
        orders=_orders(files, clustered),
        partitions=partitions[:MOST_PARTITIONS],
        num_partitions=len(partitions),
        skew=skew,
        coverage=_coverage(files),
        features=_features(snapshot),
        log=_log(snapshot),
        unused=_unused(snapshot) if store else None,
        findings=tuple(verified.findings.to_pylist()),
    )
    return replace(report, checks=table_checks(report), seconds=perf_counter() - start)


def _compaction(snapshot: Snapshot) -> Compaction:
    groups = operations.plan_optimize(snapshot, operations.OptimizeOptions()).groups
    size = sum(int(int64_values(g.files.column("size")).sum()) for g in groups)
    return Compaction(sum(g.files.num_rows for g in groups), size, sum(g.num_bins for g in groups))


def _versions(snapshot: Snapshot, files: int, size: int) -> tuple[VersionSize, ...]:
    """Return the latest versions; their files are counted back from this one by the actions of commits."""
    infos = snapshot.history(MOST_VERSIONS)
    if not infos:
        return ()
    known: dict[int, tuple[int | None, int | None]] = {snapshot.version: (files, size)}
    count: int | None = files
    total: int | None = size
    try:
        commits = list(snapshot.commits(min(info["version"] for info in infos)))
    except VersionNotFoundError:
        commits = []
    for commit in reversed(commits):
        adds, removes = commit.adds, commit.removes
        if not (removes.num_rows == 0 and adds.num_rows and not pc.any(adds.column("dataChange")).as_py()):
            # entries that are only written again, such as those with new statistics, are neither new nor more bytes
            gone = removes.column("size")
            count = None if count is None else count - adds.num_rows + removes.num_rows
            added, removed = pc.sum(adds.column("size")).as_py() or 0, pc.sum(gone).as_py() or 0
            total = None if total is None or gone.null_count else total - added + removed
        count = None if count is None or count < 0 else count
        total = None if total is None or total < 0 or count is None else total
        known[commit.version - 1] = (count, total)
    return tuple(
        VersionSize(
            info["version"], info.get("timestamp"), info.get("operation"), *known.get(info["version"], (None, None))
        )
        for info in reversed(infos)
    )


def _partitions(files: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray | None:
    """Return the partition of each file as a text; None if the table is not partitioned."""
    if not columns:
        return None
    values = files.column("partition")
    parts = []
    for i, name in enumerate(columns):
        text = pc.fill_null(pc.cast(pc.struct_field(values, [i]), pa.string()), "null")
        parts.append(pc.binary_join_element_wise(pa.scalar(name), text, "="))
    return pc.binary_join_element_wise(*parts, ", ")


def partition_sizes(
    partitions: pa.ChunkedArray | None, sizes: NDArray[np.int64]
) -> tuple[tuple[PartitionSize, ...], float | None]:
    """Return the partitions, the largest first, and the bytes of the largest by those of the one in the middle.

    Parameters
    ----------
    partitions : pyarrow.ChunkedArray of string or None
        That of each file.
    sizes : int64[n]
        The bytes of each file.
    """
    if partitions is None or not len(partitions):
        return (), None
    table = pa.table({"partition": partitions, "size": sizes})
    grouped = table.group_by("partition").aggregate([("size", "count"), ("size", "sum")])
    grouped = grouped.sort_by([("size_sum", "descending"), ("partition", "ascending")])
    rows = zip(*(grouped.column(n).to_pylist() for n in ("partition", "size_count", "size_sum")), strict=True)
    found = tuple(PartitionSize(*row) for row in rows)
    middle = float(np.median([p.size_bytes for p in found]))
    return found, found[0].size_bytes / middle if middle else None


def _orders(files: pa.Table, clustered: set[str]) -> tuple[ColumnOrder, ...]:
    """Return how bounds of columns overlap: clustering columns first, then those in the order of the schema."""
    names = [n.removeprefix("min.") for n in files.column_names if n.startswith("min.")]
    names.sort(key=lambda n: n not in clustered)
    found = (order_of(n, files.column(f"min.{n}"), files.column(f"max.{n}"), n in clustered) for n in names)
    return tuple(o for o in found if o is not None)[:MOST_COLUMNS]


def order_of(
    column: str, least: pa.ChunkedArray, greatest: pa.ChunkedArray, is_clustered: bool = False
) -> ColumnOrder | None:
    """Return how the bounds of a column overlap; None if no file has any.

    Parameters
    ----------
    column : str
        Its name.
    least, greatest : pyarrow.ChunkedArray, **shape (n,)**
        The bounds of each file, null if it has none.
    is_clustered : bool
        Whether the table is clustered by it.
    """
    valid = is_valid(least) & is_valid(greatest)
    count = int(valid.sum())
    if not count:
        return None
    mask = pa.array(valid)
    both = pa.chunked_array([*least.filter(mask).chunks, *greatest.filter(mask).chunks])
    try:
        # every type has an order; distances are drawn in it
        ranks = values_of(pc.rank(both, tiebreaker="dense")).astype(np.int64) - 1
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None
    low, high = ranks[:count], np.maximum(ranks[count:], ranks[:count])
    begun = np.searchsorted(np.sort(low), high, "right")
    ended = np.searchsorted(np.sort(high), low, "left")
    overlap = float((begun - ended).mean() / count)
    order = np.lexsort((high, low))
    shown = order[np.linspace(0, count - 1, min(count, MOST_SPANS)).astype(np.int64)]
    width = max(int(ranks.max()), 1)
    spans = tuple((low[i] / width, high[i] / width) for i in shown.tolist())
    return ColumnOrder(column, is_clustered, count, overlap, tuple((float(a), float(b)) for a, b in spans))


def _coverage(files: pa.Table) -> tuple[Coverage, ...]:
    rows = files.column("numRecords")
    found = []
    for name in (n.removeprefix("min.") for n in files.column_names if n.startswith("min.")):
        nulls = f"null_count.{name}"
        bounded = is_valid(files.column(f"min.{name}")) & is_valid(files.column(f"max.{name}"))
        with_nulls = is_valid(files.column(nulls)) if nulls in files.column_names else np.zeros(len(bounded), np.bool_)
        if nulls in files.column_names:
            # a file that has only nulls has no bounds
            bounded |= np.asarray(pc.fill_null(pc.equal(files.column(nulls), rows), False))
        found.append(Coverage(name, int(bounded.sum()), int(with_nulls.sum())))
    return tuple(found)


def _features(snapshot: Snapshot) -> tuple[ServedFeature, ...]:
    state, plugins = snapshot.state, snapshot.plugins
    found = []
    for name in sorted(state.features):
        feature = plugins.features.get(name)
        summary = feature.summary if feature else ""
        found.append(ServedFeature(name, snapshot.registry.source(name), state.is_active(name), summary))
    return tuple(found)


def _log(snapshot: Snapshot) -> LogUpkeep:
    segment, properties = snapshot.segment, snapshot.metadata.configuration
    interval = properties.get("delta.checkpointInterval", "10")
    return LogUpkeep(
        None if segment.checkpoint is None else segment.checkpoint.version,
        len(segment.deltas),
        int(interval) if interval.isdigit() else None,
        {title: properties.get(key, default) for key, (title, default) in _RETENTION.items()},
    )


def _unused(snapshot: Snapshot) -> tuple[int, int] | None:
    try:
        plan: Any = operations.plan_vacuum(snapshot, operations.VacuumOptions())
    except (UnsupportedOperationError, LogError):
        # a catalog may forbid it, and what a damaged log lost is among the findings
        return None
    return plan.num_files, plan.num_bytes
