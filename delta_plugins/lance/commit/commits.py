"""The commit of one operation: deletion files, the transaction, then the manifest; again until it lands or can't."""

from __future__ import annotations

import secrets
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, structs

from delta_core.api import (
    CommitError,
    CommitStateUnknownError,
    Committed,
    Conflict,
    CorruptTableError,
    EngineError,
    Outcome,
    Rejected,
    Storage,
    TableExistsError,
    Unsettled,
    commit_loop,
    publish_file,
)
from delta_core.kernels.arrow_buffers import number_array
from delta_plugins.lance import flags
from delta_plugins.lance.commit.conflicts import Winner, check, removed_version, rows_conflict
from delta_plugins.lance.commit.draft import Draft
from delta_plugins.lance.commit.indices import index_messages, index_names
from delta_plugins.lance.commit.operations import Delete, Operation, RowRemoval, Update
from delta_plugins.lance.deletions import ARROW, BITMAP, read_deletions
from delta_plugins.lance.history import read_transaction, transaction_operation, transaction_path
from delta_plugins.lance.manifest import Manifest, parse_manifest
from delta_plugins.lance.names import deletion_name, list_latest, list_versions, manifest_names
from delta_plugins.lance.version_manifests import manifest_path, read_versions
from delta_plugins.lance.wire import Message, encode

if TYPE_CHECKING:
    from delta_core.kernels.row_set import RowSet

__all__ = ["CommittedVersion", "commit_operation"]

MOST_ATTEMPTS = 20
#: More deleted rows of a fragment than this are a bitmap.
_MOST_LISTED = 5000


class Base(Struct, frozen=True):
    """The version that an attempt is built on.

    Parameters
    ----------
    manifest : Manifest, optional
        None for a dataset that is created.
    operation : Operation
        With the deleted rows of this version.
    scheme : 1 or 2
        How manifests are named.
    indices : sequence of bytes
        The messages of its indices.
    """

    manifest: Manifest | None
    operation: Operation
    scheme: int
    indices: Sequence[bytes]


class Attempt(Struct, frozen=True):
    """A version that may land.

    Parameters
    ----------
    version : int
        Its number.
    path : str
        Of the manifest.
    data : bytes
        The manifest's file.
    transaction_file : str
        The name of the transaction's file.
    kept, before : sequence of str
        The names of the indices that it has, and that the version before it had.
    """

    version: int
    path: str
    data: bytes
    transaction_file: str
    kept: Sequence[str]
    before: Sequence[str]


class CommittedVersion(Struct, frozen=True):
    """A version that landed.

    Parameters
    ----------
    manifest : Manifest
        The version.
    dropped_indices : tuple of str
        The names of the indices that it does not have any more, or not all parts of.
    """

    manifest: Manifest
    dropped_indices: tuple[str, ...]


class _Deletions:
    """Deletion files of one attempt."""

    def __init__(self, storage: Storage, below: str) -> None:
        self._storage = storage
        self._below = below
        self.paths: list[str] = []

    def write(self, fragment: int, read_version: int, rows: RowSet) -> Message:
        """See `operations.DeletionWriter`."""
        kind = BITMAP if rows.cardinality > _MOST_LISTED else ARROW
        number = secrets.randbits(63)
        path = deletion_name(fragment, read_version, number, kind)
        path = f"{self._below}/{path}" if self._below else path
        self.paths.append(path)
        self._storage.put(path, rows.to_roaring(32) if kind == BITMAP else _arrow_file(rows))
        return {"file_type": kind, "read_version": read_version, "id": number, "num_deleted_rows": rows.cardinality}


def _arrow_file(rows: RowSet) -> bytes:
    column = number_array(rows.positions().astype(np.uint32))
    schema = pa.schema([pa.field("row_id", pa.uint32(), False)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.record_batch([column], schema=schema))
    return bytes(sink.getvalue())


class _Commit:
    """One operation on its way."""

    def __init__(self, storage: Storage, below: str, properties: Mapping[str, str], stable_row_ids: bool) -> None:
        self.storage = storage
        self.below = below
        self.properties = properties
        self.stable_row_ids = stable_row_ids
        self.uuid = str(uuid.uuid4())
        #: Files of attempts that lost, and of the last one.
        self.lost: list[str] = []
        self.current: list[str] = []
        #: Whether a manifest may be there that refers to the files of the last attempt.
        self.may_have_landed = False

    def build(self, base: Base, lost: int) -> Attempt:
        """Write what the manifest refers to, and return the manifest."""
        self.lost += self.current
        deletions = _Deletions(self.storage, self.below)
        self.current = deletions.paths
        draft = Draft(base.manifest, base.indices, stable_row_ids=self.stable_row_ids)
        body = base.operation.apply(draft, deletions)
        transaction = encode(
            "Transaction",
            {
                "read_version": draft.version - 1,
                "uuid": self.uuid,
                "transaction_properties": self.properties,
                base.operation.name: body,
            },
        )
        name = f"{draft.version - 1}-{self.uuid}.txn"
        if base.manifest is not None and base.manifest.message["writer_feature_flags"] & flags.NO_TRANSACTION_FILES:
            name = ""
        else:
            path = transaction_path(self.below, name)
            self.current.append(path)
            self.storage.put(path, transaction)
        file = manifest_names(draft.version)[2 - base.scheme]
        path = manifest_path(self.below, file)
        names = index_names(base.indices)
        return Attempt(draft.version, path, draft.encode(transaction, name), name, index_names(draft.indices), names)

    def publish(self, attempt: Attempt) -> Outcome:
        """Put the manifest, if there is none of the version or of a later one.

        Raises
        ------
        CommitError, CommitStateUnknownError
            See `commit_operation`.
        """
        listed = list_latest(self.storage, self.below)
        latest = 0 if listed is None else listed.latest
        if latest >= attempt.version:
            # a cleanup may have removed this version: one that is put in its place would come before the latest one
            return Conflict(attempt.version)
        if latest < attempt.version - 1:
            raise CommitError(
                f"Version {attempt.version - 1}, which this commit follows, is not there any more: the dataset was "
                "removed. Nothing was committed. Create the dataset, then run it again.",
                version=attempt.version,
            )
        folder = attempt.path.rpartition("/")[0]
        self.may_have_landed = True
        outcome = publish_file(self.storage, attempt.path, attempt.data, folder=folder, is_ours=self._is_ours)
        self.may_have_landed = isinstance(outcome, Unsettled) or outcome == "created"
        if isinstance(outcome, Rejected):
            raise CommitError(
                f"Version {attempt.version} could not be written: {outcome.cause} Nothing was committed.",
                version=attempt.version,
            ) from outcome.cause
        if isinstance(outcome, Unsettled):
            raise self._unknown(attempt, outcome)
        return Committed(attempt.version, attempt.path) if outcome == "created" else Conflict(attempt.version)

    def _is_ours(self, data: bytes) -> bool:
        """Whether a manifest is of this transaction, whose id is in it."""
        if self.uuid.encode() not in data:
            return False
        try:
            manifest = parse_manifest(data, "found")
            found = read_transaction(self.storage, self.below, data, manifest)
        except CorruptTableError:
            return False
        return found is not None and found["uuid"] == self.uuid

    def _unknown(self, attempt: Attempt, outcome: Unsettled) -> CommitStateUnknownError:
        last = f"{outcome.failures[-1]}" if outcome.failures else "the store reports both that it exists and that not."
        error = CommitStateUnknownError(
            f"Whether version {attempt.version} was committed is not known after {outcome.puts} tries: {last} Look for "
            f"the transaction {self.uuid} in {attempt.path} before trying again; nothing was deleted.",
            version=attempt.version,
            txn_id=self.uuid,
        )
        error.__cause__ = outcome.failures[-1] if outcome.failures else None
        return error

    def advance(self, base: Base, conflict: Conflict) -> Base:
        """Return the latest version as the base, if the operation goes with what was committed since."""
        versions = list_versions(self.storage, self.below)
        if base.manifest is None:
            raise TableExistsError(
                f"There is a dataset at {self.storage.uri(self.below)} since this one was begun: nothing was "
                "committed. Append to it, or overwrite it.",
                path=self.storage.uri(self.below),
            )
        started = base.manifest.version
        chosen = [v for v in versions.names if v > started]
        if missing := {*range(started + 1, versions.latest)}.difference(chosen):
            raise removed_version(base.operation, min(missing))
        latest = base.manifest
        for data, latest in read_versions(self.storage, versions, self.below, chosen):
            flags.check_writable(
                latest.message["reader_feature_flags"], latest.message["writer_feature_flags"], latest.path
            )
            check(base.operation, self._winner(data, latest))
        operation = self._rebased(base.operation, latest)
        return Base(latest, operation, versions.scheme, index_messages(latest))

    def _winner(self, data: bytes | memoryview, manifest: Manifest) -> Winner:
        try:
            found = read_transaction(self.storage, self.below, data, manifest)
        except CorruptTableError:
            found = None
        operation = None if found is None else transaction_operation(found)
        if found is None or operation is None:
            return Winner(manifest.version, None, {}, "")
        return Winner(manifest.version, operation, found[operation], found["uuid"])

    def _rebased(self, operation: Operation, latest: Manifest) -> Operation:
        if not isinstance(operation, (Delete, Update)):
            return operation
        removal = rebased_removal(operation, operation.removal, latest, self.storage, self.below)
        return structs.replace(operation, removal=removal)

    def clean(self, paths: Sequence[str]) -> None:
        """Delete files that no version refers to; what can't be deleted a later cleanup finds."""
        with suppress(EngineError):
            self.storage.delete(paths)


def rebased_removal(
    operation: Operation, removal: RowRemoval, latest: Manifest, storage: Storage, below: str
) -> RowRemoval:
    """Return rows that go with the deleted rows of the latest version.

    Raises
    ------
    CommitConflictError
        If another commit changed the files of one of the fragments, removed it, or deleted one of the rows.
    """
    wanted = list(removal.rows)
    before, now = (m.fragments.find(np.array(wanted, np.int64)) for m in (removal.base, latest))
    for fragment, old, new in zip(wanted, before.tolist(), now.tolist(), strict=True):
        if new < 0 or _files_of(removal.base, old) != _files_of(latest, new):
            raise rows_conflict(operation, latest.version, f"fragment {fragment} has other files")
    earlier = deleted_rows(latest, now.tolist(), storage, below)
    found = {f: r for f, r in zip(wanted, earlier, strict=True) if r is not None}
    for fragment, rows in found.items():
        if (rows & removal.rows[fragment]).cardinality:
            raise rows_conflict(operation, latest.version, f"rows of fragment {fragment} were deleted or updated")
    return structs.replace(removal, earlier=found)


def _files_of(manifest: Manifest, index: int) -> tuple[Any, ...]:
    listed = manifest.fragments
    start, stop = int(listed.first_file[index]), int(listed.first_file[index + 1])
    layouts = [listed.layouts[int(i)] for i in listed.layout[start:stop]]
    return listed.paths[start:stop].to_pylist(), layouts


def deleted_rows(manifest: Manifest, fragments: Sequence[int], storage: Storage, below: str) -> list[RowSet | None]:
    """Return the deleted rows of fragments, given by index; None for one without."""
    listed = manifest.fragments
    with_file = [i for i in fragments if listed.deletion_kind[i] >= 0]
    names = [
        deletion_name(
            int(listed.id[i]), int(listed.deletion_version[i]), int(listed.deletion_id[i]), int(listed.deletion_kind[i])
        )
        for i in with_file
    ]
    paths = [f"{below}/{n}" if below else n for n in names]
    kinds, known = listed.deletion_kind[with_file].tolist(), listed.num_deleted[with_file].tolist()
    rows = [int(r) if r >= 0 else 1 << 32 for r in listed.physical_rows[with_file]]
    found = dict(zip(with_file, read_deletions(storage, paths, kinds, known, rows), strict=True)) if paths else {}
    return [found.get(i) for i in fragments]


def _writable_indices(storage: Storage, base: Manifest) -> Sequence[bytes]:
    flags.check_writable(base.message["reader_feature_flags"], base.message["writer_feature_flags"], base.path)
    return index_messages(base)


def commit_operation(
    storage: Storage,
    operation: Operation,
    base: Manifest | None,
    *,
    below: str = "",
    scheme: int = 2,
    properties: Mapping[str, str] | None = None,
    stable_row_ids: bool = False,
    max_attempts: int = MOST_ATTEMPTS,
    written: Sequence[str] = (),
) -> CommittedVersion:
    """Commit an operation.

    Parameters
    ----------
    storage : Storage
        Of the dataset.
    operation : Operation
        The operation; its data files are written, and synced.
    base : Manifest, optional
        The version that it began with; None for a new dataset.
    below : str
        The folder of a branch below the root.
    scheme : 1 or 2
        How manifests are named.
    properties : Mapping of str to str, optional
        Kept in the transaction.
    stable_row_ids : bool
        Whether rows of a new dataset get ids that stay.
    max_attempts : int
        How often to try.
    written : sequence of str
        The data files of the operation, which are deleted again if it certainly did not land.

    Raises
    ------
    CommitConflictError
        If another commit contradicts it.
    CommitStateUnknownError
        If it can't be found out whether it landed; nothing is deleted then.
    CommitError
        If it did not land.
    TableExistsError
        If another writer created the dataset meanwhile.
    UnsupportedFeatureError
        If the dataset has a feature that can't be written.
    """
    run = _Commit(storage, below, properties or {}, stable_row_ids)
    try:
        indices = [] if base is None else _writable_indices(storage, base)
        won = commit_loop(Base(base, operation, scheme, indices), run.build, run.publish, run.advance, max_attempts)
    except BaseException:
        # an interrupt may come after the manifest is there
        run.clean(run.lost if run.may_have_landed else [*run.lost, *run.current, *written])
        raise
    run.clean(run.lost)
    attempt = won.attempt
    dropped = Counter(attempt.before) - Counter(attempt.kept)
    return CommittedVersion(parse_manifest(attempt.data, attempt.path), tuple(dropped))
