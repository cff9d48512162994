"""Checks of checkpoints: whether they can be read, and represent the state that the commits result in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from delta_core.errors import (
    CheckpointError,
    LogChangedError,
    LogError,
    ProtocolError,
    SchemaError,
    TableNotFoundError,
    VersionNotFoundError,
    shortened,
)
from delta_core.expressions.ast import NUM_RECORDS
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.log.segment import choose_segment, complete_checkpoints
from delta_core.kernel.plugins.checks import Finding
from delta_core.kernel.plugins.plans import Checkpoint, LogFile, LogSegment
from delta_core.kernel.protocol.actions import Protocol
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, one_array
from delta_core.kernels.dedup import KeySet
from delta_core.operations.verify.data_files import StatisticsLeaves

__all__ = [
    "STATE", "UNREADABLE", "check_checkpoints", "differences", "not_in", "open_version", "protocol_parts", "replay_of",
    "stored_state",
]  # fmt: skip

Progress = Callable[[str, int, int], None]
#: The columns of live files by which two states are compared first.
STATE = ("path", "dvId", "size")
#: The errors of a version that can't be built, from files that are all there.
UNREADABLE = (TableNotFoundError, VersionNotFoundError, LogError, CheckpointError, ProtocolError, SchemaError)


def check_checkpoints(
    context: TableContext, files: Sequence[LogFile], progress: Progress
) -> Iterator[tuple[Finding, Checkpoint]]:
    """Yield what is wrong with the checkpoints: those that can't be read, or differ from the commits below them.

    A checkpoint is compared with the commits above the newest older checkpoint that nothing was found in.
    """
    checkpoints = complete_checkpoints(files, set())
    wrong: list[str] = []
    for number, checkpoint in enumerate(checkpoints):
        progress("checkpoints", number, len(checkpoints))
        name, version = f"{LOG_DIRECTORY}/{checkpoint.files[0].name}", checkpoint.version
        try:
            stored = stored_state(context, checkpoint, files)
            found = _found_by_replay(context, stored, files, wrong)
        except LogChangedError:
            raise
        except (CheckpointError, LogError, SchemaError) as e:
            wrong += [f.name for f in checkpoint.files]
            expected = "a complete checkpoint"
            advice = "repair writes a new one. Readers use older files of the log, if these are still there."
            yield Finding("checkpoint-unreadable", str(e), expected, advice, "error", name, version), checkpoint
            continue
        except ProtocolError:
            continue  # what the features of that version need is not installed
        if found:
            wrong += [f.name for f in checkpoint.files]
        for difference in found:
            expected = "the state that the commits result in"
            advice = "repair replaces what is wrong, if something else confirms the checkpoint or the commits."
            yield Finding("checkpoint-differs", difference, expected, advice, "error", name, version), checkpoint


def _found_by_replay(
    context: TableContext, stored: Snapshot, files: Sequence[LogFile], wrong: Sequence[str]
) -> list[str]:
    """Return how a checkpoint differs from its commits; nothing if these can't be read, which is a finding already.

    Raises
    ------
    CheckpointError
        If values of the checkpoint can't be read.
    """
    replayed = replay_of(context, stored.version, files, wrong)
    try:
        return [] if replayed is None else list(differences(stored, replayed))
    except LogError as e:
        if isinstance(e, CheckpointError):
            raise
        return []


# --- states --------------------------------------------------------------------------------


def stored_state(context: TableContext, checkpoint: Checkpoint, files: Sequence[LogFile]) -> Snapshot:
    """Return the version that a checkpoint represents, from the checkpoint alone.

    Raises
    ------
    CheckpointError, LogError, SchemaError
        If it can't be read, or a sidecar that it names is not there.
    LogChangedError
        If the log is changed meanwhile.
    """
    commits = tuple(f for f in files if f.kind in ("commit", "staged") and f.version <= checkpoint.version)
    return _read(context, LogSegment(checkpoint.version, checkpoint, (), commits))


def open_version(
    context: TableContext, files: Sequence[LogFile], version: int | None, rejected: Sequence[str] = ()
) -> Snapshot:
    """Return a version from some files of the log and no others; its checksum is not one of them.

    A checkpoint that can't be read is passed over if older files can serve; ``rejected`` ones are not tried.

    Raises
    ------
    TableNotFoundError, VersionNotFoundError, LogError, CheckpointError, ProtocolError, SchemaError
        If the version can't be built.
    """
    names = list(rejected)
    while True:
        segment = choose_segment(files, version, where=context.log.uri, rejected=names)
        try:
            return _read(context, replace(segment, checksum=None))
        except CheckpointError as e:
            if segment.checkpoint is None or isinstance(e, LogChangedError):
                raise
            names += [f.name for f in segment.checkpoint.files]


def _read(context: TableContext, segment: LogSegment) -> Snapshot:
    """Read a segment with the keys of its files; what a checkpoint names and is not there is an error of it."""
    try:
        return _read_once(context, segment)
    except LogChangedError as e:
        own = segment.checkpoint.files if segment.checkpoint is not None else ()
        names = {f.name for f in context.log.listed()}
        if not own or not names.issuperset(f.name for f in (*own, *segment.deltas)):
            raise
        path = e.facts.get("path")
    try:
        return _read_once(context, segment)
    except LogChangedError as e:
        if e.facts.get("path") != path:
            raise
        raise CheckpointError(
            f"Checkpoint {own[0].name} can't be read: {path}, which it names, is not there.", path=own[0].name
        ) from e


def _read_once(context: TableContext, segment: LogSegment) -> Snapshot:
    found = context.read_segment(segment)
    if segment.checkpoint is None:
        found.files.columns(STATE)
        return found
    # all that may be read of it, so that what is damaged is known here
    fields = [f.name for f in found.action_fields if f.action == "add"]
    found.files.columns(STATE)
    # texts as large as the whole log: none is kept
    found.files.map_columns(len, ["partitionValues", "modificationTime", "stats", "tags", *fields])
    found.files.statistics([NUM_RECORDS, *StatisticsLeaves(found).all])
    found.tombstones(("deletionTimestamp", "size", "partitionValues"))
    found.transactions()
    found.domains()
    return found


def replay_of(
    context: TableContext, version: int, files: Sequence[LogFile], rejected: Sequence[str] = ()
) -> Snapshot | None:
    """Return a version as the log has it without a checkpoint of that version or later, None if impossible."""
    others = [f for f in files if f.kind != "checkpoint" or f.version < version]
    # what writers drop from compacted files would look like a fault of the checkpoint
    others = [f for f in others if f.kind != "compacted"]
    try:
        return open_version(context, others, version, rejected)
    except LogChangedError:
        raise
    except UNREADABLE:
        return None


# --- comparison ----------------------------------------------------------------------------


def differences(stored: Snapshot, replayed: Snapshot) -> Iterator[str]:
    """Yield how a stored version differs from the one that commits result in."""
    have, should = (s.files.columns(STATE) for s in (stored, replayed))
    missing, more = not_in(should, have), not_in(have, should)
    if more.num_rows:
        yield f"{_files(more)} that the commits removed or never added"
    if missing.num_rows:
        yield f"it lacks {_files(missing)} that the commits added"
    if have.num_rows > should.num_rows and not more.num_rows:
        yield f"it names files several times: {have.num_rows} entries for {should.num_rows} files"
    elif not missing.num_rows and not more.num_rows and have.num_rows == should.num_rows:
        yield from _value_differences(stored, replayed)
    yield from _definition_differences(stored, replayed)


def not_in(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return the files of a table whose path and vector another table lacks."""
    keys = KeySet()
    keys.insert(others.column("path"), others.column("dvId"))
    return pc.filter(files, bool_array(~keys.contains(files.column("path"), files.column("dvId"))))


def _files(files: pa.Table) -> str:
    names = ", ".join(files.column("path").slice(0, 3).to_pylist())
    return f"{files.num_rows} file{'s' * (files.num_rows > 1)} ({shortened(names)})"


def _value_differences(stored: Snapshot, replayed: Snapshot) -> Iterator[str]:
    """Yield the values of files in which two versions with the same files differ: those that decide rows."""
    if _definition(stored) != _definition(replayed):
        return  # reported as such, and then columns can't be compared
    physical = stored.state.column_map.physical.members
    by = frozenset(stored.state.partition_columns)
    partitions = {
        f"partition:{p.name}": f.name for f, p in zip(stored.schema.members, physical, strict=True) if f.name in by
    }
    own = {"deletionVector": "deletion vector", **{f.name: f.name for f in stored.action_fields if f.action == "add"}}
    both = [_in_order(s, [*partitions, *own]) for s in (stored, replayed)]
    for name, shown in {"size": "size", **partitions, **own, "numRecords": "number of rows"}.items():
        here, there = (_plain(one_array(t.column(name))) for t in both)
        if name in partitions:  # an empty text is null
            here, there = (pc.fill_null(c, "") for c in (here, there))
        if name == "numRecords":  # a checkpoint may leave statistics out
            here, there = (pc.filter(c, pc.and_(pc.is_valid(here), pc.is_valid(there))) for c in (here, there))
        if not here.equals(there):
            number = next(i for i in range(len(here)) if not here.slice(i, 1).equals(there.slice(i, 1)))
            yield (
                f"the {shown} of {both[0].column('path')[number].as_py() if name != 'numRecords' else 'a file'} is "
                f"{shortened(here[number].as_py())}; in the commits: {shortened(there[number].as_py())}"
            )


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _in_order(snapshot: Snapshot, columns: Sequence[str]) -> pa.Table:
    """Return columns of the live files and their number of rows, in the order of paths."""
    names = list(dict.fromkeys([*STATE, *columns]))
    found = snapshot.files.columns(names)
    found = found.append_column("numRecords", snapshot.files.statistics([NUM_RECORDS]).column(0))
    return found.take(pc.sort_indices(found.select(["path", "dvId"]), [("path", "ascending"), ("dvId", "ascending")]))


def _definition(snapshot: Snapshot) -> tuple[object, ...]:
    m = snapshot.metadata
    return protocol_parts(snapshot.protocol), m.id, m.partition_columns, m.configuration, snapshot.schema


def _definition_differences(stored: Snapshot, replayed: Snapshot) -> Iterator[str]:
    if protocol_parts(stored.protocol) != protocol_parts(replayed.protocol):
        yield f"its protocol is {stored.protocol.to_json()}, that of the commits {replayed.protocol.to_json()}"
    names = ("table id", "partition columns", "properties", "schema")
    for name, here, there in zip(names, _definition(stored)[1:], _definition(replayed)[1:], strict=True):
        if here != there:
            yield f"its {name}: {shortened(here)}; of the commits: {shortened(there)}"
    versions = [{a: t.version for a, t in s.transactions().items()} for s in (stored, replayed)]
    # a checkpoint may leave out transactions that have expired
    wrong = {a: v for a, v in versions[0].items() if versions[1].get(a) != v}
    if wrong:
        yield f"its transactions {shortened(wrong)} are not those of the commits"
    domains = [s.domains() for s in (stored, replayed)]
    different = [d for d in domains[0].keys() | domains[1].keys() if domains[0].get(d) != domains[1].get(d)]
    if different:
        yield f"its domains differ from those of the commits: {', '.join(sorted(different))}"


def protocol_parts(protocol: Protocol) -> tuple[Any, ...]:
    """Return what two protocols are compared by: lists of features have no order."""
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        frozenset(protocol.reader_features or ()),
        frozenset(protocol.writer_features or ()),
    )
