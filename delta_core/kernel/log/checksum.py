"""Version checksum files, ``<version>.crc``: the cheapest source of protocol and metadata, never a needed one.

Kept up commit by commit: the numbers of one version come from those of the version before and the commit's own
actions. Protocol: Version Checksum File.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.interface import Storage
from delta_core.engines.records import ActionQuery, RangeRequest
from delta_core.errors import DeltaError, EngineError, IrregularFileError, LogError
from delta_core.kernel.log.checkpoint_source import ChecksumSource
from delta_core.kernel.log.names import LOG_DIRECTORY, checksum_name
from delta_core.kernel.plugins.answers import find_json_misfit
from delta_core.kernel.plugins.plans import LogFile, ReadRequest
from delta_core.kernel.plugins.rules import ChecksumField, CommitSummary, RowSelector
from delta_core.kernel.protocol.actions import DomainMetadata, Metadata, Protocol, parse_action
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values
from delta_core.kernels.json_actions import ParsedActions
from delta_core.runtime.json_text import decode_json
from delta_core.runtime.plugin_errors import contract_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ChecksumSource", "CommitContent", "check_by_checksum", "has_checksum", "is_consistent", "read_checksum",
    "whole_checksum", "write_checksum",
]  # fmt: skip

_log = logging.getLogger(__name__)
_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30
#: Where the bins of file sizes begin, as every Delta writer has them.
SIZE_BINS = (
    0,
    *(_KB << i for i in range(3, 10)),
    *(_MB << i for i in range(2)),
    *(_MB * i for i in (4, *range(8, 41, 4), *range(48, 121, 8), *range(124, 145, 4), *range(160, 577, 16))),
    *(_MB * i for i in (*range(640, 1409, 64), *range(1536, 2049, 128), *range(2304, 4097, 256))),
    *(_GB << i for i in range(3, 9)),
)
#: Longer lists of transactions and domains are left out: a checksum is read at every open.
LIST_LIMIT = 100
#: The fields of a checksum that features can't set.
OWN_FIELDS = frozenset({
    "txnId", "tableSizeBytes", "numFiles", "numMetadata", "numProtocol", "metadata", "protocol", "fileSizeHistogram",
    "setTransactions", "domainMetadata", "allFiles",
})  # fmt: skip
_RETENTION = "delta.setTransactionRetentionDuration"
#: Sizes that are counted at a time.
_RUN = 1 << 16
#: A table before its first commit.
_EMPTY: Mapping[str, Any] = {
    "tableSizeBytes": 0,
    "numFiles": 0,
    "fileSizeHistogram": {
        "sortedBinBoundaries": list(SIZE_BINS),
        "fileCounts": [0] * len(SIZE_BINS),
        "totalBytes": [0] * len(SIZE_BINS),
    },
    "setTransactions": [],
    "domainMetadata": [],
}

Checksum = Mapping[str, Any]


class CommitContent(Struct, frozen=True):
    """The parts of a commit that a checksum needs.

    Parameters
    ----------
    actions : ParsedActions
        File actions with ``path``, ``size``, ``dataChange`` and ``dvCardinality``, and the small ones.
    info : Mapping
        ``commitInfo``; empty if there is none.
    """

    actions: ParsedActions
    info: Mapping[str, Any]


def read_checksum(storage: Storage, file: LogFile) -> Checksum | None:
    """Return the checksum's object, None if the file is gone, torn or lacks what every checksum has.

    Parameters
    ----------
    storage : Storage
        The table's store.
    file : LogFile
        The file of the checksum.
    """
    return _read(storage, file.name)


def _read(storage: Storage, name: str) -> Checksum | None:
    try:
        (data,) = storage.read([RangeRequest(f"{LOG_DIRECTORY}/{name}")])
        value = decode_json(bytes(data))
    except (FileNotFoundError, EngineError, IrregularFileError, ValueError):
        return None
    if not isinstance(value, dict):
        return None
    whole = isinstance(value.get("protocol"), dict) and isinstance(value.get("metadata"), dict)
    return value if whole else None


def has_checksum(storage: Storage, version: int) -> bool:
    """Whether a version has a checksum that can be read.

    Parameters
    ----------
    storage : Storage
        The table's store.
    version : int
        The version.
    """
    return version >= 0 and _read(storage, checksum_name(version)) is not None


def is_consistent(found: Mapping[str, Any]) -> bool:
    """Whether the fields of a checksum agree with each other: one that contradicts itself proves nothing.

    Parameters
    ----------
    found : Mapping
        The checksum as decoded JSON.
    """
    numbers = [found.get(n) for n in ("numFiles", "tableSizeBytes")]
    if any(not isinstance(n, int) or isinstance(n, bool) or n < 0 for n in numbers):
        return False
    if any(found.get(n) not in (None, 1) for n in ("numMetadata", "numProtocol")):
        return False
    try:
        if found.get("protocol") is not None and found.get("metadata") is not None:
            Protocol.parse(found["protocol"], "it")
            _ = Metadata.parse(found["metadata"], "it").schema
        bins = found.get("fileSizeHistogram")
        if isinstance(bins, dict) and [sum(bins["fileCounts"]), sum(bins["totalBytes"])] != numbers:
            return False
        files = found.get("allFiles")
        return not isinstance(files, list) or [len(files), sum(f["size"] for f in files)] == numbers
    except (DeltaError, ValueError, TypeError, LookupError, AttributeError):
        return False


def check_by_checksum(snapshot: ChecksumSource, known: Checksum | None = None) -> None:
    """Reject a version whose checksum reports other files than its log has: one of the two is damaged.

    Operations that copy or delete by a state call it first, since the checksum may be all that shows a loss.

    Parameters
    ----------
    snapshot : ChecksumSource
        The version; its files are counted.
    known : Mapping, optional
        The checksum, if the caller has it; read from the log if it is not given.

    Raises
    ------
    LogError
        If the numbers of files or bytes differ. A checksum that is missing or contradicts itself proves nothing.
    """
    name = checksum_name(snapshot.version)
    found = _read(snapshot.engine.storage, name) if known is None else known
    if found is None or not is_consistent(found):
        return
    runs = snapshot.files.map_columns(_count, ["size"])
    numbers = sum(n for n, _ in runs), sum(size for _, size in runs)
    stated = found["numFiles"], found["tableSizeBytes"]
    if numbers != stated:
        raise LogError(
            f"The log of version {snapshot.version} results in {numbers[0]} files of {numbers[1]} bytes; {name} "
            f"reports {stated[0]} of {stated[1]}: one of the two is damaged. Nothing was changed. Call verify(), and "
            "restore the damaged file from a copy, or delete the checksum if it is wrong.",
            path=f"{LOG_DIRECTORY}/{name}",
            version=snapshot.version,
        )


def _count(files: pa.Table) -> tuple[int, int]:
    return files.num_rows, int(pc.sum(files.column("size")).as_py() or 0)


def write_checksum(
    snapshot: ChecksumSource,
    previous: Checksum | None = None,
    *,
    commit: CommitContent | None = None,
    full: bool = False,
) -> Checksum | None:
    """Write the checksum of a snapshot's version, unless it is there or can't be known cheaply.

    Parameters
    ----------
    snapshot : ChecksumSource
        The version.
    previous : Mapping, optional
        The result for the version before; read from the log if it is not given.
    commit : CommitContent, optional
        The content of the version's commit, which saves reading it.
    full : bool
        Compute it from the whole state, which takes time linear in the number of files, and not from the version
        before. For a commit that adds files again without removing them, no other way is right.

    Returns
    -------
    dict or None
        The checksum, to be given for the next version; None if it was not written: the version before has none, a
        remove does not report its file's size, or the store failed. Failures are logged, never raised.

    Notes
    -----
    Without ``full``, the cost does not grow with the table. One is never overwritten.
    """
    storage, name = snapshot.engine.storage, checksum_name(snapshot.version)
    try:
        if full and _is_there(storage, name):
            return None
        value = whole_checksum(snapshot, commit) if full else _next(snapshot, previous, commit)
        if value is None:
            return None
        # 50 times as fast as the standard library, for the hundreds of numbers of a histogram
        data = msgspec.json.encode(value)
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


def _next(snapshot: ChecksumSource, previous: Checksum | None, commit: CommitContent | None) -> dict[str, Any] | None:
    """Return the checksum from the one before and the commit, None if they don't report."""
    if snapshot.version == 0:
        previous = None
    else:
        previous = previous or _read(snapshot.engine.storage, checksum_name(snapshot.version - 1))
        if previous is None:
            return None
    content = _read_commit(snapshot) if commit is None else commit
    adds, removes = content.actions.adds, content.actions.removes
    if removes.column("size").null_count or adds.column("size").null_count or _adds_again(adds, removes):
        return None
    before = _EMPTY if previous is None else previous
    files = _changed(before, adds, removes)
    if files is None:
        return None
    actions = content.actions.other_actions
    return {
        **files,
        **_definition(snapshot),
        **_commit_fields(snapshot, CommitSummary(snapshot.version, content.info, previous, adds, removes)),
        **_lists(
            snapshot,
            _changed_list(before.get("setTransactions"), actions, "txn", "appId"),
            _changed_list(before.get("domainMetadata"), actions, "domainMetadata", "domain"),
        ),
    }


def whole_checksum(snapshot: ChecksumSource, commit: CommitContent | None = None) -> dict[str, Any]:
    """Return the checksum from the whole state.

    Parameters
    ----------
    snapshot : ChecksumSource
        The version.
    commit : CommitContent, optional
        Its own commit, if the caller has it.
    """
    files = _live_files(snapshot)
    removed = files.slice(0, 0)
    numbers = _changed(_EMPTY, files, removed)
    assert numbers is not None
    content = _read_commit(snapshot) if commit is None and _last_commit(snapshot) is not None else commit
    info = {} if content is None else content.info
    return {
        **numbers,
        **_definition(snapshot),
        **_commit_fields(snapshot, CommitSummary(snapshot.version, info, None, files, removed)),
        **_lists(
            snapshot,
            [t.to_json() for t in snapshot.transactions().values()],
            [DomainMetadata(d, c).to_json() for d, c in snapshot.domains().items()],
        ),
    }


def _live_files(snapshot: ChecksumSource) -> pa.Table:
    """Return the columns that numbers are made of, as a commit's actions have them."""
    rules = snapshot.plugins.collect("read_rules", table=snapshot.state, request=ReadRequest())
    if not any(isinstance(r, RowSelector) for r in rules):  # then no vector needs decoding
        found = snapshot.files.columns(["size"])
        return found.append_column("dvCardinality", pa.nulls(found.num_rows, pa.int64()))
    found = snapshot.files.columns(["size", "deletionVector"])
    vectors = found.column("deletionVector").chunks
    cardinality = [c.flatten()[c.type.get_field_index("cardinality")] for c in vectors]
    return found.select(["size"]).append_column("dvCardinality", pa.chunked_array(cardinality, pa.int64()))


def _definition(snapshot: ChecksumSource) -> dict[str, Any]:
    table = snapshot.state
    return {
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": table.metadata.to_json(),
        "protocol": table.protocol.to_json(),
    }


# --- the commit ----------------------------------------------------------------------------


def _last_commit(snapshot: ChecksumSource) -> LogFile | None:
    found = [f for f in snapshot.segment.commits[-1:] if f.end_version == snapshot.version]
    return found[0] if found else None


def _read_commit(snapshot: ChecksumSource) -> CommitContent:
    file = _last_commit(snapshot)
    if file is None:
        raise ValueError(f"the commit of version {snapshot.version} is not there")
    query = ActionQuery(
        ("path", "size", "dataChange", "dvCardinality"), skip=frozenset({"cdc", "protocol", "metaData"})
    )
    actions = snapshot.engine.logs.read_commits([file], query)
    infos = _values(actions.other_actions, "commitInfo")
    return CommitContent(actions, infos[-1] if infos else {})


def _values(actions: pa.Table, kind: str) -> list[dict[str, Any]]:
    if not actions.num_rows:
        return []
    rows = zip(actions.column("kind").to_pylist(), actions.column("json").to_pylist(), strict=True)
    return [v for k, text in rows if k == kind and isinstance(v := parse_action(text, "the commit"), dict)]


def _commit_fields(snapshot: ChecksumSource, commit: CommitSummary) -> dict[str, Any]:
    """Return the transaction's id, and the fields that features add."""
    out = {"txnId": commit.info["txnId"]} if isinstance(commit.info.get("txnId"), str) else {}
    added: list[ChecksumField] = snapshot.plugins.collect("checksum_fields", table=snapshot.state, commit=commit)
    for field in added:
        if field.name in OWN_FIELDS or field.name in out:
            what = f"is named {field.name!r}, which the checksum has already; expected a field of its own"
            raise contract_error(field.feature, "checksum_fields", "ChecksumField", what)
        misfit = find_json_misfit(field.value, field.name)
        if misfit is not None:
            raise contract_error(field.feature, "checksum_fields", "ChecksumField", f"has {misfit}")
        out[field.name] = field.value
    return out


def _adds_again(adds: pa.Table, removes: pa.Table) -> bool:
    """Whether files may be added that are live already: to change their statistics or tags, specify."""
    return not removes.num_rows and any(c.true_count < len(c) for c in adds.column("dataChange").chunks)


# --- files ---------------------------------------------------------------------------------


def _sizes(files: pa.Table) -> NDArray[np.int64]:
    sizes = files.column("size")
    found: NDArray[np.int64] = sizes.to_numpy() if sizes.null_count else int64_values(sizes)
    return found


def _changed(previous: Checksum, adds: pa.Table, removes: pa.Table) -> dict[str, Any] | None:
    """Return the numbers of files after a commit; None if they would be negative, so that something was wrong."""
    before: dict[str, Any] = {name: previous[name] for name in ("tableSizeBytes", "numFiles")}
    # the name under which Delta on Spark wrote it for long
    bins = previous.get("fileSizeHistogram") or previous.get("histogramOpt")
    if isinstance(bins, dict):
        before["fileSizeHistogram"] = bins
    after = _moved(before, adds, 1)
    return after if after is None or not removes.num_rows else _moved(after, removes, -1)


def _moved(before: Mapping[str, Any], files: pa.Table, sign: int) -> dict[str, Any] | None:
    """Return numbers with files added, or removed by the sign -1; None if one is negative afterwards."""
    sizes = _sizes(files)
    out = {
        **before,
        "tableSizeBytes": before["tableSizeBytes"] + sign * int(sizes.sum()),
        "numFiles": before["numFiles"] + sign * len(sizes),
    }
    histograms = []
    if (found := before.get("fileSizeHistogram")) is not None:
        starts = found["sortedBinBoundaries"]
        counts, totals = found["fileCounts"], found["totalBytes"]
        # a run at a time: in fresh memory for all of them it takes twice as long
        for start in range(0, max(len(sizes), 1), _RUN):
            run = sizes[start : start + _RUN]
            bins = _bins(run, starts)
            counts = _binned(counts, starts, bins, sign)
            totals = _binned(totals, starts, bins, sign * run)
        out["fileSizeHistogram"] = {"sortedBinBoundaries": starts, "fileCounts": counts, "totalBytes": totals}
        histograms += [counts, totals]
    numbers = [v for v in out.values() if isinstance(v, int)]
    return None if any(min(n, default=0) < 0 for n in (numbers, *histograms)) else out


def _bins(values: NDArray[np.int64], starts: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of each value's bin."""
    found: NDArray[np.int64] = np.searchsorted(np.array(starts), values, side="right") - 1
    if len(found) and found.min() < 0:
        raise ValueError(f"a size of {values.min()} lies below every bin of its histogram")
    return found


def _binned(before: Sequence[int], starts: Sequence[int], bins: NDArray[np.int64], weights: Any) -> list[int]:
    """Return a histogram with weights added to bins: most commits touch few of them."""
    if len(before) != len(starts):
        raise ValueError(f"a histogram of {len(starts)} bins has {len(before)} numbers")
    change = np.zeros(len(starts), np.int64)
    np.add.at(change, bins, weights)
    out = list(before)
    for i in np.flatnonzero(change).tolist():
        out[i] += int(change[i])
    return out


# --- transactions and domains --------------------------------------------------------------


def _changed_list(before: Any, actions: pa.Table, kind: str, key: str) -> list[dict[str, Any]] | None:
    if not isinstance(before, list):
        return None
    out = {v[key]: v for v in before}
    for v in _values(actions, kind):
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
