"""The traces of a dropped feature in older versions: found, bridged by checkpoints, or removed from the log."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from delta_core.errors import UnsupportedOperationError, VersionNotFoundError
from delta_core.kernel.commit.cleanup import truncate_log
from delta_core.kernel.commit.options import PostCommit
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.log.listing import list_log
from delta_core.kernel.log.names import LOG_DIRECTORY, commit_name
from delta_core.kernel.log.segment import complete_checkpoints
from delta_core.kernel.plugins.catalog import allows
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.steps import FeatureStep, FeatureUse, ReAddFiles, RewriteFiles
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.feature.steps import is_metadata_pending

__all__ = ["RETENTION", "check_history", "first_use", "truncate_history", "write_barrier"]

#: How long versions stay in the log although TRUNCATE HISTORY was requested.
RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"


def write_barrier(latest: Snapshot, commit: Mapping[str, Any]) -> Snapshot:
    """Commit nothing and write a checkpoint of it: readers need no version before it.

    Raises
    ------
    UnsupportedOperationError
        If the table's catalog does not allow checkpoints, or has not published the latest version: before any
        commit.
    """
    allowed = allows(latest.context.log.catalog, "checkpoint")
    if not allowed or not _is_published(latest):
        reason = "has not published its latest version in the log yet" if allowed else "does not allow checkpoints"
        raise UnsupportedOperationError(
            f"The feature can't be dropped: the catalog of {latest.uri} {reason}, and readers without the feature need "
            "checkpoints from which to start.",
            operation="drop_feature",
        )
    arguments = {**commit, "post": PostCommit(create_checkpoint=False)}
    snapshot = Transaction(latest.context, latest, "Empty Commit").commit(**arguments).snapshot
    write_checkpoint(snapshot)
    return snapshot


def _is_published(latest: Snapshot) -> bool:
    if all(f.kind != "staged" for f in latest.segment.deltas):
        return True
    try:
        latest.engine.storage.stat([f"{LOG_DIRECTORY}/{commit_name(latest.version)}"])
    except FileNotFoundError:
        return False
    return True


def truncate_history(latest: Snapshot, feature: TableFeature, commit: Mapping[str, Any]) -> Snapshot:
    """Delete versions from the log that use a feature, as far as they are older than the retention for that.

    Returns
    -------
    Snapshot
        The latest version, read from the log that is left, none of whose versions uses the feature.

    Raises
    ------
    UnsupportedOperationError
        If a version that uses it is younger than the retention: the message specifies when to call again.
    """
    used = _last_protected(latest, feature) if feature.protects_history else _last_use(latest, feature)
    if used is None:
        return latest
    if _next_checkpoint(latest, used) is None:
        latest = write_barrier(latest, commit)
    retention: int = read_property(latest.state.configuration, RETENTION)
    truncate_log(latest, retention)
    # files from which the snapshot was built may be gone
    latest = latest.context.read()
    used = _last_protected(latest, feature) if feature.protects_history else _last_use(latest, feature)
    if used is None:
        return latest
    behind = _next_checkpoint(latest, used) or latest.version
    again = dt.datetime.fromtimestamp((latest.at(behind).timestamp_ms + retention) // 1000 + 1, dt.UTC)
    if feature.protects_history:
        why, other = f"versions of the log up to {used} are protected", ""
    else:
        why = f"the latest version does not use it any more, but version {used} of the log does"
        other = ", or drop it without truncating the history"
    raise UnsupportedOperationError(
        f"Feature {feature.name} can't be dropped yet: {why}. Drop it again after {again:%Y-%m-%d %H:%M:%S} UTC, when "
        f"versions up to there may be removed from the log ({RETENTION} after version {behind}){other}.",
        feature=feature.name,
        version=used,
        retry_after=again,
    )


def check_history(latest: Snapshot, feature: TableFeature) -> None:
    """Check that no version of the log uses a feature.

    Raises
    ------
    UnsupportedOperationError
        If one does.
    """
    used = _last_use(latest, feature)
    if used is not None:
        raise UnsupportedOperationError(
            f"Feature {feature.name} can't be dropped yet: the latest version does not use it any more, but version "
            f"{used} of the log does. Drop it again when the log does not have that version any more "
            "(delta.logRetentionDuration), or truncate the history.",
            feature=feature.name,
            version=used,
            condition="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        )


def _next_checkpoint(latest: Snapshot, version: int) -> int | None:
    """Return the first checkpoint above a version, None if there is none."""
    found = complete_checkpoints(list_log(latest.engine.storage).files, set())
    return min((c.version for c in found if version < c.version <= latest.version), default=None)


def _first_versions(latest: Snapshot) -> tuple[int, int]:
    """Return the first version that has a commit, and the first that the log has anything of."""
    files = [f for f in list_log(latest.engine.storage).files if f.kind in ("commit", "checkpoint")]
    commits = [f.version for f in files if f.kind == "commit"]
    first = min(commits, default=latest.version)
    return first, min([first, *(f.version for f in files)])


def _last_protected(latest: Snapshot, feature: TableFeature) -> int | None:
    """Return the last version that is protected, None if the log has none of them any more."""
    assert feature.protects_history
    protected = int(latest.metadata.configuration.get(feature.protects_history) or 0)
    return protected - 1 if _first_versions(latest)[1] < protected else None


def _last_use(latest: Snapshot, feature: TableFeature) -> int | None:
    """Return the last version of the log that uses a feature, None if there is none."""
    first, oldest = _first_versions(latest)
    found = _uses(latest, feature, first)
    if found:
        return max(found)
    # a checkpoint whose commit is gone: a cleanup was interrupted
    return oldest if oldest < first else None


def first_use(latest: Snapshot, feature: TableFeature, start: int) -> int | None:
    """Return the first version from ``start`` on that uses a feature, None if there is none."""
    return min(_uses(latest, feature, start), default=None)


def _uses(latest: Snapshot, feature: TableFeature, start: int) -> list[int]:
    """Return the versions from ``start`` on that use a feature, or undo its use."""
    plugins = latest.context.registry.plugin_of(feature.name)
    columns: set[str] = set()
    found = []
    try:
        definitions = sorted({start, *latest.definition_changes(start)})
        for version, after in zip(definitions, [*definitions[1:], latest.version + 1], strict=True):
            snapshot = latest.at(version)
            steps = plugins.collect("feature_steps", table=snapshot.state, change="drop")
            columns |= {s.column for s in steps if isinstance(s, RewriteFiles) and s.column is not None}
            if any(_is_used_by_files(snapshot, s) for s in steps):
                found.append(version)
            if any(_is_used_by_metadata(snapshot, s) for s in steps):
                # the commit that ends it may still remove files that have it
                found.append(min(after, latest.version))
        for commit in latest.commits(start + 1) if columns else ():
            tables = [t for t in (commit.adds, commit.removes) if t.num_rows]
            if any(c in t.column_names and t.column(c).null_count < t.num_rows for t in tables for c in columns):
                found.append(commit.version)
    except VersionNotFoundError:
        found.append(start)
    return found


def _is_used_by_metadata(snapshot: Snapshot, step: FeatureStep) -> bool:
    if isinstance(step, FeatureUse):
        return bool(step.users)
    return is_metadata_pending(snapshot.metadata, snapshot.domains(), step)


def _is_used_by_files(snapshot: Snapshot, step: FeatureStep) -> bool:
    if not isinstance(step, (RewriteFiles, ReAddFiles)):
        return False
    names = list(step.columns) if isinstance(step, ReAddFiles) else [] if step.column is None else [step.column]
    return any(c.null_count < len(c) for c in snapshot.files.columns(names).columns)
