"""Version checksum files, ``<version>.crc``: the cheapest source of protocol and metadata, never a needed one.

Kept up commit by commit: the numbers of one version come from those of the version before and the commit's own
actions. Protocol: Version Checksum File.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.actions import DomainMetadata, SetTransaction
from delta_core.engine import ActionQuery, Engine, RangeRequest, Storage
from delta_core.errors import DeltaError
from delta_core.kernels.json_actions import ParsedActions
from delta_core.log.files import FileSet
from delta_core.log.names import LOG_DIRECTORY, checksum_name
from delta_core.plans import LogFile, LogSegment, ReadRequest
from delta_core.plugins import PluginSet
from delta_core.rules import CommitTimestamp, RowSelector
from delta_core.state import TableState

__all__ = ["ChecksumSource", "read_checksum", "write_checksum"]

_log = logging.getLogger(__name__)
_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30
#: Where the bins of file sizes begin, as every Delta writer has them.
SIZE_BINS = (
    0, *(_KB << i for i in range(3, 10)), *(_MB << i for i in range(2)),
    *(_MB * i for i in (4, *range(8, 41, 4), *range(48, 121, 8), *range(124, 145, 4), *range(160, 577, 16))),
    *(_MB * i for i in (*range(640, 1409, 64), *range(1536, 2049, 128), *range(2304, 4097, 256))),
    *(_GB << i for i in range(3, 9)),
)  # fmt: skip
#: Where the bins of deleted rows begin.
DELETED_BINS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1)
#: Longer lists of transactions and domains are left out: a checksum is read at every open.
LIST_LIMIT = 100
_RETENTION = "delta.setTransactionRetentionDuration"

Checksum = Mapping[str, Any]


class ChecksumSource(Protocol):
    """What a snapshot is to the writer of checksums."""

    @property
    def version(self) -> int: ...
    @property
    def segment(self) -> LogSegment: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def files(self) -> FileSet: ...

    state: TableState
    plugins: PluginSet

    def transactions(self) -> dict[str, SetTransaction]: ...
    def domains(self) -> dict[str, str]: ...


def read_checksum(storage: Storage, file: LogFile) -> Checksum | None:
    """Return the checksum's object, None where the file is gone, torn or lacks what every checksum has."""
    return _read(storage, file.name)


def _read(storage: Storage, name: str) -> Checksum | None:
    try:
        (data,) = storage.read([RangeRequest(f"{LOG_DIRECTORY}/{name}")])
        value = json.loads(bytes(data))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(value, dict):
        return None
    whole = isinstance(value.get("protocol"), dict) and isinstance(value.get("metadata"), dict)
    return value if whole else None


def write_checksum(
    snapshot: ChecksumSource,
    previous: Checksum | None = None,
    *,
    commit: bytes | None = None,
    full: bool = False,
) -> Checksum | None:
    """Write the checksum of a snapshot's version, unless it is there or can't be known cheaply.

    Parameters
    ----------
    previous : Mapping, optional
        What this returned for the version before; read from the log where it is not given.
    commit : bytes, optional
        The version's commit, which saves reading it.
    full : bool
        Compute it from the whole state, which takes time linear in the number of files, and not from the version
        before. For a commit that adds files again without removing them, no other way is right.

    Returns
    -------
    dict or None
        The checksum, to be given for the next version; None where it was not written: the version before has none, a
        remove does not tell its file's size, or the store failed. Failures are logged, never raised.

    Notes
    -----
    Without ``full``, the cost does not grow with the table. One is never overwritten.
    """
    storage, name = snapshot.engine.storage, checksum_name(snapshot.version)
    try:
        if full and _is_there(storage, name):
            return None
        value = _whole(snapshot, commit) if full else _next(snapshot, previous, commit)
        if value is None:
            return None
        data = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        # readers pass over a torn one: it is not worth waiting for the disk
        written = storage.put_if_absent(f"{LOG_DIRECTORY}/{name}", data, durable=False) == "created"
    except (DeltaError, OSError, ValueError, TypeError, LookupError) as e:
        _log.warning("The checksum of version %s could not be written: %s", snapshot.version, e)
        return None
    return value if written else None


def _is_there(storage: Storage, name: str) -> bool:
    try:
        storage.stat([f"{LOG_DIRECTORY}/{name}"])
    except FileNotFoundError:
        return False
    return True


# --- the numbers of a version --------------------------------------------------------------


def _next(snapshot: ChecksumSource, previous: Checksum | None, commit: bytes | None) -> dict[str, Any] | None:
    """Return the checksum from the one before and the commit, None where they don't tell."""
    version = snapshot.version
    if version == 0:
        previous = _empty(snapshot)
    elif previous is None:
        previous = _read(snapshot.engine.storage, checksum_name(version - 1))
    if previous is None:
        return None
    actions = _commit_actions(snapshot, commit)
    adds, removes = actions.adds, actions.removes
    if removes.column("size").null_count or adds.column("size").null_count or _adds_again(adds, removes):
        return None
    files = _changed(previous, adds, removes)
    if files is None:
        return None
    info = _newest_info(actions.others)
    return {
        **files, **_definition(snapshot), **_commit_fields(snapshot, info),
        **_lists(snapshot, _changed_list(previous.get("setTransactions"), actions.others, "txn", "appId"),
                 _changed_list(previous.get("domainMetadata"), actions.others, "domainMetadata", "domain")),
    }  # fmt: skip


def _empty(snapshot: ChecksumSource) -> dict[str, Any]:
    """Return the numbers of a table without files, before its first commit."""
    empty = {
        "path": pa.array([], pa.string()),
        "size": pa.array([], pa.int64()),
        "dvCardinality": pa.array([], pa.int64()),
    }
    return {**_files(pa.table(empty), _has_vectors(snapshot)), "setTransactions": [], "domainMetadata": []}


def _whole(snapshot: ChecksumSource, commit: bytes | None) -> dict[str, Any]:
    """Return the checksum from the whole state."""
    vectors = _has_vectors(snapshot)
    found = snapshot.files.columns(["size", *(["deletionVector"] if vectors else [])])
    cardinality = pa.chunked_array(
        [c.flatten()[c.type.get_field_index("cardinality")] for c in found.column("deletionVector").chunks], pa.int64()
    ) if vectors else pa.chunked_array([pa.nulls(found.num_rows, pa.int64())])  # fmt: skip
    table = pa.table({"size": found.column("size"), "dvCardinality": cardinality})
    info = (
        _newest_info(_commit_actions(snapshot, commit).others) if _last_commit(snapshot) is not None else {}
    )
    transactions = [t.to_json() for t in snapshot.transactions().values()]
    domains = [DomainMetadata(d, c).to_json() for d, c in snapshot.domains().items()]
    return {
        **_files(table, vectors), **_definition(snapshot), **_commit_fields(snapshot, info),
        **_lists(snapshot, transactions, domains),
    }  # fmt: skip


def _definition(snapshot: ChecksumSource) -> dict[str, Any]:
    table = snapshot.state
    return {
        "numMetadata": 1, "numProtocol": 1, "metadata": table.metadata.to_json(), "protocol": table.protocol.to_json(),
    }  # fmt: skip


def _has_vectors(snapshot: ChecksumSource) -> bool:
    rules = snapshot.plugins.collect("read_rules", table=snapshot.state, request=ReadRequest())
    return any(isinstance(r, RowSelector) for r in rules)


# --- the commit ----------------------------------------------------------------------------


def _last_commit(snapshot: ChecksumSource) -> LogFile | None:
    found = [f for f in snapshot.segment.commits[-1:] if f.end_version == snapshot.version]
    return found[0] if found else None


def _commit_actions(snapshot: ChecksumSource, commit: bytes | None) -> ParsedActions:
    file = _last_commit(snapshot)
    if file is None:
        raise ValueError(f"the commit of version {snapshot.version} is not at hand")
    given = file if commit is None else file._replace(data=commit)
    query = ActionQuery(
        ("path", "size", "dataChange", "dvCardinality"), skip=frozenset({"cdc", "protocol", "metaData"})
    )
    return snapshot.engine.logs.read_commits([given], query)


def _newest_info(others: pa.Table) -> Mapping[str, Any]:
    texts = _values(others, "commitInfo")
    return texts[-1] if texts else {}


def _values(others: pa.Table, kind: str) -> list[dict[str, Any]]:
    rows = zip(others.column("kind").to_pylist(), others.column("json").to_pylist(), strict=True)
    return [v for k, text in rows if k == kind and isinstance(v := json.loads(text), dict)]


def _commit_fields(snapshot: ChecksumSource, info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``commitInfo`` gives: the transaction's id, and its time where such times are in force."""
    out = {"txnId": info["txnId"]} if isinstance(info.get("txnId"), str) else {}
    rule: CommitTimestamp | None = snapshot.plugins.sole("commit_timestamps", table=snapshot.state)
    if rule is not None and snapshot.version >= rule.enablement_version:
        out["inCommitTimestampOpt"] = info[rule.field]
    return out


def _adds_again(adds: pa.Table, removes: pa.Table) -> bool:
    """Whether files may be added that are live already: to change their statistics or tags, say."""
    return not removes.num_rows and any(v is not True for v in adds.column("dataChange").unique().to_pylist())


# --- files ---------------------------------------------------------------------------------


def _sizes(files: pa.Table) -> NDArray[np.int64]:
    found: NDArray[np.int64] = files.column("size").to_numpy()
    return found


def _deleted(files: pa.Table) -> NDArray[np.int64]:
    found: NDArray[np.int64] = files.column("dvCardinality").fill_null(0).to_numpy()
    return found


def _files(files: pa.Table, vectors: bool) -> dict[str, Any]:
    sizes, deleted = _sizes(files), _deleted(files)
    out: dict[str, Any] = {
        "tableSizeBytes": int(sizes.sum()), "numFiles": len(sizes), "fileSizeHistogram": _size_histogram(sizes, SIZE_BINS),
    }  # fmt: skip
    if vectors:
        out["numDeletedRecordsOpt"] = int(deleted.sum())
        out["numDeletionVectorsOpt"] = len(files) - files.column("dvCardinality").null_count
        out["deletedRecordCountsHistogramOpt"] = {
            "deletedRecordCounts": _binned(deleted, DELETED_BINS).tolist()
        }
    return out


def _binned(values: NDArray[np.int64], starts: Any, weights: Any = None) -> NDArray[np.int64]:
    bins = np.searchsorted(np.asarray(starts), values, side="right") - 1
    if weights is None:
        return np.bincount(bins, minlength=len(starts))
    out = np.zeros(len(starts), np.int64)
    np.add.at(out, bins, weights)
    return out


def _size_histogram(sizes: NDArray[np.int64], starts: Any) -> dict[str, list[int]]:
    return {
        "sortedBinBoundaries": list(starts), "fileCounts": _binned(sizes, starts).tolist(),
        "totalBytes": _binned(sizes, starts, sizes).tolist(),
    }  # fmt: skip


def _changed(previous: Checksum, adds: pa.Table, removes: pa.Table) -> dict[str, Any] | None:
    """Return the numbers of files after a commit; None where they would be negative, so that something was wrong."""
    vectors = isinstance(previous.get("numDeletionVectorsOpt"), int)
    plus, minus = _files(adds, vectors), _files(removes, vectors)
    before = {k: previous.get(k) for k in plus}
    # the name under which Delta on Spark wrote it for long
    bins = before["fileSizeHistogram"] = before["fileSizeHistogram"] or previous.get("histogramOpt")
    if not isinstance(bins, dict):
        plus.pop("fileSizeHistogram")
    elif tuple(bins["sortedBinBoundaries"]) != SIZE_BINS:
        for side, files in ((plus, adds), (minus, removes)):
            side["fileSizeHistogram"] = _size_histogram(_sizes(files), bins["sortedBinBoundaries"])
    out = {k: _sum(before[k], plus[k], minus[k]) for k in plus}
    return None if _is_negative(out) else out


def _sum(before: Any, plus: Any, minus: Any) -> Any:
    if isinstance(plus, dict):
        if not isinstance(before, dict):
            return None
        return {k: v if k == "sortedBinBoundaries" else _sum(before[k], v, minus[k]) for k, v in plus.items()}
    if isinstance(plus, list):
        return [b + p - m for b, p, m in zip(before, plus, minus, strict=True)]
    return before + plus - minus


def _is_negative(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_is_negative(v) for v in value.values())
    return min(value, default=0) < 0 if isinstance(value, list) else isinstance(value, int) and value < 0


# --- transactions and domains --------------------------------------------------------------


def _changed_list(before: Any, others: pa.Table, kind: str, key: str) -> list[dict[str, Any]] | None:
    if not isinstance(before, list):
        return None
    out = {v[key]: v for v in before}
    for v in _values(others, kind):
        out.pop(v.get(key), None)
        if not v.get("removed"):
            out[v[key]] = v
    return list(out.values())


def _lists(
    snapshot: ChecksumSource, transactions: list[dict[str, Any]] | None, domains: list[dict[str, Any]] | None
) -> dict[str, Any]:
    """Return the lists that are known in full and short; transactions that may expire are none of a version's state."""
    if _RETENTION in snapshot.state.configuration:
        transactions = None
    found = {"setTransactions": transactions, "domainMetadata": domains}
    return {k: v for k, v in found.items() if v is not None and len(v) <= LIST_LIMIT}
