"""Log compaction: the actions of a range of commits in one file, each key once, with every tombstone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.records import ActionQuery, RangeRequest
from delta_core.errors import InvalidArgumentError, LogError, VersionNotFoundError
from delta_core.kernel.commit.upkeep import check_upkeep
from delta_core.kernel.log.names import LOG_DIRECTORY, compacted_name
from delta_core.kernel.log.reconcile import reconcile
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.protocol.actions import parse_action
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels.arrow_buffers import array_of, int64_values
from delta_core.kernels.json_actions import ParsedActions
from delta_core.operations.progress import OperationProgress, ProgressReport

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["compact_log"]

#: Actions that are those of their own commit only.
_DROPPED = frozenset({"commitInfo", "cdc"})
#: The keys of the other actions of the protocol; those of plugins declare it.
_KEYS: dict[str, tuple[str, ...]] = {"protocol": (), "metaData": (), "txn": ("appId",), "domainMetadata": ("domain",)}
#: The number of commits that are read again at a time.
_COMMITS = 512


def compact_log(
    snapshot: Snapshot,
    start: int,
    end: int,
    *,
    dry_run: bool = False,
    progress: Callable[[OperationProgress], None] | None = None,
) -> str:
    """Write the actions of the commits of versions ``start`` to ``end`` into one file of the log, and return its name.

    Of each key the newest action is kept, as its commit spells it. Removed files and domains stay in it, however old:
    they cancel what older files of the log contain. ``commitInfo`` and change files are left out. A file of the same
    name that is there already stays: it may be all that is left of a damaged commit.

    Parameters
    ----------
    snapshot : Snapshot
        The table.
    start, end : int
        The first and the last version.
    dry_run : bool
        Whether the commits are only looked for, and the name is returned.
    progress : function(OperationProgress), optional
        Called while commits are written (step ``write``, commits as files).

    Raises
    ------
    InvalidArgumentError
        If the range has not at least two versions.
    VersionNotFoundError
        If a commit of the range is not in the log (any more).
    UnsupportedFeatureError, UnsupportedVersionError
        If the table needs a feature that no installed plugin provides.
    UnsupportedOperationError
        If a catalog does not allow it.
    LogError
        If a commit can't be read or is empty, or a file of the same name contains something else.

    Protocol
    --------
    Log Compaction Files
    """
    if not 0 <= start < end:
        raise InvalidArgumentError(
            f"Found the versions {start} to {end}, expected a first version from 0 on and a last one above it.",
            value=(start, end),
        )
    check_upkeep(snapshot, "compact_log")
    commits = {f.version: f for f in snapshot.context.log.commit_files(start) if f.kind == "commit"}
    missing = next((v for v in range(start, end + 1) if v not in commits), None)
    if missing is not None:
        raise VersionNotFoundError(
            f"The versions {start} to {end} of {snapshot.uri} can't be compacted: the commit of version {missing} is "
            "not in the log.",
            version=missing,
        )
    files = [commits[v] for v in range(start, end + 1)]
    name = compacted_name(start, end)
    if dry_run:
        return name
    report = ProgressReport(progress)
    report.begin("write", pa.chunked_array([array_of([f.size or 0 for f in files], pa.int64())]))
    actions = snapshot.engine.logs.read_commits(files, ActionQuery())
    declared = {k.name: tuple(k.key) for f in snapshot.plugins.features.values() for k in f.actions}
    places = _newest(actions, {**declared, **_KEYS}, snapshot.uri)
    counts = np.bincount(
        np.concatenate([int64_values(t.column("version")) for t in _tables(actions)]) - start, minlength=end + 1 - start
    )
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        damaged = files[int(empty[0])]
        raise LogError(
            f"{damaged.name} has no action, expected one at least: nothing was written. Restore it from a copy.",
            path=damaged.name,
            version=damaged.version,
        )
    try:
        with snapshot.engine.storage.put_stream(f"{LOG_DIRECTORY}/{name}", replace=False) as file:
            for text in _texts(snapshot, files, places, counts.tolist(), report):
                file.write(text)
    except FileExistsError:
        _check_existing(snapshot, name, _texts(snapshot, files, places, counts.tolist(), report))
    return name


def _check_existing(snapshot: Snapshot, name: str, texts: Iterator[bytes]) -> None:
    """Reject a compacted file that contains other actions than its commits."""
    (data,) = snapshot.engine.storage.read([RangeRequest(f"{LOG_DIRECTORY}/{name}")])
    if sorted(bytes(data).split()) != sorted(b"".join(texts).split()):
        raise LogError(
            f"{name} is there and contains other actions than its commits: one of the two is wrong, and nothing was "
            "written. Call verify() and repair(), or move the file elsewhere.",
            path=name,
        )


def _tables(actions: ParsedActions) -> tuple[pa.Table, ...]:
    return actions.adds, actions.removes, actions.cdcs, actions.other_actions


def _newest(actions: ParsedActions, keys: dict[str, tuple[str, ...]], where: str) -> NDArray[np.int64]:
    """Return the places (version and line, sorted) of the actions that are the newest of their key."""
    found = reconcile(actions)
    places = [_places(actions.adds)[found.adds], _places(actions.removes)[found.removes]]
    others = actions.other_actions
    newest: dict[tuple[Any, ...], int] = {}
    rows = zip(
        _places(others).tolist(), others.column("kind").to_pylist(), others.column("json").to_pylist(), strict=True
    )
    for place, kind, text in rows:
        if kind in _DROPPED:
            continue
        # an action of a kind that no plugin declares has no key: all of them stay
        key: tuple[Any, ...] = (kind, place)
        if kind in keys:
            value = parse_action(text, where) if keys[kind] else {}
            if not isinstance(value, dict):
                raise LogError(f"An action {kind} of {where} is {text[:200]}, expected an object.", action=kind)
            key = (kind, *(json.dumps(value.get(k)) for k in keys[kind]))
        newest[key] = max(place, newest.get(key, place))
    return np.sort(np.concatenate([*places, np.array(list(newest.values()), np.int64)]))


def _places(table: pa.Table) -> NDArray[np.int64]:
    version, line = (int64_values(table.column(name)) for name in ("version", "line"))
    places: NDArray[np.int64] = (version << 32) + line
    return places


def _texts(
    snapshot: Snapshot,
    files: Sequence[LogFile],
    places: NDArray[np.int64],
    counts: Sequence[int],
    report: ProgressReport,
) -> Iterator[bytes]:
    """Yield the text of the actions at some places, a line each."""
    for first in range(0, len(files), _COMMITS):
        window = files[first : first + _COMMITS]
        texts = snapshot.engine.storage.read([RangeRequest(f"{LOG_DIRECTORY}/{f.name}") for f in window])
        for file, text, count in zip(window, texts, counts[first:], strict=False):
            low, high = np.searchsorted(places, [file.version << 32, (file.version + 1) << 32])
            if low == high:
                continue
            lines = _lines(bytes(text), count, file.name)
            yield b"".join(lines[int(place & 0xFFFFFFFF)] + b"\n" for place in places[low:high])
        report.add(files=len(window), num_bytes=sum(f.size or 0 for f in window))


def _lines(text: bytes, count: int, where: str) -> list[bytes]:
    """Return a commit's actions as it spells them, one each."""
    lines = [stripped for line in text.split(b"\n") if (stripped := line.strip())]
    if len(lines) == count and all(line[:1] == b"{" and line[-1:] == b"}" for line in lines):
        return lines
    # several actions in a line, or one in several lines
    found, at, whole = [], 0, text.decode().strip()
    while at < len(whole):
        _, end = json.JSONDecoder().raw_decode(whole, at)
        found.append(whole[at:end].replace("\n", " ").replace("\r", " ").encode())
        at = end + len(whole[end:]) - len(whole[end:].lstrip())
    if len(found) != count:
        raise LogError(f"{where} has {len(found)} JSON objects, expected {count} actions.", path=where)
    return found
