"""The steps after a commit: its checksum, its manifests; at intervals a checkpoint, and the cleanup of the log.

The commit has landed: errors are logged only.
"""

from __future__ import annotations

import logging

from delta_core.errors import DeltaError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit import parts
from delta_core.kernel.commit.base import Base
from delta_core.kernel.commit.options import PostCommit
from delta_core.kernel.log.checksum import CommitContent, write_checksum
from delta_core.kernel.log.names import parse_name
from delta_core.kernel.plugins.catalog import CommitSource, allows
from delta_core.kernel.protocol.properties import MANIFESTS, read_property

__all__ = ["run_post_commit"]

_log = logging.getLogger(__name__)


def run_post_commit(
    snapshot: Base,
    commit: CommitContent | None,
    before: Base | None,
    requested: PostCommit,
    catalog: CommitSource | None,
) -> Base:
    """Write what the table's properties require after a commit; never raises what a store or the table raises.

    Parameters
    ----------
    snapshot : Snapshot
        The version that was committed.
    commit : CommitContent or None
        The content of the commit; read from the log if it is None.
    before : Snapshot or None
        The version before, whose checksum saves reading the log; None if it is not available.
    requested : PostCommit
        Which files the caller allows to be written.
    catalog : CommitSource or None
        The table's catalog, which may forbid either.

    Returns the snapshot, built from the checkpoint if one was written.
    """
    checksum = requested.write_checksum and allows(catalog, "checksum")
    if checksum:
        previous = None if before is None else before.checksum
        snapshot = snapshot.with_checksum(write_checksum(snapshot, previous, commit=commit))
    try:
        if read_property(snapshot.state.configuration, MANIFESTS):
            parts.keep_manifests(snapshot, before)
    except (DeltaError, OSError) as e:
        _log.error("Version %s of %s was committed, and its symlink manifests are out of date: %s. Call generate().",
                   snapshot.version, shown_uri(snapshot.uri), e)  # fmt: skip
    try:
        interval: int = read_property(snapshot.state.configuration, "delta.checkpointInterval")
        due = snapshot.version > 0 and snapshot.version % interval == 0
        if not requested.create_checkpoint or not due or not allows(catalog, "checkpoint"):
            return snapshot
        written = parts.write_checkpoint(snapshot, checksum=checksum)
    except (DeltaError, OSError) as e:
        _log.warning("The checkpoint of version %s of %s could not be written: %s", snapshot.version, snapshot.uri, e)
        return snapshot
    try:
        parts.clean_after_checkpoint(snapshot, requested.clean_log)
    except (DeltaError, OSError) as e:
        _log.warning("Expired files of the log of %s could not be deleted: %s", shown_uri(snapshot.uri), e)
    file = parse_name(written.path.rpartition("/")[2])
    return snapshot if file is None else snapshot.with_checkpoint([file])
