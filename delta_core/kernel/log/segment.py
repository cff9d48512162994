"""Which log files make a version: the choice of checkpoint and of commits above it.

Pure: from names to a `LogSegment`. Protocol: Delta Log Entries, Checkpoints, Log Compaction Files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set as AbstractSet

from delta_core.errors import LogError, TableNotFoundError, VersionNotFoundError
from delta_core.kernel.log.hint import Hint
from delta_core.kernel.plugins.plans import Checkpoint, LogFile, LogSegment

__all__ = ["choose_segment", "complete_checkpoints"]


def choose_segment(
    files: Sequence[LogFile],
    target: int | None,
    *,
    hint: Hint | None = None,
    where: str = "",
    rejected: Iterable[str] = (),
) -> LogSegment:
    """Choose the files that make a version.

    Parameters
    ----------
    files : sequence of LogFile
        The listing in name order; staged or inline commits already replace published ones.
    target : int or None
        The version requested; None for the latest.
    hint : Hint, optional
        The content of ``_last_checkpoint``, which the notes compare with the choice.
    where : str
        The table's location, for messages.
    rejected : names
        Checkpoint files that turned out to be unreadable.

    Raises
    ------
    TableNotFoundError
        If there is no log at all.
    VersionNotFoundError
        If the version does not exist or can no longer be built.
    LogError
        If commits are missing in the middle.
    """
    commits = [f for f in files if f.kind in ("commit", "staged")]
    rejected = set(rejected)
    checkpoints = complete_checkpoints(files, rejected)
    latest = max([f.version for f in commits[-1:]] + [c.version for c in checkpoints[-1:]], default=None)
    if latest is None:
        raise TableNotFoundError(
            f"No Delta table at {where}: its _delta_log holds no commit and no complete checkpoint.", path=where
        )
    if target is None:
        target = latest
    if target > latest or target < 0:
        raise VersionNotFoundError(
            f"Version {target} of {where} does not exist; the latest is {latest}.",
            version=target,
            latest=latest,
            path=where,
        )
    checkpoint = next((c for c in reversed(checkpoints) if c.version <= target), None)
    base = -1 if checkpoint is None else checkpoint.version
    notes = [_why(checkpoint, checkpoints, target, hint), *_passed_over(files, rejected, base, target)]
    deltas = _cover(commits, files, base, target, where, notes)
    checksum = next((f for f in reversed(files) if f.kind == "crc" and base <= f.version <= target), None)
    commits_below = tuple(f for f in commits if f.version <= target)
    return LogSegment(target, checkpoint, deltas, commits_below, checksum, tuple(notes))


def _why(checkpoint: Checkpoint | None, all_complete: Sequence[Checkpoint], target: int, hint: Hint | None) -> str:
    hint_text = (
        "there is no _last_checkpoint hint" if hint is None else f"_last_checkpoint points at version {hint.version}"
    )
    if checkpoint is None:
        return f"No complete checkpoint at or below version {target}: all commits from 0 are replayed; {hint_text}."
    same = sum(c.version == checkpoint.version for c in all_complete)
    more = f", chosen of {same} at this version" if same > 1 else ""
    return (
        f"The newest complete checkpoint at or below version {target} is that of version {checkpoint.version} "
        f"({checkpoint.kind}, {len(checkpoint.files)} file{'s' * (len(checkpoint.files) > 1)}{more}); {hint_text}."
    )


def _passed_over(files: Iterable[LogFile], rejected: AbstractSet[str], base: int, target: int) -> list[str]:
    """Return why checkpoints above the one that was chosen are none."""
    out = []
    parts: dict[tuple[int, int], int] = {}
    for f in files:
        if f.kind != "checkpoint" or not base < f.version <= target:
            continue
        if f.name in rejected or f.size == 0:
            out.append(f"{f.name} is passed over: it can't be read.")
        elif f.parts:
            parts[f.version, f.parts] = parts.get((f.version, f.parts), 0) + 1
    for (version, count), found in parts.items():
        out.append(f"The checkpoint of version {version} is passed over: {found} of its {count} parts are there.")
    return out


def complete_checkpoints(files: Iterable[LogFile], rejected: set[str]) -> list[Checkpoint]:
    """Return the complete checkpoints, oldest first; of one version the preferred one last.

    A multi-part checkpoint with a part missing is no checkpoint. Of several at one version a uuid-named one
    is preferred, then a single file, then parts; among uuid-named ones the last by name.

    Parameters
    ----------
    files : iterable of LogFile
        The files of a listing.
    rejected : set of str
        Names of checkpoint files that can't be read.
    """
    found: list[tuple[tuple[int, int, str], Checkpoint]] = []
    parts: dict[tuple[int, int], dict[int, LogFile]] = {}
    for f in files:
        if f.kind != "checkpoint" or f.name in rejected or f.size == 0:
            continue
        if f.parts:
            parts.setdefault((f.version, f.parts), {})[f.part] = f
        elif f.uuid:
            found.append(((f.version, 2, f.name), Checkpoint(f.version, "uuid", (f,))))
        else:
            found.append(((f.version, 1, f.name), Checkpoint(f.version, "single", (f,))))
    for (version, count), have in parts.items():
        if len(have) == count:
            ordered = tuple(have[i] for i in sorted(have))
            found.append(((version, 0, f"{count:010d}"), Checkpoint(version, "multipart", ordered)))
    return [c for _, c in sorted(found, key=lambda pair: pair[0])]


def _cover(
    commits: Sequence[LogFile], files: Sequence[LogFile], base: int, target: int, where: str, notes: list[str]
) -> tuple[LogFile, ...]:
    """Return files that cover every version of (base, target] once.

    Known writers of compacted files drop expired tombstones from them, which restores removed files, and some
    do not reconcile them at all. So a compacted file serves only if a commit that it covers is gone.
    """
    by_version = {f.version: f for f in commits if base < f.version <= target}
    compacted: dict[int, LogFile] = {}
    for f in files:
        if f.kind == "compacted" and base < f.version and f.end_version <= target:
            compacted[f.version] = max(f, compacted.get(f.version, f), key=lambda c: c.end_version)
    out: list[LogFile] = []
    version = base + 1
    while version <= target:
        wide = compacted.get(version)
        if wide is not None and any(v not in by_version for v in range(version, wide.end_version + 1)):
            out.append(wide)
            notes.append(f"{wide.name} represents versions {wide.version} to {wide.end_version}.")
            version = wide.end_version + 1
        elif version in by_version:
            if wide is not None:
                notes.append(f"{wide.name} is passed over: its commits are there, and they keep every tombstone.")
            out.append(by_version[version])
            version += 1
        else:
            raise _gap(version, base, target, by_version, where)
    return tuple(out)


def _gap(version: int, base: int, target: int, have: dict[int, LogFile], where: str) -> LogError | VersionNotFoundError:
    first = min(have, default=None)
    if base < 0 and (first is None or version < first):
        begin = "no commit is there" if first is None else f"its commits begin at {first}"
        return VersionNotFoundError(
            f"Version {target} of {where} can't be built: {begin}, and no complete checkpoint at or below {target} is. "
            "Older commits were cleaned up; request a version that a checkpoint covers.",
            version=target,
            path=where,
        )
    return LogError(
        f"The log of {where} has a gap: version {version} is missing between {base if base >= 0 else 'the start'} and "
        f"{target}. A commit was deleted by hand, or the copy of the log is not whole.",
        version=version,
        path=where,
    )
