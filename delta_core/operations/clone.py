"""Clone a table: another one with the files of a version, by reference (shallow) or as copies of them (deep)."""

from __future__ import annotations

import hashlib
import json
import posixpath
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.interface import Storage
from delta_core.errors import DataFileNotFoundError, InvalidArgumentError, TableExistsError, UnsupportedOperationError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.intents import READ_TO_REMOVE, read_columns, removed_files
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.commit.upgrade import downgrade_protocol, upgrade_protocol
from delta_core.kernel.log.checksum import check_by_checksum
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.encodings import why_stored_otherwise
from delta_core.kernel.plugins.features import supported_features
from delta_core.kernel.plugins.references import absolute_files, named_files, relocated_files
from delta_core.kernel.plugins.rules import FileReference, RowCheck
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Protocol
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernel.write.names import encode_path, local_uri
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of, one_array, scalar_of, strings_of
from delta_core.kernels.dedup import KeySet, dv_unique_ids
from delta_core.operations.create import given_properties
from delta_core.operations.progress import OperationProgress, ProgressReport
from delta_core.operations.sweep.listing import check_witness
from delta_core.operations.vacuum.places import witness_of
from delta_core.runtime.json_text import compact_json
from delta_core.runtime.progress_bars import shows_progress

__all__ = ["CloneOptions", "Cloned", "clone_table"]

#: Paths that do not begin at the table's root.
_ABSOLUTE = r"^(?:/|[A-Za-z][A-Za-z0-9+.\-]*:)"
#: Copies that an earlier run left are used for so long: a vacuum of the target may delete older ones.
_REUSE_MS = 24 * 3_600_000
#: Longer names of files are cut.
_MOST_NAME = 150
_CHAIN = "::"
#: Fewer files are copied here, even if there are executors.
_MANY = 64
_DONE = pa.schema([("count", pa.int64())])


class CloneOptions(Struct, frozen=True):
    """How a table is cloned.

    Parameters
    ----------
    deep : bool
        Whether data files and deletion vectors are copied; otherwise the clone names those of the source.
    replace : bool
        Whether a table that is there gets another version, with the definition and the rows of the source.
    properties : Mapping of str to str
        Table properties that the clone has beside, or instead of, those of the source.
    dry_run : bool
        Whether nothing is copied or committed.
    commit : Mapping
        Arguments of `Transaction.commit`.
    progress : function(OperationProgress), optional
        Called while files are copied (step ``copy``).
    folder : str, optional
        The place of the files, if the source is a folder of Parquet files whose log is a temporary one.
    """

    deep: bool = False
    replace: bool = False
    properties: Mapping[str, Any] = {}
    dry_run: bool = False
    commit: Mapping[str, Any] = {}
    progress: Callable[[OperationProgress], None] | None = None
    folder: str | None = None


class Cloned(Struct, frozen=True):
    """The result of a clone.

    Parameters
    ----------
    snapshot : Snapshot or None
        The clone; None with ``dry_run``.
    metrics : Mapping of str to int
        Named as delta-spark's operation metrics.
    """

    snapshot: Snapshot | None
    metrics: Mapping[str, int]


class _Copy(Struct, frozen=True):
    """A file that a deep clone needs: decoded paths here and there, and its size (None: not known)."""

    path: str
    target: str
    size: int | None


@shows_progress
def clone_table(source: Snapshot, context: TableContext, options: CloneOptions) -> Cloned:
    """Commit a version of a table as a table of its own.

    The clone has the schema, the properties, the features, the domains and the row ids of the version. Its history, its
    id, its name and the versions of applications are its own. Files that the clone has already stay; those that the
    source does not have any more are removed.

    Parameters
    ----------
    source : Snapshot
        The version to clone.
    context : TableContext
        Where the clone is to be.
    options : CloneOptions
        The source, and the way to clone it.

    Raises
    ------
    TableExistsError
        If there is a table already, and it is not to be replaced.
    InvalidArgumentError
        If one of the two tables is within the other, or if properties would change how the files are read or which
        rows they may have.
    UnsupportedOperationError
        If files can't be named from another table, or if the table that is replaced is append-only.
    ExternalPathError
        If the clone could not read the files of the source: another kind of store, which ``allow_external`` permits.
    DataFileNotFoundError
        If files of the version are gone: of a shallow clone the first one is looked for.
    CommitConflictError
        If another writer changed the table that is replaced, or made one.
    LogError
        If the checksum of the version reports other files than its log has.

    Notes
    -----
    A shallow clone reads no data; vacuum of the source deletes files that only clones need, unless they are named to
    it. Copies of a deep clone have names of their own, made from the id of the source's table, the path and the size:
    a run that was interrupted finds what it copied within a day.

    Protocol
    --------
    Add File (absolute paths), Deletion Vectors (storage type p)
    """
    _check_places(options.folder or source.engine.storage.uri(""), context)
    check_by_checksum(source)
    base = context.find()
    if base is not None and not options.replace:
        raise TableExistsError(
            f"There is a table at {shown_uri(context.log.uri)} already (version {base.version}). Pass replace=True (on "
            "the command line --replace) to replace its rows and its definition.",
            path=context.log.uri,
        )
    files = source.files.columns(read_columns(source.action_fields))
    references = source.plugins.collect("file_references", table=source.state)
    references = [r for r in references if r.column in files.column_names]
    adds, copies = (_copied if options.deep else _referred)(source, context, files, references)
    wanted = FileSet.of(adds)
    have = KeySet() if base is None else _keys(base.files)
    new = wanted.refreshed([], have).columns(adds.column_names)
    gone = None if base is None else base.files.refreshed([], _keys(wanted)).columns(READ_TO_REMOVE)
    metrics = _metrics(source, new, gone, options.deep)
    if options.dry_run:
        return Cloned(None, metrics)
    transaction = _staged(source, context, base, options)
    transaction.metrics.update(metrics)
    try:
        if options.deep:
            _copy(source, context, _needed(copies, new, references), options)
        elif new.num_rows:
            # may it be read from there?
            context.log.engine.storage.stat([decode_paths(new.column("path").slice(0, 1))[0]])
    except FileNotFoundError as e:
        raise DataFileNotFoundError(
            f"Version {source.version} of {shown_uri(source.uri)} can't be cloned: {e.filename or e} is not there. If "
            "vacuum deleted it, clone a later version; otherwise restore the file.",
            path=str(e.filename or e),
            version=source.version,
        ) from e
    if gone is not None:
        transaction.read(None)
        transaction.remove_files(removed_files(gone))
    for name, value in (("dataChange", True), ("fresh", False)):
        new = new.append_column(name, pa.repeat(scalar_of(value, pa.bool_()), new.num_rows))
    transaction.add_files(new)
    return Cloned(transaction.commit(**options.commit).snapshot, metrics)


def _keys(files: FileSet) -> KeySet:
    table = files.columns(["path", "dvId"])
    keys = KeySet()
    keys.insert(table.column("path"), table.column("dvId"))
    return keys


def _check_places(source: str, context: TableContext) -> None:
    roots = [root.rstrip("/") + "/" for root in (source, context.log.engine.storage.uri(""))]
    if roots[0].startswith(roots[1]) or roots[1].startswith(roots[0]):
        raise InvalidArgumentError(
            f"Found {shown_uri(context.log.uri)} as the place of a clone of {shown_uri(source)}, expected a folder "
            "that neither is within the table nor contains it.",
            path=context.log.uri,
        )


# --- the definition ------------------------------------------------------------------------


def _staged(
    source: Snapshot, context: TableContext, base: Snapshot | None, options: CloneOptions
) -> Transaction[Snapshot]:
    """Return the transaction, with the definition of the source."""
    origin, version = (source.uri, source.version) if options.folder is None else (f"parquet.`{options.folder}`", -1)
    said = {"source": shown_uri(origin), "sourceVersion": version, "isShallow": not options.deep}
    transaction = Transaction(context, base, "CLONE", said, isolation=IsolationLevel.SERIALIZABLE)
    protocol = _protocol(source, base)
    _stage_domains(transaction, source, base)
    now = time.time_ns() // 1_000_000
    old = None if base is None else base.metadata
    metadata = replace(
        source.metadata,
        id=str(uuid.uuid4()) if old is None else old.id,
        name=None if old is None else old.name,
        description=None if old is None else old.description,
        created_time=now if old is None else old.created_time,
        configuration=_own_properties(source, base),
    )
    like, _ = context.define(protocol, metadata, source.version, source.domains)
    wanted = replace(metadata, configuration={**metadata.configuration, **given_properties(options.properties)})
    state = transaction.set_metadata(wanted, replaces=True, protocol=protocol, like=like)
    _check_same_reading(source, state)
    _check_rules(source, transaction, bool(options.properties))
    return transaction


def _protocol(source: Snapshot, base: Snapshot | None) -> Protocol:
    """Return the protocol of the source, less what needs its catalog; with that of the table that is replaced."""
    registry = source.context.registry
    protocol = source.protocol
    for name, feature in source.plugins.features.items():
        if source.plugins.single("requires_catalog", False, features=frozenset([name])):
            protocol = downgrade_protocol(protocol, feature, registry)
    if base is None:
        return protocol
    return upgrade_protocol(base.protocol, sorted(supported_features(protocol).all), registry)


def _own_properties(source: Snapshot, base: Snapshot | None) -> dict[str, str]:
    """Return the properties of the source, with those about versions of the log as the clone has them."""
    features = source.context.registry.everything.features.values()
    of_log = {name for f in features for name in f.log_properties}
    found = {k: v for k, v in source.metadata.configuration.items() if k not in of_log}
    own = {} if base is None else base.metadata.configuration
    return {**found, **{k: v for k, v in own.items() if k in of_log}}


def _stage_domains(transaction: Transaction[Snapshot], source: Snapshot, base: Snapshot | None) -> None:
    """Stage the domains of the source; marks of the table that is replaced are not lowered."""
    features = source.context.registry.everything.features.values()
    growing = {d for f in features for d in f.growing_domains}
    system = {d for f in features for d in f.domains}
    then, now = source.domains(), {} if base is None else base.domains()
    for domain in sorted(now.keys() | then.keys()):
        wanted = then.get(domain)
        if domain in growing and domain in now:
            wanted = now[domain] if wanted is None else _highest(now[domain], wanted)
        if wanted != now.get(domain):
            staged = transaction.intents.system_domains if domain in system else transaction.intents.domains
            staged[domain] = wanted


def _highest(own: str, other: str) -> str:
    """Return a domain of marks with the greater of each two."""
    marks = [json.loads(text) for text in (own, other)]
    joined = {k: max(m[k] for m in marks if k in m) for k in {**marks[0], **marks[1]}}
    return compact_json(joined)


def _check_same_reading(source: Snapshot, state: TableState) -> None:
    """Reject properties under which the files would be read in another way than in the source."""
    old, new = source.state.column_map, state.column_map
    if (old.match, old.physical) != (new.match, new.physical):
        raise InvalidArgumentError(
            "The properties change how columns are found in files, and the files of a clone are those of the source. "
            "Clone without them, and change the clone afterwards."
        )
    why = why_stored_otherwise(source.state, state)
    if why is not None:
        raise InvalidArgumentError(
            f"The definition of the clone would change how files are read, and they are those of the source: {why}. "
            "Clone without the properties that encode it."
        )


def _check_rules(source: Snapshot, transaction: Transaction[Snapshot], is_changed: bool) -> None:
    """Reject tables that may not be written, and properties that add conditions: no row was checked by them."""
    rules = [
        {(r.feature, r.name, r.sql) for r in plugins.collect("write_rules", table=table, operation="WRITE")
         if isinstance(r, RowCheck)}
        for plugins, table in ((source.plugins, source.state), (transaction.plugins, transaction.table))
    ]  # fmt: skip
    added = sorted(name for _, name, _ in rules[1] - rules[0])
    if added and is_changed:
        raise InvalidArgumentError(
            f"The properties add the conditions {', '.join(added)}, which the rows of the source may break. Clone "
            "without them, and add them to the clone (table.alter.add_constraint)."
        )


# --- files ---------------------------------------------------------------------------------


def _referred(
    source: Snapshot, context: TableContext, files: pa.Table, references: Sequence[FileReference]
) -> tuple[pa.Table, list[_Copy]]:
    """Return the files with absolute paths."""
    root = _root_uri(source)
    paths = files.column("path")
    absolute = pc.match_substring_regex(paths, _ABSOLUTE)
    texts = pc.if_else(absolute, paths, pc.binary_join_element_wise(root, paths, ""))
    if pc.any(absolute).as_py():
        # a path from the root of the source's store would be one of the clone's store
        storage = source.engine.storage
        others = [
            encode_path(local_uri(storage.uri(p))) if found else None
            for p, found in zip(decode_paths(paths), absolute.to_pylist(), strict=True)
        ]
        texts = pc.coalesce(strings_of(others), texts)
    adds = files.set_column(files.schema.get_field_index("path"), "path", texts)
    for reference in references:
        values = one_array(files.column(reference.column))
        named = named_files(reference, values)
        is_own = pc.and_(pc.is_valid(named), pc.invert(absolute_files(reference, values)))
        uris = pc.binary_join_element_wise(root, _encoded(named), "")
        moved = _relocated(reference, values, pc.if_else(is_own, uris, pa.nulls(1, pa.string())[0]))
        adds = adds.set_column(adds.schema.get_field_index(reference.column), reference.column, moved)
    return _with_ids(adds), []


def _copied(
    source: Snapshot, context: TableContext, files: pa.Table, references: Sequence[FileReference]
) -> tuple[pa.Table, list[_Copy]]:
    """Return the files as the clone has them, and all that has to be copied for it."""
    paths = decode_paths(files.column("path"))
    sizes = files.column("size").to_pylist()
    table_id = source.metadata.id
    copies = [_Copy(p, _copy_name(table_id, p, size), size) for p, size in zip(paths, sizes, strict=True)]
    texts = strings_of([encode_path(c.target) for c in copies])
    adds = files.set_column(files.schema.get_field_index("path"), "path", texts)
    root = _root_uri(context)
    for reference in references:
        values = one_array(files.column(reference.column))
        named = named_files(reference, values).to_pylist()
        is_absolute = absolute_files(reference, values).to_pylist()
        targets = [
            None if p is None else posixpath.basename(p) if other else p
            for p, other in zip(named, is_absolute, strict=True)
        ]
        distinct = dict(zip(named, targets, strict=True))
        copies += [_Copy(p, t, None) for p, t in distinct.items() if p is not None and t is not None]
        uris = [root + encode_path(t) if t and other else None for t, other in zip(targets, is_absolute, strict=True)]
        moved = _relocated(reference, values, strings_of(uris))
        adds = adds.set_column(adds.schema.get_field_index(reference.column), reference.column, moved)
    return _with_ids(adds), copies


def _relocated(reference: FileReference, values: pa.Array, uris: pa.Array) -> pa.Array:
    if uris.null_count == len(uris):
        return values
    if reference.relocated is None:
        raise UnsupportedOperationError(
            f"The table can't be cloned: its feature {reference.feature} names files that another table can't name.",
            feature=reference.feature,
        )
    return relocated_files(reference, values, uris)


def _with_ids(adds: pa.Table) -> pa.Table:
    """Return the files with the ids that their vectors have now."""
    vectors = one_array(adds.column("deletionVector"))
    kind, text, offset = (vectors.field(n) for n in ("storageType", "pathOrInlineDv", "offset"))
    at = adds.schema.get_field_index("dvId")
    return adds.set_column(at, "dvId", dv_unique_ids(kind, text, offset))


def _encoded(paths: pa.Array) -> pa.Array:
    return strings_of([None if p is None else encode_path(p) for p in paths.to_pylist()])


def _root_uri(table: Snapshot | TableContext) -> str:
    """Return the URI of a table's root as the log of another table spells it, with a slash at its end."""
    storage = table.engine.storage if isinstance(table, Snapshot) else table.log.engine.storage
    uri = storage.uri("")
    if _CHAIN in uri:
        raise UnsupportedOperationError(
            f"{shown_uri(uri)} is a chain of filesystems, whose files no table can name. Open the table at its own "
            "place to clone it.",
            path=uri,
        )
    return encode_path(local_uri(uri).rstrip("/")) + "/"


def _copy_name(table_id: str, path: str, size: int | None) -> str:
    """Return where a copy goes: in the folder of the partition, under a name that no other content has."""
    folder, name = posixpath.split(path)
    digest = hashlib.sha256(f"{table_id}\0{path}\0{size}".encode()).hexdigest()[:20]
    if folder.startswith("/") or ":" in path or ".." in path:
        folder = ""
    name = name.encode()[-_MOST_NAME:].decode(errors="ignore")
    return posixpath.join(folder, f"clone-{digest}-{name}")


def _needed(copies: Sequence[_Copy], new: pa.Table, references: Sequence[FileReference]) -> list[_Copy]:
    """Return the copies that new files need; the clone has the others already."""
    wanted = set(decode_paths(new.column("path")))
    for reference in references:
        wanted |= {posixpath.basename(p) for p in _named(reference, new)} | set(_named(reference, new))
    return [c for c in copies if c.target in wanted]


def _named(reference: FileReference, files: pa.Table) -> list[str]:
    found = named_files(reference, one_array(files.column(reference.column)))
    return [p for p in pc.unique(found).to_pylist() if p is not None]


def _copy(source: Snapshot, context: TableContext, copies: Sequence[_Copy], options: CloneOptions) -> None:
    """Copy files several at a time, many of them on executors; those that an earlier run copied are used."""
    storage, origin = context.log.engine.storage, source.engine.storage
    report = ProgressReport(options.progress)
    missing = _missing(storage, copies, time.time_ns() // 1_000_000 - _REUSE_MS)
    report.begin("copy", pa.chunked_array([array_of([c.size or 0 for c in missing], pa.int64())]))

    def one(file: _Copy) -> None:
        storage.copy(origin, file.path, file.target)
        report.add(files=1, num_bytes=file.size or 0)

    spread = source.engine.spread
    if spread is not None and len(missing) >= _MANY:
        pairs = strings_of([json.dumps([c.path, c.target]) for c in missing])
        spread(_Copying(origin, storage, witness_of(origin)), pairs, _DONE)
        # what lies elsewhere (a disk that the driver does not see) is copied here
        left = _missing(storage, missing, 0)
        report.add(files=len(missing) - len(left), num_bytes=_num_bytes(missing) - _num_bytes(left))
        missing = left
    source.engine.map(one, missing)


def _num_bytes(copies: Sequence[_Copy]) -> int:
    return sum(c.size or 0 for c in copies)


def _missing(storage: Storage, copies: Sequence[_Copy], oldest_ms: int) -> list[_Copy]:
    """Return the copies that are not there whole, or are older."""
    sizes, times = storage.find(strings_of([c.target for c in copies]))
    known = np.array([-1 if c.size is None else c.size for c in copies], np.int64)
    is_there = (sizes == known) & (sizes >= 0) & (times >= oldest_ms)
    return [copies[i] for i in np.flatnonzero(~is_there).tolist()]


class _Copying(Struct, frozen=True):
    """Copies files, on another machine: each text is a list of the path and of where it goes, as JSON."""

    origin: Storage
    storage: Storage
    witness: str | None

    def __call__(self, pairs: pa.Array) -> Iterator[pa.RecordBatch]:
        check_witness(self.origin, self.witness)
        for path, target in map(json.loads, pairs.to_pylist()):
            self.storage.copy(self.origin, path, target)
        yield pa.RecordBatch.from_arrays([array_of([len(pairs)], pa.int64())], schema=_DONE)


def _metrics(source: Snapshot, new: pa.Table, gone: pa.Table | None, deep: bool) -> dict[str, int]:
    sizes = source.files.columns(["size"]).column(0)
    removed = 0 if gone is None else int(pc.sum(gone.column("size")).as_py() or 0)
    added = int(pc.sum(new.column("size")).as_py() or 0)
    return {
        "sourceTableSize": int(pc.sum(sizes).as_py() or 0),
        "sourceNumOfFiles": len(sizes),
        "numRemovedFiles": 0 if gone is None else gone.num_rows,
        "numCopiedFiles": new.num_rows if deep else 0,
        "removedFilesSize": removed,
        "copiedFilesSize": added if deep else 0,
    }
