"""Snapshot: one version of a table. Opening one costs protocol and metadata; files come when requested.

`definition`, `contents` and `snapshot` are the parts of the class, each a base of the next one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from delta_core.engines.engine import Engine
from delta_core.engines.opening import make_engine
from delta_core.errors import EngineError, InvalidArgumentError
from delta_core.handles.opening import Opening, Pickled
from delta_core.kernel import log as delta_log
from delta_core.kernel.log import parts as log_parts, value_parts
from delta_core.kernel.log.committers import find_committer
from delta_core.kernel.log.source import TableLog
from delta_core.kernel.plugins.registry import PluginRegistry, default_registry
from delta_core.kernel.snapshot.snapshot import Snapshot, TableContext
from delta_core.runtime.arguments import path_text

if TYPE_CHECKING:
    from delta_core.kernel.log.cache_folder import SnapshotCache
    from delta_core.kernel.plugins.catalog import CommitSource
    from delta_core.kernel.plugins.committer import Committer

__all__ = ["Snapshot", "TableContext", "open_context", "open_snapshot"]


def open_snapshot(
    uri: str | os.PathLike[str],
    version: int | None = None,
    timestamp: str | datetime | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    engine: str | Engine = "arrow",
    commits: CommitSource | None = None,
    plugins: PluginRegistry | None = None,
    timezone: str = "UTC",
    committer: Committer | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
    pickle_secrets: bool = False,
    cache: str | os.PathLike[str] | SnapshotCache | Literal[False] | None = None,
) -> Snapshot:
    """Open one version of a table.

    Parameters
    ----------
    uri : str or path
        A local path or the URI of any file system that fsspec supports.
    version, timestamp : optional
        Which version, or the last one at a time (ISO 8601 text or datetime); the latest if neither is given.
    storage_options : Mapping, optional
        The options of the file system: credentials, endpoints.
    engine : str or Engine
        The name of an entry point of the group ``delta_core.engines``, or an engine.
    commits : CommitSource, optional
        The catalog of a catalog-managed table; a table that is opened by its name in a catalog has its own.
    plugins : PluginRegistry, optional
        Where features come from; what is installed unless given.
    timezone : str
        The zone of partition timestamps that name none.
    committer : Committer, optional
        The committer, if neither a feature's nor the store's own way is requested.
    allow_external : sequence of str or False, optional
        Prefixes, such as ``s3://bucket/shared``, of places outside the table's root that its log may name. By default
        files on the table's own kind of store are read, and credentials go to its own host and bucket only; False reads
        nothing outside the root. See docs/stores.md.
    pickle_secrets : bool
        Whether a pickle of the table holds its storage options that are secrets, such as keys and passwords.
    cache : str, path, SnapshotCache or False, optional
        A folder in which processes share the file tables of snapshots; by default that of the environment variable
        ``DELTA_CORE_CACHE``, if it is set. False: none.

    Raises
    ------
    TableNotFoundError, VersionNotFoundError
        There is no table, or not this version of it.
    UnsupportedFeatureError, UnsupportedVersionError, CatalogRequiredError
        The table needs what is not here; the message states what to install or pass.
    LogError, CheckpointError
        The log is not whole.
    ExternalPathError
        A path of the log leads to a place that is not followed.
    InvalidArgumentError
        Both a version and a timestamp were given.

    Notes
    -----
    Reads the hint, a listing, the commits above the checkpoint, and of the checkpoint the footer and the row group
    of protocol and metadata. The cost does not grow with the number of files.
    """
    if version is not None and timestamp is not None:
        raise InvalidArgumentError("Found both version and timestamp, expected one of the two.")
    number = None if version is None else delta_log.parse_version(version)
    context = open_context(
        path_text(uri),
        storage_options,
        engine,
        commits,
        plugins,
        timezone,
        committer,
        allow_external,
        pickle_secrets,
        cache,
    )
    snapshot = context.read(number)
    if timestamp is None:
        return snapshot
    return snapshot.at(snapshot.version_at(delta_log.parse_ms(timestamp, timezone)))


def reopen_snapshot(pickled: Pickled) -> Snapshot:
    """Open the version that a pickle describes; reads what `open_snapshot` reads.

    Raises
    ------
    EngineError
        If the table can't be opened here; the message names the secrets that the pickle was made without.
    """
    try:
        return open_snapshot(version=pickled.version, **pickled.arguments)
    except EngineError as e:
        raise pickled.explained(e) from e


def open_context(
    uri: str,
    storage_options: Mapping[str, Any] | None = None,
    engine: str | Engine = "arrow",
    commits: CommitSource | None = None,
    plugins: PluginRegistry | None = None,
    timezone: str = "UTC",
    committer: Committer | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
    pickle_secrets: bool = False,
    cache: str | os.PathLike[str] | SnapshotCache | Literal[False] | None = None,
) -> TableContext:
    """Return a table's context, whether there is a table or not; does no I/O. Arguments as of `open_snapshot`.

    Parameters
    ----------
    uri : str
        The place of the table.
    storage_options, engine, commits, plugins, timezone, committer, allow_external, pickle_secrets, cache : optional
        As for `open_snapshot`.

    Raises
    ------
    InvalidArgumentError
        Both an `Engine` and ``allow_external`` were given.
    """
    if timezone != "UTC":
        value_parts.time_zone(timezone)  # rejected here, not at the first column that needs it
    if isinstance(engine, Engine) and allow_external is not None:
        raise InvalidArgumentError(
            "Found both an Engine and allow_external; expected it to be given to what made the engine."
        )
    made = engine if isinstance(engine, Engine) else make_engine(engine, uri, storage_options, allow_external)
    configured = None if committer is not None else find_committer(made.storage, storage_options)
    recover = getattr(configured if committer is None else committer, "recover", None)
    shares = cache is not None or "DELTA_CORE_CACHE" in os.environ
    source = getattr(made.storage, "commits", None) if commits is None else commits
    log = TableLog(made, uri, source, recover, log_parts.find_cache(cache) if shares else None)
    opening = Opening(
        uri, storage_options, engine, commits, plugins, timezone, committer, allow_external, pickle_secrets, cache
    )
    return TableContext(log, plugins or default_registry(), timezone, committer, configured, opening, reopen_snapshot)
