"""Where a streaming query begins, if its checkpoint does not specify that."""

from __future__ import annotations

from collections.abc import Sequence

from delta_core.kernel.log.position import StreamPosition
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.follow import FollowOptions, first_position

__all__ = ["start_of"]


def start_of(base: Snapshot, options: FollowOptions, folder: str, offsets: Sequence[str]) -> StreamPosition:
    """Return the start of a query's first batch.

    Parameters
    ----------
    base : Snapshot
        The latest version.
    options : FollowOptions
        Where the stream begins.
    folder : str
        The source's folder in the checkpoint; its name is the source's number.
    offsets : sequence of str
        The lines of the first recorded offsets: a version, settings, and the end of the first batch for each source.
        There are none of a new query. Only delta-spark's sources record them without a start of their own.
    """
    number = 2 + int(folder.rpartition("/")[2])
    if options.start is not None or options.start_timestamp is not None or number >= len(offsets):
        return first_position(base, options)
    if not offsets[number].startswith("{"):  # nothing was read of this source
        return first_position(base, options)
    end = StreamPosition.parse(offsets[number])
    version = end.version if end.is_initial_snapshot else max(end.version - 1, 0)
    return StreamPosition(end.table_id, version, -1, True)
