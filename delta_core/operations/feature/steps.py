"""The steps that a feature's plugin returns, each run against the table's latest version."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from delta_core.errors import (
    CommitConflictError,
    ConcurrentAppendError,
    MetadataChangedError,
    ProtocolChangedError,
    TooManyAttemptsError,
)
from delta_core.expressions.ast import NUM_RECORDS
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.intents import added_again, read_columns, removed_files
from delta_core.kernel.commit.options import PostCommit
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.log.tombstones import retained
from delta_core.kernel.plugins.references import absolute_files, named_files
from delta_core.kernel.plugins.steps import (
    AddTombstones,
    ChangeSchema,
    FeatureStep,
    ReAddFiles,
    RemoveDomains,
    RewriteFiles,
    SetProperties,
)
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.layout import arrow_type
from delta_core.kernel.write.names import encode_path
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import mask_of, number_array, one_array, strings_of
from delta_core.operations.optimize import OptimizeOptions, optimize_table
from delta_core.operations.table_rewrite import TableRewrite
from delta_core.runtime.json_text import compact_json
from delta_core.runtime.plugin_errors import contract_error, plugin_errors
from delta_core.schema.fields import Path, find, format_path
from delta_core.schema.types import StructType

__all__ = ["MOST_ATTEMPTS", "StepRunner", "is_metadata_pending", "step_text", "with_properties"]

#: Files that one commit adds again.
BATCH_FILES = 100_000
#: How often an operation goes on from the latest version since other writers committed meanwhile.
MOST_ATTEMPTS = 16
#: Seconds after which rewritten files are committed.
COMMIT_INTERVAL = 60.0

Ints = NDArray[np.int64]


def with_properties(metadata: Metadata, properties: Mapping[str, str | None]) -> Metadata:
    """Return metadata with other table properties; None removes one."""
    found = {k: v for k, v in {**metadata.configuration, **properties}.items() if v is not None}
    return replace(metadata, configuration=found)


def step_text(step: FeatureStep) -> str:
    """Return what a step does, for people."""
    if isinstance(step, SetProperties):
        return "set " + ", ".join(f"{k}={v}" if v is not None else f"{k} (removed)" for k, v in step.properties.items())
    if isinstance(step, RewriteFiles):
        if step.column is not None:
            return f"rewrite files with {step.column}"
        return f"rewrite files with another type of {', '.join(map(format_path, step.columns))} than the table"
    if isinstance(step, AddTombstones):
        return f"add tombstones of the files that removed files name in {step.column}"
    if isinstance(step, ReAddFiles):
        return f"{'remove' if step.clear else 'assign'} {', '.join(step.columns)} of files"
    if isinstance(step, ChangeSchema):
        return "write all rows to new files" if step.rewrite else "remove what the schema holds for the feature"
    assert isinstance(step, RemoveDomains)
    return f"remove domains {', '.join(step.names)}" if step.names else "remove all domains"


def is_metadata_pending(metadata: Metadata, domains: Mapping[str, str], step: FeatureStep) -> bool:
    """Whether a step would change a table's metadata or domains."""
    if isinstance(step, SetProperties):
        return with_properties(metadata, step.properties) != metadata
    if isinstance(step, ChangeSchema):
        return _changed(metadata, step) != metadata
    return isinstance(step, RemoveDomains) and bool(_domains(domains, step))


def _domains(domains: Mapping[str, str], step: RemoveDomains) -> list[str]:
    return [n for n in step.names or sorted(domains) if n in domains]


def _changed(metadata: Metadata, step: ChangeSchema) -> Metadata:
    old = metadata.schema
    with plugin_errors(step.feature, "ChangeSchema.change of hook feature_steps", "feature_steps"):
        schema = step.change(old)
    if not isinstance(schema, StructType):
        what = f"returned {type(schema).__name__}; expected a Schema"
        raise contract_error(step.feature, "feature_steps", "ChangeSchema.change", what)
    changed = metadata if schema == old else replace(metadata, schema_string=schema.to_json())
    return with_properties(changed, dict.fromkeys(step.properties))


class StepRunner:
    """Runs steps; remembers which files it checked, and what it wrote for a commit that lost a race.

    Parameters
    ----------
    commit : Mapping
        Arguments of `Transaction.commit` for each commit.
    report : function(str)
        Called with the description of a step before it begins.
    """

    def __init__(self, commit: Mapping[str, Any], report: Callable[[str], None]) -> None:
        self._commit = commit
        self._report = report
        self._rewrite = TableRewrite()
        self._types: dict[Path, pa.DataType] = {}
        #: The files that have these types.
        self._checked: Any = pa.nulls(0, pa.string())

    def run(self, latest: Snapshot, steps: Callable[[Snapshot], Sequence[FeatureStep]]) -> tuple[Snapshot, bool]:
        """Run the first step that has something to do, until none has: of the version that is returned.

        Parameters
        ----------
        latest : Snapshot
            The table's latest version.
        steps : function(Snapshot) -> sequence of FeatureStep
            Returns the steps for a version.

        Returns
        -------
        (Snapshot, bool)
            The version, and whether this run committed anything.

        Raises
        ------
        ConcurrentAppendError
            Other writers used the feature at each attempt.
        CommitConflictError, TooManyAttemptsError
            They committed at each attempt.
        """
        kind: object = None
        changed, lost = False, 0
        while True:
            step = next((s for s in steps(latest) if self.is_pending(latest, s)), None)
            if step is None:
                return latest, changed
            if type(step) is kind:
                lost += 1
            else:
                self._report(step_text(step))
            if lost >= MOST_ATTEMPTS:
                raise ConcurrentAppendError(
                    f"Other writers go on using the feature {step.feature}, or committing, and this step never ends: "
                    f"{step_text(step)}. Try again when they are done.",
                    feature=step.feature,
                )
            kind = type(step)
            try:
                latest, changed = self._run(latest, step), True
            except (CommitConflictError, TooManyAttemptsError):
                if lost + 1 >= MOST_ATTEMPTS:
                    raise
                latest = latest.latest()

    def close(self) -> None:
        """Delete files that were written for a commit that was never made."""
        self._rewrite.discard()

    def is_pending(self, latest: Snapshot, step: FeatureStep) -> bool:
        """Whether a step has something to do."""
        if isinstance(step, RewriteFiles) and step.column is None:
            return bool(len(self._other_types(latest, step.columns)))
        if isinstance(step, AddTombstones):
            return bool(len(_without_tombstone(latest, step)))
        if isinstance(step, (RewriteFiles, ReAddFiles)):
            return bool(np.count_nonzero(_chosen(latest, step)))
        return is_metadata_pending(latest.metadata, latest.domains(), step)

    def _run(self, latest: Snapshot, step: FeatureStep) -> Snapshot:
        if isinstance(step, SetProperties):
            return self._set_properties(latest, step.properties)
        if isinstance(step, RewriteFiles):
            return self._rewrite_files(latest, step)
        if isinstance(step, AddTombstones):
            return self._add_tombstones(latest, step)
        if isinstance(step, ReAddFiles):
            return self._add_again(latest, step)
        if isinstance(step, ChangeSchema):
            return self._change_schema(latest, step)
        assert isinstance(step, RemoveDomains)
        names = _domains(latest.domains(), step)
        said = {"domainMetadataRemovedCount": str(len(names))}
        transaction = Transaction(latest.context, latest, "DOMAIN METADATA CLEANUP", said)
        transaction.intents.system_domains.update(dict.fromkeys(names))
        return transaction.commit(**self._commit).snapshot

    # --- metadata ---

    def _set_properties(self, latest: Snapshot, properties: Mapping[str, str | None]) -> Snapshot:
        left = {k: v for k, v in properties.items() if v is not None}
        said = {"properties": compact_json(left or list(properties))}
        operation = "SET TBLPROPERTIES" if left else "UNSET TBLPROPERTIES"
        transaction = Transaction(latest.context, latest, operation, said if left else {**said, "ifExists": True})
        transaction.set_metadata(with_properties(latest.metadata, properties))
        return transaction.commit(**self._commit).snapshot

    def stage_schema(self, latest: Snapshot, step: ChangeSchema) -> Transaction[Snapshot]:
        """Return a transaction with the definition that a step makes; without any files."""
        transaction = Transaction(latest.context, latest, step.operation, isolation=IsolationLevel.SERIALIZABLE)
        transaction.set_metadata(_changed(latest.metadata, step), replaces=step.rewrite, without_rules_of=step.feature)
        return transaction

    def _change_schema(self, latest: Snapshot, step: ChangeSchema) -> Snapshot:
        """Commit a schema on top of exactly this version, which the steps before have prepared for it."""
        transaction = self.stage_schema(latest, step)
        transaction.read(None)
        if step.rewrite:
            self._rewrite.stage(transaction, latest)
        return transaction.commit(**{**self._commit, "max_retries": 0}).snapshot

    # --- files ---

    def _rewrite_files(self, latest: Snapshot, step: RewriteFiles) -> Snapshot:
        def choose(files: pa.Table) -> Sequence[Any]:
            if step.column is None:
                chosen = self._of_other_types(latest, files.column("path"))
            else:
                chosen = np.flatnonzero(mask_of(one_array(pc.is_valid(files.column(step.column)))))
            return [np.array([i]) for i in chosen]

        found = OptimizeOptions(
            choose=choose,
            parameters={"applyPurge": "true"},
            min_commit_interval=COMMIT_INTERVAL,
            custom_metadata=self._commit.get("custom_metadata") or {},
            post=self._commit.get("post") or PostCommit(),
        )
        done: Snapshot = optimize_table(latest, found).snapshot
        return done

    def _other_types(self, latest: Snapshot, columns: Sequence[Path]) -> Ints:
        """Return the live files in which a column has another type than in the table."""
        physical, types = latest.state.column_map, latest.state.types
        parts = latest.metadata.partition_columns
        wanted = [physical.physical_path(latest.schema, p) for p in columns if p[0] not in parts]
        expected = {p: arrow_type(find(physical.physical, p)[1].type, types) for p in wanted}
        if expected != self._types:
            self._types, self._checked = expected, pa.nulls(0, pa.string())
        return self._of_other_types(latest, latest.files.columns(["path"]).column(0)) if expected else _NONE

    def _of_other_types(self, latest: Snapshot, paths: pa.ChunkedArray) -> Ints:
        known = np.asarray(pc.is_in(paths, value_set=self._checked))
        left = np.flatnonzero(~known)
        found = []
        by_name = latest.state.column_map.match == "name"
        footers = latest.engine.data.footers(decode_paths(paths.take(number_array(left))))
        for schema, numbers in footers.file_schemas() if len(left) else ():
            have = dict(_leaves(schema, ()))
            # by id, a column may have another name in the file
            missing = None if by_name else pa.null()
            if any(have.get(p, missing) not in (t, None) for p, t in self._types.items()):
                found.append(left[numbers])
        other = np.sort(np.concatenate(found)) if found else _NONE
        right = np.setdiff1d(np.arange(len(paths)), other)
        self._checked = paths.take(number_array(right)).combine_chunks()
        return other

    def _add_tombstones(self, latest: Snapshot, step: AddTombstones) -> Snapshot:
        paths = _without_tombstone(latest, step)
        transaction = Transaction(latest.context, latest, step.operation)
        files = pa.table({"path": paths, "dvId": pa.nulls(len(paths), pa.string())})
        transaction.add_tombstones(removed_files(files, data_change=False))
        return transaction.commit(**self._commit).snapshot

    def _add_again(self, latest: Snapshot, step: ReAddFiles) -> Snapshot:
        """Add files again, in groups; files that other writers remove meanwhile are left out."""
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
                latest = transaction.commit(**self._commit).snapshot
            except (MetadataChangedError, ProtocolChangedError):
                raise
            except CommitConflictError:
                lost += 1
                if lost == MOST_ATTEMPTS:
                    raise
                latest = latest.latest()
                continue
            batch, lost = batch + 1, 0


_NONE: Ints = np.empty(0, np.int64)


def _leaves(schema: pa.Schema | pa.DataType, path: Path) -> Iterator[tuple[Path, pa.DataType]]:
    """Yield (path, type) of what is no struct, list or map; parts of lists and maps are named as the protocol does."""
    if isinstance(schema, pa.Schema) or pa.types.is_struct(schema):
        for f in schema:
            yield from _leaves(f.type, (*path, f.name))
    elif pa.types.is_map(schema):
        yield from _leaves(schema.key_type, (*path, "key"))
        yield from _leaves(schema.item_type, (*path, "value"))
    elif pa.types.is_list(schema) or pa.types.is_large_list(schema) or pa.types.is_fixed_size_list(schema):
        yield from _leaves(schema.value_type, (*path, "element"))
    else:
        yield path, schema


def _chosen(latest: Snapshot, step: RewriteFiles | ReAddFiles) -> Any:
    """Return which live files a step applies to, bool[n_files]."""
    names = (step.column or "",) if isinstance(step, RewriteFiles) else step.columns
    files = latest.files.columns(list(names))
    wants_null = isinstance(step, ReAddFiles) and not step.clear
    found = np.zeros(files.num_rows, np.bool_)
    for column in files.columns:
        is_there = pc.is_valid(column)
        found |= mask_of(one_array(pc.invert(is_there) if wants_null else is_there))
    return found


def _without_tombstone(latest: Snapshot, step: AddTombstones) -> pa.Array:
    """Return the encoded paths of files that tombstones within the retention name, and that have none themselves."""
    found = latest.plugins.collect("file_references", table=latest.state)
    references = [r for r in found if r.column == step.column]
    retention: int = read_property(latest.state.configuration, "delta.deletedFileRetentionDuration")
    named, known = [pa.nulls(0, pa.string())], [pa.nulls(0, pa.string())]
    for _, table in latest.tombstone_tables(["deletionTimestamp", step.column]):
        recent = retained(table, time.time_ns() // 1_000_000 - retention)
        has_files = pc.is_valid(recent.column(step.column))
        known += recent.filter(pc.invert(has_files)).column("path").chunks
        values = one_array(recent.filter(has_files).column(step.column))
        used = references if len(values) else []
        named += [pc.filter(named_files(r, values), pc.invert(absolute_files(r, values))) for r in used]
    paths = pc.unique(pc.drop_null(pa.concat_arrays(named)))
    encoded = strings_of([encode_path(p) for p in paths.to_pylist()])
    return encoded.filter(pc.invert(pc.is_in(encoded, value_set=pa.concat_arrays(known))))


def _files_again(latest: Snapshot, step: ReAddFiles, chosen: Any) -> pa.Table:
    """Return adds of files as they are, but for the columns that are cleared; ids that are there stay."""
    rows = number_array(chosen)
    files = latest.files.columns(read_columns(latest.action_fields)).take(rows)
    counts = latest.files.statistics([NUM_RECORDS]).column(0).take(rows)
    for name in step.columns if step.clear else ():
        at = files.schema.get_field_index(name)
        files = files.set_column(at, name, pa.nulls(files.num_rows, files.schema.field(at).type))
    return added_again(files).append_column("numRecords", counts.cast(pa.int64()))
