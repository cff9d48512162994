"""Backfill statistics: files that lack them get them from their footers, without their rows being written again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import CommitConflictError, InvalidArgumentError, MetadataChangedError, ProtocolChangedError
from delta_core.expressions import to_expression
from delta_core.expressions.ast import NUM_RECORDS, Expression, FileStatistic
from delta_core.expressions.filters import PredicateLike
from delta_core.expressions.printing import format_sql
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.intents import added_again, read_columns
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.file_columns import json_statistics
from delta_core.kernel.log.indexed_columns import statistics_leaves
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.files import FooterStatistics
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, is_valid, number_array, one_array, strings_of
from delta_core.kernels.dedup import KeySet
from delta_core.operations.footers import ManyFooters
from delta_core.operations.progress import OperationProgress, ProgressReport
from delta_core.operations.rewrite import selects_partitions
from delta_core.operations.row_changes import predicate_text
from delta_core.runtime.progress_bars import shows_progress
from delta_core.schema.types import PrimitiveType

__all__ = ["BackfillOptions", "Backfilled", "backfill_statistics"]

#: Files that one commit adds again.
BATCH_FILES = 20_000
#: How often a batch begins again since other writers committed meanwhile.
_MOST_ATTEMPTS = 16
_LONG = PrimitiveType("long")


class BackfillOptions(Struct, frozen=True):
    """Which files get statistics, and how.

    Parameters
    ----------
    predicate : str, filters, Expression or pyarrow.compute.Expression, optional
        On partition columns: other files are left alone.
    every : bool
        Whether files that have statistics get them again.
    dry_run : bool
        Whether nothing is read or committed.
    commit : Mapping
        Arguments of `Transaction.commit`.
    progress : function(OperationProgress), optional
        Called while footers are read (step ``find``).
    """

    predicate: PredicateLike | None = None
    every: bool = False
    dry_run: bool = False
    commit: Mapping[str, Any] = {}
    progress: Callable[[OperationProgress], None] | None = None


class Backfilled(Struct, frozen=True):
    """The result of a backfill.

    Parameters
    ----------
    snapshot : Snapshot
        The table afterwards.
    num_files : int
        Files that were added again with other statistics; with ``dry_run`` those that would be read.
    """

    snapshot: Snapshot
    num_files: int


@shows_progress
def backfill_statistics(base: Snapshot, options: BackfillOptions) -> Backfilled:
    """Add files again, with statistics from their footers; a commit for each of many files.

    Files stay where they are, with their tags, row ids and deletion vectors. Bounds of files with deleted rows are wide
    (``tightBounds`` is false). Columns whose statistics a footer lacks stay without them; a file that would lose
    statistics of an indexed column is left as it is. In tables that find columns by field id, only the number of rows
    is recorded.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    options : BackfillOptions
        Which files.

    Raises
    ------
    InvalidArgumentError
        If the predicate names other columns than those that partition the table.
    DataFileNotFoundError, DataFileError
        If a file is gone, or is no Parquet file. Batches before it are committed.
    CommitConflictError
        If other writers change the same files at each attempt. Call it again: it goes on with what is left.

    Protocol
    --------
    Per-file Statistics
    """
    latest = base.latest()
    seen = KeySet()
    num_files = lost = 0
    report = ProgressReport(options.progress)
    chosen = _chosen(latest, options, seen)
    if options.dry_run:
        return Backfilled(latest, len(chosen))
    report.begin("find", latest.files.columns(["size"]).take(number_array(chosen)).column("size"))
    while len(chosen):
        files = latest.files.columns(read_columns(latest.action_fields)).take(number_array(chosen[:BATCH_FILES]))
        changed = _with_statistics(latest, files)
        if changed.num_rows:
            bound = None if options.predicate is None else _bound(latest, options.predicate)
            said = {"predicate": predicate_text(options.predicate, bound)}
            transaction = Transaction(
                latest.context, latest, "COMPUTE STATS", said, isolation=IsolationLevel.SERIALIZABLE
            )
            transaction.reads.files.append(changed.select(["path", "dvId"]))
            transaction.add_files(added_again(changed))
            try:
                latest = transaction.commit(**options.commit).snapshot
            except (MetadataChangedError, ProtocolChangedError):
                raise
            except CommitConflictError:
                lost += 1
                if lost == _MOST_ATTEMPTS:
                    raise
                latest = latest.latest()
                chosen = _chosen(latest, options, seen)
                continue
        lost = 0
        num_files += changed.num_rows
        seen.insert(files.column("path"), files.column("dvId"))
        report.add(files=files.num_rows, num_bytes=int(pc.sum(files.column("size")).as_py() or 0))
        chosen = _chosen(latest, options, seen)
    return Backfilled(latest, num_files)


def _chosen(latest: Snapshot, options: BackfillOptions, seen: KeySet) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the numbers of the files that lack statistics, less those that were looked at."""
    files = latest.files.columns(["path", "dvId"])
    wanted = ~seen.contains(files.column("path"), files.column("dvId"))
    if options.predicate is not None:
        picked = latest.scan(predicate=_bound(latest, options.predicate)).files(["path", "dvId"])
        inside = KeySet()
        inside.insert(picked.column("path"), picked.column("dvId"))
        wanted &= inside.contains(files.column("path"), files.column("dvId"))
    if not options.every:
        leaves = [FileStatistic("nullCount", p, _LONG) for p, t in statistics_leaves(latest.state) if _has_bounds(t)]
        known = latest.files.statistics([NUM_RECORDS, *leaves])
        lacks = np.zeros(files.num_rows, bool)
        for column in known.columns:
            lacks |= ~is_valid(column)
        wanted &= lacks
    return np.flatnonzero(wanted)


def _has_bounds(kind: object) -> bool:
    return isinstance(kind, PrimitiveType) and kind.type not in ("binary", "variant", "void")


def _bound(latest: Snapshot, predicate: PredicateLike) -> Expression:
    bound = to_expression(predicate, latest.schema, functions=latest.plugins.functions)
    assert bound is not None
    if not selects_partitions(bound, latest.state.partition_columns):
        raise InvalidArgumentError(
            f"Found the predicate {format_sql(bound)}, expected one on partition columns only "
            f"({', '.join(latest.state.partition_columns) or 'the table has none'}): no rows are read."
        )
    return bound


def _with_statistics(latest: Snapshot, files: pa.Table) -> pa.Table:
    """Return the files whose statistics differ from those of their footers, with these, unless they lack some."""
    transaction = Transaction(latest.context, latest, "COMPUTE STATS")
    described = FooterStatistics.of(transaction.plan, statistics=latest.state.column_map.match == "name")
    texts = ManyFooters(latest.engine, strings_of(decode_paths(files.column("path")))).statistics(described)
    wide = pc.replace_substring_regex(texts, r'"tightBounds":true\}$', '"tightBounds":false}')
    texts = pc.if_else(pc.is_valid(files.column("dvId")), wide, texts)
    at = files.schema.get_field_index("stats")
    old = pc.fill_null(files.column("stats"), "")
    changed = pc.and_(pc.not_equal(old, texts), bool_array(~_loses(latest, old, texts)))
    return files.set_column(at, "stats", texts).filter(changed)


def _loses(latest: Snapshot, old: pa.ChunkedArray, new: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which files have a number of rows, and a statistic of an indexed column that the new text lacks."""
    leaves = list(statistics_leaves(latest.state))
    wanted = [FileStatistic("nullCount", path, _LONG) for path, _ in leaves]
    wanted += [FileStatistic(kind, path, t) for path, t in leaves if _has_bounds(t) for kind in ("min", "max")]
    before, after = (json_statistics(one_array(texts), [NUM_RECORDS, *wanted]) for texts in (old, new))
    lost = np.zeros(len(old), np.bool_)
    for had, has in zip(before, after, strict=True):
        lost |= is_valid(had) & ~is_valid(has)
    return lost & is_valid(before[0])
