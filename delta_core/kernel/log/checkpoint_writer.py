"""Writing checkpoints: sidecars first, then the checkpoint itself, then the hint; each whole or not at all.

Protocol: Checkpoints, V2 Spec, Sidecar Files, Last Checkpoint File.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.engine import Engine
from delta_core.engines.interface import CheckpointHandle
from delta_core.engines.records import ParquetForm
from delta_core.errors import (
    DeltaError,
    EngineError,
    InvalidArgumentError,
    LogChangedError,
    LogError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    UnsupportedVersionError,
)
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.checkpoint_adds import ROW_GROUP, AddReader
from delta_core.kernel.log.checkpoint_schema import Action, CheckpointColumns, format_action, json_value, rows_table
from delta_core.kernel.log.checkpoint_source import CheckpointSource
from delta_core.kernel.log.checksum import check_by_checksum, has_checksum, write_checksum
from delta_core.kernel.log.existing_checkpoint import find_checkpoint
from delta_core.kernel.log.files import MOST_CHANGES, Part
from delta_core.kernel.log.hint import EMBEDDED, write_hint
from delta_core.kernel.log.names import LOG_DIRECTORY, SIDECAR_DIRECTORY, checkpoint_name, commit_name
from delta_core.kernel.log.sidecars import Sidecar, reusable_sidecars
from delta_core.kernel.log.tombstones import remove_groups, retained
from delta_core.kernel.plugins.checkpoint_plan import CheckpointPlan
from delta_core.kernel.protocol.actions import DomainMetadata
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernels.json_lines import format_actions
from delta_core.runtime.threads import ThreadPool

__all__ = ["CheckpointResult", "CheckpointSource", "write_checkpoint"]

_log = logging.getLogger(__name__)
T = TypeVar("T")
#: A checkpoint of at most this many actions is one row group.
FEW = 1_000
#: Fields of few distinct values.
_DICTIONARY = tuple(
    (action, name) for action in ("add", "remove") for name in ("partitionValues", "tags", "clusteringProvider")
)


class CheckpointResult(Struct, frozen=True):
    """A checkpoint that was written.

    Parameters
    ----------
    path : str
        The checkpoint's own file, from the table's root.
    size_bytes : int
        Of the checkpoint and its sidecars.
    num_actions, num_adds : int
        In the checkpoint and its sidecars.
    written, reused : tuple of str
        Names of sidecars.
    existed : bool
        Whether the version had this checkpoint already, and nothing was written.
    """

    version: int
    path: str
    size_bytes: int
    num_actions: int
    num_adds: int
    written: tuple[str, ...] = ()
    reused: tuple[str, ...] = ()
    existed: bool = False


def write_checkpoint(
    snapshot: CheckpointSource,
    *,
    now_ms: int | None = None,
    plan: CheckpointPlan | None = None,
    checksum: bool = True,
    replace: bool = False,
) -> CheckpointResult:
    """Write a checkpoint of a snapshot's version.

    Parameters
    ----------
    snapshot : CheckpointSource
        The version.
    now_ms : int, optional
        The clock, by which tombstones and transactions expire; ms since the epoch.
    plan : CheckpointPlan, optional
        How; what the table's features and properties specify unless given. V2 needs a feature that answers with V2.
    checksum : bool
        Whether to write the version's checksum too, if there is none.
    replace : bool
        Whether a checkpoint of the same name is replaced although it can be read: one that is known to be wrong.

    Raises
    ------
    UnsupportedFeatureError, UnsupportedVersionError
        The table needs more of a writer than is installed.
    UnsupportedOperationError
        The version is not published in the log yet.
    EngineError
        The store failed; the table reads as before.
    LogError
        The version's checksum, which is not the only one, reports other files than its log has.
    LogChangedError
        With ``replace``, if files of the log were replaced or deleted meanwhile.

    Notes
    -----
    Streams row groups: memory is bounded by windows of about 512 MB, whatever the number of files. Sidecars without
    changes are referenced again. `_last_checkpoint` never goes back to an older version. A sound checkpoint that
    the version has under the same name is kept: others may be reading it.

    Protocol
    --------
    Checkpoints
    """
    _check_writable(snapshot)
    _check_published(snapshot)
    if not replace:
        _check_state(snapshot)
    clock = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    start = time.perf_counter()
    result = _write(snapshot, _choose_plan(snapshot, plan), clock, replace)
    took = (time.perf_counter() - start) * 1000
    _log.info(
        "Wrote the checkpoint of version %d of %s (%.1f ms)",
        snapshot.version,
        shown_uri(snapshot.engine.storage.root),
        took,
    )
    if checksum:
        write_checksum(snapshot, full=True)
    return result


def _write(snapshot: CheckpointSource, plan: CheckpointPlan, clock: int, replace: bool) -> CheckpointResult:
    storage, version = snapshot.engine.storage, snapshot.version
    path = f"{LOG_DIRECTORY}/{checkpoint_name(version)}"
    for _ in range(MOST_CHANGES):
        try:
            found = find_checkpoint(snapshot, path) if plan.naming == "classic" and not replace else None
            if found is not None and found.is_sound:
                num_adds = snapshot.files.count
                result = CheckpointResult(version, path, found.size_bytes, found.num_actions, num_adds, existed=True)
                if found.num_actions:
                    write_hint(storage, _hint(result), again=False)
                return result
            writer = _Writer(snapshot, plan, clock, replaces=replace or found is not None)
            result = writer.write()
        except FileExistsError:  # another process was faster
            continue
        except LogChangedError:
            if replace:
                raise  # a fresh listing would choose the checkpoint that is wrong
            snapshot.reload()
            continue
        write_hint(storage, writer.hint(result))
        return result
    raise EngineError(
        f"The checkpoint of version {version} of {snapshot.uri} could not be written: files of the log were replaced "
        f"{MOST_CHANGES} times meanwhile. Try again.",
        path=path,
        version=version,
    )


def _hint(result: CheckpointResult) -> dict[str, Any]:
    return {
        "version": result.version,
        "size": result.num_actions,
        "sizeInBytes": result.size_bytes,
        "numOfAddFiles": result.num_adds,
    }


def _check_writable(snapshot: CheckpointSource) -> None:
    version = snapshot.state.protocol.min_writer_version
    if not 1 <= version <= 7:
        raise UnsupportedVersionError(
            f"The table needs writer version {version}; this release writes 1 to 7. Upgrade delta-core-lake.",
            min_writer_version=version,
        )
    unknown = sorted(snapshot.plugins.unknown)
    if unknown:
        raise UnsupportedFeatureError(
            f"The table needs the writer feature{'s' * (len(unknown) > 1)} {', '.join(unknown)}, which no installed "
            "plugin provides: a checkpoint might lose what they keep in the log. Install a package that provides it.",
            feature=unknown[0],
            features=tuple(unknown),
        )


def _check_published(snapshot: CheckpointSource) -> None:
    """Reject a version that only its catalog has: a reader of the log alone would find a gap below it."""
    if not any(f.kind == "staged" for f in snapshot.segment.deltas):
        return
    try:
        snapshot.engine.storage.stat([f"{LOG_DIRECTORY}/{commit_name(snapshot.version)}"])
    except FileNotFoundError as e:
        raise UnsupportedOperationError(
            f"Version {snapshot.version} of {snapshot.uri} is ratified by its catalog but not published in the log "
            "yet: it can't be checkpointed. Publish it first.",
            version=snapshot.version,
        ) from e


def _check_state(snapshot: CheckpointSource) -> None:
    """Reject a version that its checksum contradicts: a checkpoint would confirm the damage of a commit."""
    try:
        check_by_checksum(snapshot, snapshot.checksum)
    except LogError as e:
        if snapshot.checksum is None and not has_checksum(snapshot.engine.storage, snapshot.version - 1):
            # a single checksum, of a writer that does not keep them up, proves nothing against the log
            _log.warning("%s", e)
            return
        raise


def _choose_plan(snapshot: CheckpointSource, given: CheckpointPlan | None) -> CheckpointPlan:
    answer: CheckpointPlan = snapshot.plugins.single("plan_checkpoint", CheckpointPlan(), table=snapshot.state)
    if given is None:
        return answer
    if given.spec == "v2" and answer.spec != "v2":
        raise InvalidArgumentError(
            "A V2 checkpoint was requested, but the table has no feature active that plans such; enable it "
            "(delta.checkpointPolicy=v2) or leave the plan out."
        )
    return given


class _Writer(Struct, dict=True):
    """One checkpoint under construction."""

    snapshot: CheckpointSource
    plan: CheckpointPlan
    now_ms: int
    replaces: bool = False
    num_adds: int = 0
    num_removes: int = 0
    own: list[Action] = []
    sidecars: list[Sidecar] = []
    own_bytes: int = 0

    def __post_init__(self) -> None:
        table = self.snapshot.state
        kinds = [k for f in self.snapshot.plugins.features.values() for k in f.actions if k.in_checkpoint]
        inline_json = self.plan.format == "json" and not self.plan.sidecar_actions
        self.columns = CheckpointColumns.of(table, self.snapshot.action_fields, kinds, struct=not inline_json)
        self._form = ParquetForm(
            read_property(table.configuration, "delta.parquet.compression.codec"),
            read_property(table.configuration, "delta.parquet.format.version"),
            _DICTIONARY,
        )
        self._logs = self.snapshot.engine.logs

    def write(self) -> CheckpointResult:
        version = self.snapshot.version
        self.own = self._own_actions()
        unique = str(uuid.uuid4()) if self.plan.naming == "uuid" else ""
        path = f"{LOG_DIRECTORY}/{checkpoint_name(version, unique, self.plan.format)}"
        if self.plan.sidecar_actions:
            self._write_sidecars()
        if self.plan.spec == "v2":
            self.own.insert(0, ("checkpointMetadata", {"version": version, "tags": self._tags()}))
        files = [("sidecar", s.to_json()) for s in self.sidecars]
        try:
            self.own_bytes = self._write_own(path, [*self.own, *files])
        except FileExistsError:
            _discard(self.snapshot.engine, [s.path for s in self.sidecars if not s.reused])
            raise
        return CheckpointResult(
            version,
            path,
            self.own_bytes + sum(s.size for s in self.sidecars),
            len(self.own) + len(files) + self.num_adds + self.num_removes,
            self.num_adds,
            tuple(s.name for s in self.sidecars if not s.reused),
            tuple(s.name for s in self.sidecars if s.reused),
        )

    def _own_actions(self) -> list[Action]:
        """Return every action that is no file's, reconciled, expired transactions and removed domains left out."""
        table = self.snapshot.state
        out: list[Action] = [("protocol", table.protocol.to_json()), ("metaData", table.metadata.to_json())]
        keep = read_property(table.configuration, "delta.setTransactionRetentionDuration")
        for txn in self.snapshot.transactions().values():
            expired = keep is not None and txn.last_updated is not None and txn.last_updated < self.now_ms - keep
            if not expired:
                out.append(("txn", txn.to_json()))
        out += [("domainMetadata", DomainMetadata(d, c).to_json()) for d, c in self.snapshot.domains().items()]
        for kind in self.columns.kinds:
            out += [(kind.name, json_value(value, kind.type)) for value in self.snapshot.custom_actions(kind.name)]
        return out

    # --- file actions ---

    def _adds(self, parts: Sequence[Part], group_rows: int) -> Iterator[pa.ChunkedArray]:
        reader = AddReader(self.columns, self.snapshot.timezone, group_rows)
        groups = reader.groups(parts)
        several = sum(p.chunk.num_rows for p in parts) > group_rows
        for group in _ahead(groups) if several else groups:
            self.num_adds += len(group)
            yield group

    def _removes(self, reused: Callable[[CheckpointHandle | None], bool], group_rows: int) -> Iterator[pa.ChunkedArray]:
        names = [f.name for f in self.columns.remove if f.name != "dataChange"]
        tables = (t for handle, t in self.snapshot.tombstone_tables(names) if not reused(handle))
        for group in remove_groups((retained(t, self._oldest) for t in tables), self.columns.remove, group_rows):
            self.num_removes += len(group)
            yield group

    @property
    def _oldest(self) -> int:
        """Tombstones up to this time have expired."""
        keep: int = read_property(self.snapshot.state.configuration, "delta.deletedFileRetentionDuration")
        return self.now_ms - keep

    def _file_groups(self) -> Iterator[tuple[str, pa.ChunkedArray]]:
        yield from (("remove", g) for g in self._removes(lambda handle: False, ROW_GROUP))
        yield from (("add", g) for g in self._adds(self.snapshot.files.parts, ROW_GROUP))

    # --- files ---

    def _write_own(self, path: str, actions: Sequence[Action]) -> int:
        files = () if self.plan.sidecar_actions else self._file_groups()
        if self.plan.format == "json":
            head = "".join(format_action(a) for a in actions).encode()
            lines = (format_actions(kind, _flat(group)) for kind, group in files)
            return self._logs.write_lines(path, _chain([head], lines))
        schema = self.columns.schema(self.plan.spec == "v2")
        nulls: dict[str, pa.Array] = {}
        tables = (_filled(kind, group, schema, nulls) for kind, group in files)
        groups = _few_together(_chain([rows_table(actions, schema)], tables))
        return self._logs.write_parquet(path, schema, groups, self._form, replace=self.replaces)

    def _write_sidecars(self) -> None:
        reused = reusable_sidecars(self.snapshot, self.columns, self._oldest, self.plan.sidecar_actions // 2)
        self.sidecars += reused
        self.num_adds, self.num_removes = sum(s.num_adds for s in reused), sum(s.num_removes for s in reused)
        paths = {s.path for s in reused}

        def is_reused(handle: CheckpointHandle | None) -> bool:
            return handle is not None and handle.path in paths

        parts = [p for p in self.snapshot.files.parts if p.chunk.place is None or not is_reused(p.chunk.place[0])]
        rows = min(ROW_GROUP, self.plan.sidecar_actions)
        each = max(1, self.plan.sidecar_actions // rows)
        try:
            for kind, groups in (("add", self._adds(parts, rows)), ("remove", self._removes(is_reused, rows))):
                for first in groups:
                    self._write_sidecar(kind, _chain([first], _take(groups, each - 1)))
        except BaseException:
            # nothing refers to them yet
            _discard(self.snapshot.engine, [s.path for s in self.sidecars if not s.reused])
            raise

    def _write_sidecar(self, kind: str, groups: Iterable[pa.ChunkedArray]) -> None:
        schema = self.columns.sidecar_schema
        name = f"{uuid.uuid4()}.parquet"
        nulls: dict[str, pa.Array] = {}
        tables = (_filled(kind, g, schema, nulls) for g in groups)
        size = self._logs.write_parquet(f"{SIDECAR_DIRECTORY}/{name}", schema, tables, self._form)
        self.sidecars.append(Sidecar(name, size, self.now_ms))

    def _tags(self) -> dict[str, str]:
        if not self.sidecars:
            return {}
        return {
            "sidecarNumActions": str(self.num_adds + self.num_removes),
            "sidecarSizeInBytes": str(sum(s.size for s in self.sidecars)),
            "numOfAddFiles": str(self.num_adds),
        }

    def hint(self, result: CheckpointResult) -> dict[str, Any]:
        """Return what ``_last_checkpoint`` specifies; a unique name is found through its embedded part."""
        value = _hint(result)
        if self.plan.naming == "uuid":
            value[EMBEDDED] = {
                "path": result.path.rpartition("/")[2],
                "sizeInBytes": self.own_bytes,
                "modificationTime": self.now_ms,
                "nonFileActions": [{kind: v} for kind, v in self.own],
                "sidecarFiles": [s.to_json() for s in self.sidecars],
            }
        return value


def _filled(kind: str, group: pa.ChunkedArray, schema: pa.Schema, nulls: dict[str, pa.Array]) -> pa.Table:
    """Return rows of one action as rows of a checkpoint; ``nulls`` has columns of other actions for the next call."""
    columns = []
    for f in schema:
        if f.name != kind and len(nulls.get(f.name, ())) != len(group):
            nulls[f.name] = pa.nulls(len(group), f.type)
        columns.append(group if f.name == kind else nulls[f.name])
    return pa.Table.from_arrays(columns, schema=schema)


def _few_together(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tables of a small checkpoint as one: a row group of a few rows takes as long as a larger one."""
    few: list[pa.Table] = []
    num_rows = 0
    for table in tables:
        few.append(table)
        num_rows += table.num_rows
        # own actions, tombstones, live files
        if num_rows > FEW or len(few) > 3:
            yield from few
            yield from tables
            return
    yield pa.concat_tables(few)


def _flat(group: pa.ChunkedArray) -> pa.Table:
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(c) for c in group.chunks])


def _chain(first: Iterable[T], rest: Iterable[T]) -> Iterator[T]:
    yield from first
    yield from rest


def _take(items: Iterator[T], count: int) -> Iterator[T]:
    for _ in range(count):
        try:
            yield next(items)
        except StopIteration:
            return


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, the next one in the making on a thread while one is in use."""
    with ThreadPool(1, "delta-checkpoint") as pool:
        end = object()
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield item


def _discard(engine: Engine, paths: Sequence[str]) -> None:
    try:
        engine.storage.delete(paths)
    except DeltaError as e:
        _log.warning("Sidecars that no checkpoint names could not be deleted: %s", e)
