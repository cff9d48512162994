"""Join the small files that commits leave in a partition, right after a commit: `delta.autoOptimize.autoCompact`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from delta_core.errors import DeltaError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit.options import PostCommitHookProperties, own_options
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, mask_of, one_array
from delta_core.operations import compact_parts
from delta_core.operations.bins import Ints, pack_bins, partition_numbers
from delta_core.schema.fields import find

__all__ = ["compact_after"]

_log = logging.getLogger(__name__)
PROPERTY = "delta.autoOptimize.autoCompact"


def compact_after(snapshot: Snapshot, post: PostCommitHookProperties | None = None) -> Snapshot:
    """Join small files in the partitions that a commit added files to, if the table or the caller requests it.

    A partition is compacted if it has at least ``auto_compact_min_files`` files below half of
    ``auto_compact_max_file_size``, as by delta-spark.

    Parameters
    ----------
    snapshot : Snapshot
        The version that was committed.
    post : PostCommitHookProperties, optional
        The request of the caller.

    Returns
    -------
    Snapshot
        The version after the compaction, or the same one. Nothing that fails here is raised: the commit has landed, and
        the small files are sound.
    """
    wanted = own_options("post_commithook_properties", post, PostCommitHookProperties) or PostCommitHookProperties()
    text = snapshot.state.configuration.get(PROPERTY, "false").strip().lower()
    if not (text != "false" if wanted.auto_compact is None else wanted.auto_compact):
        return snapshot
    most, least = wanted.auto_compact_max_file_size, wanted.auto_compact_min_files
    schema, columns = snapshot.schema, snapshot.state.column_map
    partitions = [columns.physical_path(schema, find(schema, (c,))[0])[0] for c in snapshot.state.partition_columns]

    def choose(files: pa.Table) -> Sequence[Ints]:
        return _small_bins(files, partitions, added, most, least)

    try:
        (commit,) = snapshot.commits(snapshot.version, snapshot.version)
        added = commit.adds.column("path")
        if not len(added):
            return snapshot
        options = compact_parts.OptimizeOptions(
            target_size=most, choose=choose, parameters={"auto": True}, post=wanted.post_commit
        )
        done: Snapshot = compact_parts.optimize_table(snapshot, options).snapshot
        return done
    except (DeltaError, OSError) as e:
        _log.warning(
            "Small files of %s were not joined after version %s: %s", shown_uri(snapshot.uri), snapshot.version, e
        )
        return snapshot


def _small_bins(files: pa.Table, columns: Sequence[str], added: pa.ChunkedArray, most: int, least: int) -> list[Ints]:
    """Return the bins of small files of partitions that have enough of them, and one of the added files."""
    partitions = partition_numbers(FileSet.of(files), columns)
    sizes = int64_values(pc.fill_null(files.column("size"), 0))
    is_small = sizes < most / 2
    is_added = mask_of(one_array(pc.is_in(files.column("path"), value_set=one_array(added))))
    count = int(partitions.max(initial=-1)) + 1
    is_due = np.bincount(partitions[is_small], minlength=count) >= least
    is_due &= np.bincount(partitions[is_added], minlength=count) > 0
    chosen = np.flatnonzero(is_small & is_due[partitions])
    times = int64_values(pc.fill_null(files.column("modificationTime"), 0))
    order = chosen[np.lexsort((times[chosen], partitions[chosen]))]
    return [one for one in pack_bins(order, partitions, sizes, most) if len(one) > 1]
