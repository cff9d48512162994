"""Restore a table to an older version: a new commit with the files, the metadata and the domains of that version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import (
    DataFileNotFoundError,
    InvalidArgumentError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.intents import READ_TO_REMOVE, read_columns, removed_files
from delta_core.kernel.commit.property_requests import reserved_properties
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.commit.upgrade import permits_domains
from delta_core.kernel.log.checksum import check_by_checksum
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.references import named_files
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import one_array, scalar_of, strings_of
from delta_core.kernels.dedup import KeySet
from delta_core.operations.progress import OperationProgress, ProgressReport
from delta_core.runtime.progress_bars import shows_progress

__all__ = ["RestoreOptions", "Restored", "restore_table"]

#: The number of files that are looked for at a time, and of missing ones that are named.
_WINDOW, _NAMED = 1000, 5


class RestoreOptions(Struct, frozen=True):
    """How a version is restored.

    Parameters
    ----------
    ignore_missing_files : bool
        Whether files that are gone are left out, with their rows; otherwise they are an error.
    protocol_downgrade_allowed : bool
        Whether the table gets the protocol of the version too; otherwise it keeps its own.
    dry_run : bool
        Whether nothing is committed.
    parameters : Mapping
        Further ``operationParameters``, such as the point in time that was requested.
    commit : Mapping
        Arguments of `Transaction.commit`.
    progress : function(OperationProgress), optional
        Called while the files that come back are looked for (step ``find``).
    """

    ignore_missing_files: bool = False
    protocol_downgrade_allowed: bool = False
    dry_run: bool = False
    parameters: Mapping[str, Any] = {}
    commit: Mapping[str, Any] = {}
    progress: Callable[[OperationProgress], None] | None = None


class Restored(Struct, frozen=True):
    """The result of a restore.

    Parameters
    ----------
    snapshot : Snapshot
        The table right after it; as it was if the version is the latest, or with ``dry_run``.
    metrics : Mapping of str to int
        Named as delta-spark's operation metrics.
    """

    snapshot: Snapshot
    metrics: Mapping[str, int]


@shows_progress
def restore_table(base: Snapshot, version: int, options: RestoreOptions) -> Restored:
    """Commit the state of an older version again.

    Files that both versions have stay. High water marks (of row ids, identity columns and column ids), application ids
    and, unless requested, the protocol stay as they are.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    version : int
        The version to restore.
    options : RestoreOptions
        How it is restored.

    Raises
    ------
    VersionNotFoundError
        If the version is above the latest, or can't be built any more.
    DataFileNotFoundError
        If files of the version are gone, unless they are ignored; the message names the first ones.
    InvalidArgumentError
        If the table can't return to the definition of the version, such as one before column mapping was enabled.
    UnsupportedOperationError
        If the table is append-only, or if another protocol would take its versions from its catalog.
    LogError
        If the checksum of the version reports other files than its log has.
    CommitConflictError
        If another writer changed the table meanwhile; nothing was changed.

    Notes
    -----
    Looks for every file that is added again, and for its deletion vector; reads no data.
    """
    latest = base.latest()
    if version > latest.version:
        raise VersionNotFoundError(
            f"Version {version} can't be restored: the latest version is {latest.version}.", version=version
        )
    target = latest.at(version)
    check_by_checksum(target)
    removed = latest.files.refreshed([], _keys(target.files))
    restored = target.files.refreshed([], _keys(latest.files))
    removes = removed.columns(READ_TO_REMOVE)
    report = ProgressReport(options.progress)
    adds, missing = _present(target, restored.columns(read_columns(target.action_fields)), report)
    if missing and not options.ignore_missing_files:
        raise DataFileNotFoundError(
            f"Version {version} can't be restored: {len(missing)} of the files that it needs are gone, such as "
            f"{', '.join(missing[:_NAMED])}. Restore a later version, or pass ignore_missing_files=True to restore it "
            "without the rows of these files.",
            path=missing[0],
            version=version,
            count=len(missing),
        )
    metrics = _metrics(target, adds, removes, restored.count - adds.num_rows)
    if options.dry_run or version == latest.version:
        return Restored(latest, metrics)
    return Restored(_commit(latest, target, adds, removes, options, metrics), metrics)


def _keys(files: FileSet) -> KeySet:
    table = files.columns(["path", "dvId"])
    keys = KeySet()
    keys.insert(table.column("path"), table.column("dvId"))
    return keys


def _commit(
    latest: Snapshot,
    target: Snapshot,
    adds: pa.Table,
    removes: pa.Table,
    options: RestoreOptions,
    metrics: Mapping[str, int],
) -> Snapshot:
    said = {"version": str(target.version), **options.parameters}
    transaction = Transaction(latest.context, latest, "RESTORE", said, isolation=IsolationLevel.SERIALIZABLE)
    transaction.metrics.update(metrics)
    protocol = None
    if options.protocol_downgrade_allowed and target.protocol != latest.protocol:
        if _has_catalog(latest) != _has_catalog(target):
            raise UnsupportedOperationError(
                f"Version {target.version} can't be restored with its protocol: a catalog decides the versions of one "
                "of the two. Restore it without protocol_downgrade_allowed."
            )
        protocol = target.protocol
    if permits_domains(protocol or latest.protocol, latest.context.registry):
        _stage_domains(transaction, latest, target)
    metadata = _restored_metadata(latest, target)
    domains = {**transaction.intents.domains, **transaction.intents.system_domains}
    if protocol is not None or domains or metadata != latest.metadata:
        try:
            transaction.set_metadata(
                metadata, replaces=True, protocol=protocol, double_quotes="text", allow_unknown=True
            )
        except InvalidArgumentError as error:
            # the reason is its first sentence; what follows advises on changes of properties
            reason = str(error).partition(". ")[0].rstrip(".")
            raise InvalidArgumentError(
                f"Version {target.version} can't be restored, because the table can't return to its definition: "
                f"{reason}. Read the rows of version {target.version} and overwrite the table with them instead.",
                version=target.version,
            ) from error
    transaction.read(None)
    if removes.num_rows:
        transaction.remove_files(removed_files(removes))
    if adds.num_rows:
        again = adds
        for name, value in (("dataChange", True), ("fresh", False)):
            again = again.append_column(name, pa.repeat(scalar_of(value, pa.bool_()), adds.num_rows))
        transaction.add_files(again)
    return transaction.commit(**options.commit).snapshot


def _has_catalog(snapshot: Snapshot) -> bool:
    features = frozenset(snapshot.plugins.features)
    return bool(snapshot.plugins.single("requires_catalog", False, features=features))


def _restored_metadata(latest: Snapshot, target: Snapshot) -> Metadata:
    """Return the metadata of a version, with what only features set as they set it last."""
    old, now = target.metadata.configuration, latest.metadata.configuration
    reserved = reserved_properties(latest.context.registry.everything)
    kept = {k: now[k] if k in reserved else v for k, v in old.items() if k not in reserved or k in now}
    return replace(target.metadata, id=latest.metadata.id, configuration=kept)


def _stage_domains(transaction: Transaction[Snapshot], latest: Snapshot, target: Snapshot) -> None:
    """Stage the domains of a version; those that it lacks are removed, those whose values only grow stay."""
    growing = {d for f in latest.plugins.features.values() for d in f.growing_domains}
    system = {d for f in latest.plugins.features.values() for d in f.domains}
    now, then = latest.domains(), target.domains()
    for domain in sorted(now.keys() | then.keys()):
        if domain in growing or now.get(domain) == then.get(domain):
            continue
        staged = transaction.intents.system_domains if domain in system else transaction.intents.domains
        staged[domain] = then.get(domain)


def _present(target: Snapshot, files: pa.Table, report: ProgressReport) -> tuple[pa.Table, list[str]]:
    """Return the files that are there with what they refer to, such as vectors, and the paths that are gone."""
    if not files.num_rows:
        return files, []
    own = strings_of(decode_paths(files.column("path")))
    references = target.plugins.collect("file_references", table=target.state)
    others = [named_files(r, one_array(files.column(r.column))) for r in references if r.column in files.column_names]
    report.begin("find", files.column("size"))
    gone: list[str] = []
    keep = pa.repeat(scalar_of(True, pa.bool_()), files.num_rows)
    for paths in (own, *others):
        distinct = pc.drop_null(pc.unique(paths)).to_pylist()
        absent = list(_absent(target, distinct, report if paths is own else ProgressReport(None)))
        gone += absent
        keep = pc.and_(keep, pc.invert(pc.is_in(paths, value_set=strings_of(absent))))
    return files.filter(keep), gone


def _absent(snapshot: Snapshot, paths: Sequence[str], report: ProgressReport) -> Iterator[str]:
    """Yield the files that are not there; looks for many at a time, and for each by itself only if one is gone."""
    storage = snapshot.engine.storage

    def is_absent(path: str) -> bool:
        try:
            storage.stat([path])
        except FileNotFoundError:
            return True
        return False

    for start in range(0, len(paths), _WINDOW):
        window = paths[start : start + _WINDOW]
        try:
            storage.stat(window)
        except FileNotFoundError:
            absent = snapshot.engine.map(is_absent, window)
            yield from (path for path, gone in zip(window, absent, strict=True) if gone)
        report.add(files=len(window))


def _metrics(target: Snapshot, adds: pa.Table, removes: pa.Table, num_missing: int) -> dict[str, int]:
    sizes = target.files.columns(["size"]).column(0)
    return {
        "tableSizeAfterRestore": int(pc.sum(sizes).as_py() or 0),
        "numOfFilesAfterRestore": len(sizes) - num_missing,
        "numRemovedFiles": removes.num_rows,
        "numRestoredFiles": adds.num_rows,
        "removedFilesSize": int(pc.sum(removes.column("size")).as_py() or 0),
        "restoredFilesSize": int(pc.sum(adds.column("size")).as_py() or 0),
        "numMissingFiles": num_missing,
    }
