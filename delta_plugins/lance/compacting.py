"""Compaction: which fragments of a dataset are written again, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.api import InvalidArgumentError, OptimizeOptions, check_number, optimize_table, plan_optimize
from delta_plugins.lance.rewrites import BIN_FRAGMENTS, TARGET_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Group, OperationProgress
    from delta_plugins.lance.dataset_version import DatasetVersion

__all__ = ["CompactOptions", "choose_fragments", "compact_dataset", "plan_compaction"]

#: The most that rows grow, about, when they are encoded again.
_GROWTH = 8


class CompactOptions(Struct, frozen=True):
    """Which fragments are written again.

    Parameters
    ----------
    target_rows, max_bytes : int
        A fragment with as many rows, or bytes, is at its target.
    materialize_deletions : float, optional
        A fragment with a greater share of deleted rows is written again whatever its size; None: it is not.
    max_memory : int
        Bytes of rows in memory, about.
    custom_metadata : Mapping of str to object
        Properties of the transactions.
    max_commit_retries : int
        How often a lost race is run again.
    progress : function(OperationProgress), optional
        Called after each group of fragments.
    """

    target_rows: int = 1 << 20
    max_bytes: int = 90 << 30
    materialize_deletions: float | None = 0.1
    max_memory: int = 256 << 20
    custom_metadata: Mapping[str, Any] = {}
    max_commit_retries: int = 15
    progress: Callable[[OperationProgress], None] | None = None

    def check(self) -> None:
        """Reject numbers that are out of range.

        Raises
        ------
        InvalidArgumentError
            If one is.
        """
        for name, least in (("target_rows", 1), ("max_bytes", 1), ("max_memory", 1 << 20)):
            value = getattr(self, name)
            if value is None:
                raise InvalidArgumentError(f"Found {name}=None, expected a whole number from {least} on.")
            check_number(name, value, least)
        share = self.materialize_deletions
        is_number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if share is not None and not (is_number and 0 <= share <= 1):
            raise InvalidArgumentError(
                f"Found materialize_deletions={share!r}, expected a share from 0 to 1, or None to write no fragment "
                "again for its deleted rows alone."
            )


class Compacted(Struct, frozen=True):
    """The result of a compaction.

    Parameters
    ----------
    dataset : LanceDataset
        The version that it made; that it began with if nothing was written again.
    metrics : dict
        As `LanceDataset.compact` returns them.
    """

    dataset: Any
    metrics: dict[str, Any]


def compact_dataset(dataset: DatasetVersion, options: CompactOptions) -> Compacted:
    """Join small fragments of the latest version, and leave out deleted rows where there are many.

    Parameters
    ----------
    dataset : LanceDataset
        A later version is looked for.
    options : CompactOptions
        Which fragments are written again.

    Raises
    ------
    InvalidArgumentError
        For a number that is out of range.
    CommitConflictError
        Another writer's commit contradicts this one.
    """
    done = optimize_table(dataset, _given(options))
    added, removed = (json.loads(done.metrics[n]) for n in ("filesAdded", "filesRemoved"))
    metrics = {
        "version": done.snapshot.version,
        "num_removed_fragments": removed["totalFiles"],
        "num_removed_bytes": removed["totalSize"],
        "num_added_fragments": added["totalFiles"],
        "num_added_bytes": added["totalSize"],
        "num_removed_deletion_files": done.metrics["numDeletionVectorsRemoved"],
        "num_removed_deleted_rows": done.metrics["numDeletionVectorRowsRemoved"],
        "dropped_indices": list(done.metrics["droppedIndices"]),
    }
    return Compacted(done.snapshot, metrics)


def plan_compaction(dataset: DatasetVersion, options: CompactOptions) -> list[Group]:
    """Return the groups of fragments that a compaction would write again.

    Parameters
    ----------
    dataset : LanceDataset
        The version that is looked at.
    options : CompactOptions
        As of `compact_dataset`.
    """
    return plan_optimize(dataset, _given(options)).groups


def _given(options: CompactOptions) -> OptimizeOptions:
    options.check()
    return OptimizeOptions(
        choose=partial(choose_fragments, options=options),
        target_size=options.max_bytes,
        max_spill_size=options.max_memory,
        parameters={TARGET_ROWS: options.target_rows},
        custom_metadata=options.custom_metadata,
        max_commit_retries=options.max_commit_retries,
        progress=options.progress,
    )


def choose_fragments(units: pa.Table, options: CompactOptions) -> list[NDArray[np.int64]]:
    """Return the bins of fragments that are written again; rows are joined whatever is between their fragments.

    Fragments of one bin are in the same indices, so that an index that stays has all of them or none. A second choice
    among what is written then chooses nothing: of all fragments in the same indices, only one is below its target.

    Parameters
    ----------
    units : pyarrow.Table
        As of `LanceRewrites.units`.
    options : CompactOptions
        The targets.
    """
    covered, stays = (units.column(n).to_numpy() for n in ("indices", "lasting"))
    dropped = np.int64(0)
    while True:
        bins = _bins(units, covered & ~dropped, options)
        if not bins:
            return []
        now = dropped | np.bitwise_or.reduce(covered[np.concatenate(bins)] & ~stays[0])
        if now == dropped:
            return bins
        # indices that are dropped do not divide fragments
        dropped = now


def _bins(units: pa.Table, groups: NDArray[np.int64], options: CompactOptions) -> list[NDArray[np.int64]]:
    rows, live, sizes = (units.column(n).to_numpy() for n in ("rows", "live_rows", "size"))
    share = options.materialize_deletions
    is_due = np.zeros(len(rows), np.bool_) if share is None else (rows - live) > share * rows
    chosen = np.flatnonzero(is_due | ((rows < options.target_rows) & (sizes < options.max_bytes)))
    found: list[NDArray[np.int64]] = []
    for group in np.unique(groups[chosen]):
        one = chosen[groups[chosen] == group]
        if len(one) > 1 or is_due[one[0]]:
            found += np.split(one, _cuts(live[one], int(sizes[one].sum()), options))
    return found


def _cuts(rows: NDArray[np.int64], size: int, options: CompactOptions) -> list[int]:
    """Return where bins of `BIN_FRAGMENTS` new fragments, or some more, begin after the first one."""
    until = np.cumsum(rows)
    total, step = int(until[-1]), BIN_FRAGMENTS * options.target_rows
    if size * options.target_rows * _GROWTH >= options.max_bytes * max(total, 1):
        return []  # where fragments end by their bytes, each bin would leave a small one
    cuts: list[int] = []
    before = 0
    while total - before >= step + options.target_rows:
        cut = int(np.searchsorted(until, before + step, "left")) + 1
        before = int(until[cut - 1])
        if total - before < options.target_rows:
            break
        cuts.append(cut)
    return cuts
