"""Table features that existing files have to follow: enabled with a backfill, and dropped with what they left behind.

Both are a series of commits, after each of which the table reads as before. An operation that was interrupted is
finished by calling it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from delta_core.commit.conflict import IsolationLevel
from delta_core.commit.intents import added_again, read_columns, removed_files
from delta_core.commit.options import PostCommit
from delta_core.commit.transaction import Transaction
from delta_core.commit.upgrade import downgrade_protocol, upgrade_protocol
from delta_core.errors import (
    CommitConflictError,
    ConcurrentAppendError,
    FeatureRequirementError,
    HookContractError,
    InvalidArgumentError,
    MetadataChangedError,
    ProtocolChangedError,
    TooManyAttemptsError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionNotFoundError,
    did_you_mean,
)
from delta_core.expressions.ast import NUM_RECORDS
from delta_core.kernels import compute as pc
from delta_core.log.checkpoint_writer import write_checkpoint
from delta_core.log.files import FileSet
from delta_core.operations.optimize import OptimizeOptions, optimize_table
from delta_core.operations.rewrite import carried_columns, rewrite_rows
from delta_core.plugins.features import TableFeature
from delta_core.plugins.steps import (
    ChangeSchema,
    FeatureStep,
    FeatureUse,
    ReAddFiles,
    RemoveDomains,
    RemoveProperties,
    RewriteFiles,
    SetProperties,
)
from delta_core.protocol.actions import Metadata, Protocol
from delta_core.protocol.schema import Schema
from delta_core.snapshot import Snapshot
from delta_core.write.files import Written

__all__ = [
    "DropFeatureOptions",
    "DroppedFeature",
    "add_features",
    "drop_feature",
    "enabled_features",
    "run_enabling_steps",
]

#: Checkpoints before the commit that drops a feature: readers that lack the feature try so many, and then stop.
NUM_BARRIERS = 3
#: Files that one commit adds again.
BATCH_FILES = 100_000
#: How often an operation begins again since other writers committed meanwhile.
MOST_ATTEMPTS = 16
#: Seconds after which rewritten files are committed.
COMMIT_INTERVAL = 60.0


class DropFeatureOptions(Struct, frozen=True):
    """How a feature is dropped.

    Parameters
    ----------
    truncate_history : bool
        Drop it only if no version that is left in the log uses it, in place of protecting the checkpoints of these.
    dry_run : bool
        Check and list the steps, and change nothing.
    progress : function(str), optional
        Called before each step with its description.
    commit : Mapping
        Arguments of `Transaction.commit`; ``transactions`` belong to the last commit.
    """

    truncate_history: bool = False
    dry_run: bool = False
    progress: Callable[[str], None] | None = None
    commit: Mapping[str, Any] = field(default_factory=dict)

    @property
    def before(self) -> dict[str, Any]:
        """The arguments of commits before the last one."""
        return {k: v for k, v in self.commit.items() if k != "transactions"}

    def report(self, text: str) -> None:
        """Report the next step."""
        if self.progress is not None:
            self.progress(text)


class DroppedFeature(Struct, frozen=True):
    """What the drop of a feature came to.

    Parameters
    ----------
    snapshot : Snapshot
        The table afterwards; as it was with ``dry_run``.
    steps : tuple of str
        The steps, as text.
    """

    snapshot: Snapshot
    steps: tuple[str, ...]


class _Drop(Struct, frozen=True):
    """What is known of a drop from the table's latest version."""

    feature: TableFeature
    steps: tuple[FeatureStep, ...]

    @property
    def has_traces(self) -> bool:
        """Whether older versions can be read with the feature alone."""
        return self.feature.kind == "reader+writer" and self.feature.in_history

    @property
    def before(self) -> list[FeatureStep]:
        """The steps that have commits of their own."""
        return [s for s in self.steps if not isinstance(s, (RemoveProperties, ChangeSchema))]


def drop_feature(base: Snapshot, name: str, options: DropFeatureOptions) -> DroppedFeature:
    """Remove a feature from the table: first what it left in metadata and files, then its name from the protocol.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    name : str
        The feature, whatever the case of its letters.
    options : DropFeatureOptions
        How it is dropped.

    Raises
    ------
    InvalidArgumentError
        If the table does not support the feature, or if its history has nothing to truncate.
    UnsupportedFeatureError
        If no installed plugin provides the feature.
    FeatureRequirementError
        If another feature of the table requires it.
    UnsupportedOperationError
        If the feature can't be dropped, a column or constraint uses it, or versions that use it are left in the log
        which is to be truncated.
    CommitConflictError, TooManyAttemptsError
        Other writers committed again and again meanwhile. Call it again.

    Protocol
    --------
    Table Features; checkpointProtection of the proposals
    """
    for attempt in range(MOST_ATTEMPTS):
        latest = base.latest()
        drop = _plan(latest, name, options)
        if options.dry_run:
            return DroppedFeature(latest, tuple(_texts(latest, drop, options)))
        try:
            return _run(latest, drop, options)
        except (CommitConflictError, TooManyAttemptsError):
            if attempt + 1 == MOST_ATTEMPTS:
                raise
            base = latest
    raise AssertionError


def _plan(latest: Snapshot, name: str, options: DropFeatureOptions) -> _Drop:
    registry = latest.context.registry
    known = latest.context.registry.supported(latest.protocol).all
    name = next((n for n in (*known, *registry.names()) if n.lower() == name.lower()), name)
    plugins = registry.plugin_of(name)
    (feature,) = plugins.features.values()
    if not known & {feature.name, *feature.aliases}:
        raise InvalidArgumentError(
            f"The table does not support the feature {name!r}.{did_you_mean(name, known)} It supports: "
            f"{', '.join(sorted(known)) or 'none'}.",
            feature=name,
        )
    dependents = [f.name for f in latest.plugins.features.values() if feature.name in f.requires]
    if dependents:
        raise FeatureRequirementError(
            f"Feature {feature.name} can't be dropped: {', '.join(dependents)} of the table needs it. Drop "
            f"{dependents[0]} first.",
            feature=feature.name,
            dependents=tuple(dependents),
        )
    if not plugins.implements("feature_steps"):
        raise UnsupportedOperationError(
            f"Feature {feature.name} can't be dropped: its plugin does not provide the steps. Copy the rows to a new "
            "table without it.",
            feature=feature.name,
        )
    steps = tuple(plugins.collect("feature_steps", table=latest.state, change="drop"))
    drop = _Drop(feature, steps)
    _check_use(drop)
    _check_truncation(drop, options)
    return drop


def _check_use(drop: _Drop) -> None:
    for use in drop.steps:
        if isinstance(use, FeatureUse) and use.users:
            shown = ", ".join(use.users[:10])
            raise UnsupportedOperationError(
                f"Feature {drop.feature.name} can't be dropped: the table uses it for {shown}. {use.advice}",
                feature=drop.feature.name,
                users=use.users,
            )


def _check_truncation(drop: _Drop, options: DropFeatureOptions) -> None:
    name = drop.feature.name
    if drop.feature.protects_history and not options.truncate_history:
        raise UnsupportedOperationError(
            f"Feature {name} protects versions of the log that only readers with dropped features can read. Remove "
            "these versions from the log, and drop it with truncate_history=True.",
            feature=name,
        )
    if options.truncate_history and not drop.has_traces and not drop.feature.protects_history:
        raise InvalidArgumentError(
            f"Feature {name} can be dropped without its history: older versions can be read without it. Leave "
            "truncate_history out.",
            feature=name,
        )


def _texts(latest: Snapshot, drop: _Drop, options: DropFeatureOptions) -> Iterable[str]:
    """Yield the steps as they are shown; those that have nothing to do are left out."""
    yield from (_text(s) for s in drop.before if _is_pending(latest, s))
    if drop.has_traces and options.truncate_history:
        yield f"check that no version in the log uses {drop.feature.name}"
    elif drop.has_traces:
        yield f"write {NUM_BARRIERS} checkpoints, each after an empty commit"
    if _rewritten(latest, drop.steps) is not None:
        yield "write all rows to new files"
    yield f"remove {drop.feature.name} from the protocol"
    if drop.has_traces and not options.truncate_history:
        yield "write a checkpoint"


def _text(step: FeatureStep) -> str:
    if isinstance(step, SetProperties):
        return "set " + ", ".join(f"{k}={v}" if v is not None else f"{k} (removed)" for k, v in step.properties.items())
    if isinstance(step, RewriteFiles):
        return f"rewrite files with {step.column}"
    if isinstance(step, ReAddFiles):
        return f"{'remove' if step.clear else 'assign'} {', '.join(step.columns)} of files"
    assert isinstance(step, RemoveDomains)
    return f"remove domains {', '.join(step.names)}" if step.names else "remove all domains"


# --- the steps -----------------------------------------------------------------------------


def _run(latest: Snapshot, drop: _Drop, options: DropFeatureOptions) -> DroppedFeature:
    texts = tuple(_texts(latest, drop, options))
    changed = False
    for step in drop.before:
        if _is_pending(latest, step):
            options.report(_text(step))
            latest, changed = _run_step(latest, step, options), True
    if options.truncate_history:
        latest = _truncated(latest, drop, options, changed)
    elif drop.has_traces:
        for number in range(NUM_BARRIERS):
            options.report(f"checkpoint {number + 1} of {NUM_BARRIERS}")
            latest = _barrier(latest, options)
    options.report(f"remove {drop.feature.name} from the protocol")
    latest = _finish(latest, options, drop.feature)
    if drop.has_traces and not options.truncate_history:
        write_checkpoint(latest)
    return DroppedFeature(latest, texts)


def _is_pending(latest: Snapshot, step: FeatureStep) -> bool:
    """Whether a step has something to do."""
    if isinstance(step, SetProperties):
        return _with_properties(latest.metadata, step.properties) != latest.metadata
    if isinstance(step, (RewriteFiles, ReAddFiles)):
        return bool(np.count_nonzero(_chosen(latest, step)))
    return isinstance(step, RemoveDomains) and bool(_domains(latest, step))


def _run_step(latest: Snapshot, step: FeatureStep, options: DropFeatureOptions) -> Snapshot:
    if isinstance(step, SetProperties):
        return _set_properties(latest, step.properties, options)
    if isinstance(step, RewriteFiles):
        return _rewrite(latest, step, options)
    if isinstance(step, ReAddFiles):
        return _add_again(latest, step, options)
    assert isinstance(step, RemoveDomains)
    names = _domains(latest, step)
    said = {"domainMetadataRemovedCount": str(len(names))}
    transaction = Transaction(latest.context, latest, "DOMAIN METADATA CLEANUP", said)
    transaction.intents.system_domains.update(dict.fromkeys(names))
    return transaction.commit(**options.before).snapshot


def _domains(latest: Snapshot, step: RemoveDomains) -> list[str]:
    have = latest.domains()
    return [n for n in step.names or sorted(have) if n in have]


def _with_properties(metadata: Metadata, properties: Mapping[str, str | None]) -> Metadata:
    found = {k: v for k, v in {**metadata.configuration, **properties}.items() if v is not None}
    return replace(metadata, configuration=found)


def _set_properties(latest: Snapshot, properties: Mapping[str, str | None], options: DropFeatureOptions) -> Snapshot:
    transaction = Transaction(latest.context, latest, "SET TBLPROPERTIES", {"properties": _listed(properties)})
    transaction.set_metadata(_with_properties(latest.metadata, properties))
    return transaction.commit(**options.before).snapshot


def _listed(properties: Mapping[str, str | None]) -> str:
    return _dump({k: v for k, v in properties.items() if v is not None})


def _chosen(latest: Snapshot, step: RewriteFiles | ReAddFiles) -> Any:
    """Return which live files a step applies to, bool[n_files]."""
    names = (step.column,) if isinstance(step, RewriteFiles) else step.columns
    files = latest.files.columns(list(names))
    wants_null = isinstance(step, ReAddFiles) and not step.clear
    found = np.zeros(files.num_rows, np.bool_)
    for column in files.columns:
        is_there = pc.is_valid(column)
        found |= np.asarray(pc.invert(is_there) if wants_null else is_there)
    return found


def _rewrite(latest: Snapshot, step: RewriteFiles, options: DropFeatureOptions) -> Snapshot:
    def choose(files: pa.Table) -> Sequence[Any]:
        return [np.array([i]) for i in np.flatnonzero(np.asarray(pc.is_valid(files.column(step.column))))]

    found = OptimizeOptions(
        choose=choose,
        parameters={"applyPurge": "true"},
        min_commit_interval=COMMIT_INTERVAL,
        custom_metadata=options.commit.get("custom_metadata") or {},
        post=options.commit.get("post") or PostCommit(),
    )
    return optimize_table(latest, found).snapshot


def _add_again(latest: Snapshot, step: ReAddFiles, options: DropFeatureOptions) -> Snapshot:
    """Add files again, so many at a time; files that other writers remove meanwhile are left out."""
    batch, lost = 0, 0
    while True:
        chosen = np.flatnonzero(_chosen(latest, step))[:BATCH_FILES]
        if not len(chosen):
            return latest
        transaction = Transaction(
            latest.context, latest, step.operation, {"batchId": str(batch)}, isolation=IsolationLevel.SERIALIZABLE
        )
        files = _files_again(latest, step, chosen)
        transaction.reads.files.append(files.select(["path", "dvId"]))
        transaction.add_files(files)
        try:
            latest = transaction.commit(**options.before).snapshot
        except (MetadataChangedError, ProtocolChangedError):
            raise
        except CommitConflictError:
            lost += 1
            if lost == MOST_ATTEMPTS:
                raise
            latest = latest.latest()
            continue
        batch, lost = batch + 1, 0


def _files_again(latest: Snapshot, step: ReAddFiles, chosen: Any) -> pa.Table:
    """Return adds of files as they are, but for the columns that are cleared; ids that are there stay."""
    rows = pa.array(chosen)
    files = latest.files.columns(read_columns(latest.action_fields)).take(rows)
    counts = latest.files.statistics([NUM_RECORDS]).column(0).take(rows)
    for name in step.columns if step.clear else ():
        at = files.schema.get_field_index(name)
        files = files.set_column(at, name, pa.nulls(files.num_rows, files.schema.field(at).type))
    return added_again(files).append_column("numRecords", counts.cast(pa.int64()))


def _barrier(latest: Snapshot, options: DropFeatureOptions) -> Snapshot:
    """Commit nothing and write a checkpoint of it: readers need no version before it."""
    arguments = {**options.before, "post": PostCommit(create_checkpoint=False)}
    snapshot = Transaction(latest.context, latest, "Empty Commit").commit(**arguments).snapshot
    write_checkpoint(snapshot)
    return snapshot


# --- the last commit -----------------------------------------------------------------------


def _finish(latest: Snapshot, options: DropFeatureOptions, feature: TableFeature) -> Snapshot:
    """Commit the protocol without the feature, with what has to change at once; another writer's commit undoes it."""
    latest = latest.latest()
    drop = _plan(latest, feature.name, options)
    pending = [s for s in drop.before if _is_pending(latest, s)]
    if pending:
        raise ConcurrentAppendError(
            f"Another writer used the feature {feature.name} while it was dropped. Drop it again.", feature=feature.name
        )
    said = {"featureName": feature.name, "truncateHistory": str(options.truncate_history).lower()}
    transaction = Transaction(latest.context, latest, "DROP FEATURE", said, isolation=IsolationLevel.SERIALIZABLE)
    names = [n for s in drop.steps if isinstance(s, RemoveProperties) for n in s.names]
    metadata = _with_properties(latest.metadata, dict.fromkeys(names))
    schema = _rewritten(latest, drop.steps)
    if schema is not None:
        metadata = replace(metadata, schema_string=schema.to_json())
    features = []
    if drop.has_traces and not options.truncate_history:
        protector = _protector(latest)
        features = [protector.name]
        metadata = _with_properties(metadata, {protector.protects_history: str(latest.version + 1)})
    registry = latest.context.registry
    state = transaction.set_metadata(
        metadata, features, replaces=schema is not None, protocol=downgrade_protocol(latest.protocol, feature, registry)
    )
    if feature.name in state.features:
        raise HookContractError(
            f"Hook feature_steps of plugin {feature.name!r} left metadata that needs the feature; expected steps that "
            "remove it.",
            plugin=feature.name,
            hook="feature_steps",
        )
    transaction.read(None)
    written = None
    # a winner would make the version that is protected another one, and what was checked above wrong
    arguments = {**options.commit, "max_retries": 0}
    try:
        if schema is not None:
            written = _stage_rows(transaction, latest)
        return transaction.commit(**arguments).snapshot
    except BaseException:
        if written is not None and not transaction.in_doubt:
            written.cleanup()
        raise


def _protector(latest: Snapshot) -> TableFeature:
    features = latest.context.registry.everything.features.values()
    found = next((f for f in features if f.protects_history), None)
    if found is None:
        raise UnsupportedFeatureError(
            "No installed plugin protects the checkpoints of versions that use the feature. Install a package with "
            "one, or drop the feature with truncate_history=True."
        )
    return found


def _rewritten(latest: Snapshot, steps: Iterable[FeatureStep]) -> Schema | None:
    """Return the schema in which all rows are written again, None if it stays as it is."""
    old = schema = Schema.from_json(latest.metadata.schema_string)
    for step in steps:
        if isinstance(step, ChangeSchema):
            schema = step.change(schema)
    return None if schema == old else schema


def _stage_rows(transaction: Transaction[Snapshot], latest: Snapshot) -> Written:
    """Write all rows as the transaction's table has them, in place of the files that are there."""
    files = latest.files.columns(read_columns(latest.action_fields))
    plan = transaction.plan
    carried = carried_columns(plan)
    rows = latest.scan(metadata=tuple(carried), files=FileSet.of(files))
    written = rewrite_rows(latest.engine, plan, rows, carried, data_change=False)
    transaction.remove_files(removed_files(files, False))
    transaction.add_files(written.adds)
    transaction.intents.report(written.reported)
    return written


# --- history -------------------------------------------------------------------------------


def _truncated(latest: Snapshot, drop: _Drop, options: DropFeatureOptions, changed: bool) -> Snapshot:
    """Check that the log has no version which uses the feature."""
    name = drop.feature.name
    first = latest.context.log.commit_files()[0].version
    if drop.feature.protects_history:
        protected = int(latest.metadata.configuration.get(drop.feature.protects_history) or 0)
        if first >= protected:
            return latest
        uses = f"version {first} is in the log, and versions below {protected} are protected"
    else:
        if changed:
            # cleaning up needs a checkpoint of a version without the feature
            latest = _barrier(latest, options)
        used = first if changed else _last_use(latest, drop.feature, first)
        if used is None:
            return latest
        uses = f"version {latest.version - 1 if changed else used} in the log still needs it"
    raise UnsupportedOperationError(
        f"Feature {name} is not in use any more and can't be dropped yet: {uses}. Remove the versions up to there from "
        "the log once they are older than its retention, and drop the feature again"
        + ("." if drop.feature.protects_history else ", or drop it without truncate_history."),
        feature=name,
    )


def _last_use(latest: Snapshot, feature: TableFeature, first: int) -> int | None:
    """Return a version from ``first`` on that uses a feature, None if there is none."""
    plugins = latest.context.registry.plugin_of(feature.name)
    columns: set[str] = set()
    try:
        definitions = sorted({first, *latest.definition_changes(first)})
        for version in definitions:
            snapshot = latest.at(version)
            steps = plugins.collect("feature_steps", table=snapshot.state, change="drop")
            columns |= {s.column for s in steps if isinstance(s, RewriteFiles)}
            used = any(isinstance(s, FeatureUse) and s.users for s in steps) or _rewritten(snapshot, steps) is not None
            if used or any(_is_pending(snapshot, s) for s in steps):
                return version
        for commit in latest.commits(first + 1) if columns else ():
            if any(
                c in commit.adds.column_names and commit.adds.column(c).null_count < commit.adds.num_rows
                for c in columns
            ):
                return commit.version
    except VersionNotFoundError:
        return first
    return None


# --- adding and enabling ------------------------------------------------------------------


def add_features(
    base: Snapshot, names: Sequence[str], commit: Mapping[str, Any], *, allow_higher_versions: bool = True
) -> Snapshot:
    """Add table features, with those that they need; the features that old protocol versions implied are listed too.

    Raises
    ------
    UnsupportedFeatureError
        For a feature that no installed plugin provides.
    InvalidArgumentError
        If the protocol's versions would rise and ``allow_higher_versions`` is not set.
    """
    latest = base.latest()
    before = latest.protocol
    protocol = upgrade_protocol(before, names, latest.context.registry)
    if protocol == before:
        return latest
    rises = (
        protocol.min_reader_version > before.min_reader_version
        or protocol.min_writer_version > before.min_writer_version
    )
    if rises and not allow_higher_versions:
        raise InvalidArgumentError(
            f"The table has reader version {before.min_reader_version} and writer version {before.min_writer_version}; "
            f"{', '.join(names)} would raise them to {protocol.min_reader_version} and {protocol.min_writer_version}, "
            "which older programs can't read or write. Pass allow_protocol_versions_increase=True to raise them.",
            min_reader_version=protocol.min_reader_version,
            min_writer_version=protocol.min_writer_version,
        )
    return _add(latest, names, commit)


def _add(latest: Snapshot, names: Sequence[str], commit: Mapping[str, Any]) -> Snapshot:
    transaction = Transaction(latest.context, latest, "UPGRADE PROTOCOL")
    transaction.set_metadata(latest.metadata, names)
    transaction.parameters["newProtocol"] = _protocol_text(transaction.table.protocol)
    return transaction.commit(**commit).snapshot


def _protocol_text(protocol: Protocol) -> str:
    shown: dict[str, Any] = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    if protocol.reader_features is not None:
        shown["readerFeatures"] = list(protocol.reader_features)
    if protocol.writer_features is not None:
        shown["writerFeatures"] = list(protocol.writer_features)
    return _dump(shown)


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def enabled_features(latest: Snapshot, metadata: Metadata) -> list[str]:
    """Return the features that new metadata switches on, and that the table's files have to follow first."""
    registry = latest.context.registry
    everything = registry.everything
    old, new = (set(everything.collect("required_features", metadata=m)) for m in (latest.metadata, metadata))
    return [n for n in sorted(new - old) if _enabling_steps(latest, n)]


def _enabling_steps(latest: Snapshot, name: str) -> list[FeatureStep]:
    plugins = latest.context.registry.plugin_of(name)
    return list(plugins.collect("feature_steps", table=latest.state, change="enable"))


def run_enabling_steps(latest: Snapshot, name: str, commit: Mapping[str, Any]) -> Snapshot:
    """Add a feature, and make the table's files follow it; the caller switches it on then.

    Raises
    ------
    CommitConflictError
        If another writer changed the table's definition meanwhile. Call it again.
    """
    options = DropFeatureOptions(commit=commit)
    registry = latest.context.registry
    if upgrade_protocol(latest.protocol, [name], registry) != latest.protocol:
        latest = _add(latest, [name], options.before)
    for step in _enabling_steps(latest, name):
        if _is_pending(latest, step):
            latest = _run_step(latest, step, options)
    return latest
