"""Which of two files of a log that differ is right: what its other files, and the data files, confirm.

Commits are one witness. A checkpoint, a compacted file, a checksum and the data files that exist are others. Commits
are believed against a file that differs from them only if none of them has a finding of its own, another witness
confirms them, and none contradicts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import CheckpointError, LogChangedError, LogError
from delta_core.kernel.log.checksum import is_consistent
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.log.segment import complete_checkpoints
from delta_core.kernel.plugins.checks import Finding
from delta_core.kernel.plugins.plans import Checkpoint, LogFile
from delta_core.kernel.protocol.actions import Metadata, Protocol
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, int64_values, is_valid
from delta_core.kernels.dedup import KeySet
from delta_core.operations.verify.checkpoints import (
    UNREADABLE,
    check_checkpoints,
    differences,
    not_in,
    open_version,
    protocol_parts,
    stored_state,
)
from delta_core.operations.verify.checksums import LISTED_KINDS, CommitTotals, ComparedChecksum, read_checksum_file
from delta_core.operations.verify.log import check_commits, check_compacted
from delta_core.operations.verify.version import file_sizes

__all__ = ["Dispute", "LogSurvey", "Verdict", "checksum_verdict", "verdict"]

_DEFINITION = frozenset({"protocol", "metaData"})


class LogSurvey:
    """The files of a log with what is wrong with them; reads all of it once."""

    def __init__(self, context: TableContext) -> None:
        self.context = context
        self.files: list[LogFile] = context.log.listed()
        self.totals: CommitTotals = CommitTotals()
        logs = context.log.engine.logs
        self.commits: list[Finding] = list(check_commits(context, self.files, self.totals, _quiet))
        self._unsound = {f.version for f in self.commits}
        self._there = {f.version for f in self.files if f.kind in ("commit", "staged")}
        found: dict[str, tuple[Checkpoint, list[Finding]]] = {}
        for finding, checkpoint in check_checkpoints(context, self.files, _quiet):
            found.setdefault(checkpoint.files[0].name, (checkpoint, []))[1].append(finding)
        #: The checkpoints that can't be read or differ from the commits, oldest first.
        self.checkpoints: list[tuple[Checkpoint, list[Finding]]] = list(found.values())
        self.wrong: frozenset[str] = frozenset(f.name for checkpoint, _ in self.checkpoints for f in checkpoint.files)
        self.compacted: list[Finding] = list(check_compacted(logs, self.files))

    def are_sound(self, after: int, last: int) -> bool:
        """Whether the commits above a version, up to another one, are there and nothing was found in them."""
        return all(v in self._there and v not in self._unsound for v in range(after + 1, last + 1))

    @property
    def has_sound_commits(self) -> bool:
        """Whether nothing was found in any commit."""
        return not self.commits

    def without(self, *names: str, kinds: Sequence[str] = ()) -> list[LogFile]:
        """Return the files but for those of some names or kinds."""
        return [f for f in self.files if f.name not in names and f.kind not in kinds]

    def state(self, files: Sequence[LogFile], version: int) -> Snapshot | None:
        """Return a version from some files of the log, None if it can't be built."""
        try:
            return open_version(self.context, files, version)
        except LogChangedError:
            raise
        except UNREADABLE:
            return None

    def stored(self, checkpoint: Checkpoint) -> Snapshot | None:
        """Return the version that a checkpoint represents, None if it can't be read."""
        try:
            return stored_state(self.context, checkpoint, self.files)
        except LogChangedError:
            raise
        except UNREADABLE:
            return None

    # --- disputes ---

    def of_checkpoint(self, checkpoint: Checkpoint) -> Dispute | None:
        """Return the dispute of a checkpoint with the commits below it; None if these are not there any more."""
        version, own = checkpoint.version, frozenset(f.name for f in checkpoint.files)
        view = [
            f for f in self.without(*self.wrong, kinds=("compacted",)) if f.kind != "checkpoint" or f.version < version
        ]
        commits = self.state(view, version)
        if commits is None:
            return None
        other_view = [f for f in self.files if f.kind in ("commit", "staged") or f.name in own]
        time_ms = max((self._modified_ms(f) for f in checkpoint.files), default=0)
        return Dispute(version, own, commits, view, self.stored(checkpoint), other_view, time_ms)

    def of_compacted(self, file: LogFile) -> Dispute | None:
        """Return the dispute of a compacted file with the commits that it covers; None if these can't be read."""
        start, version = file.version, file.end_version
        view = [
            f for f in self.without(*self.wrong, kinds=("compacted",)) if f.kind != "checkpoint" or f.version < start
        ]
        commits = self.state(view, version)
        if commits is None:
            return None
        covered = [f for f in view if f.kind in ("commit", "staged") and start <= f.version <= version]
        other_view = [*(f for f in view if f not in covered), file]
        other = self.state(other_view, version)
        return Dispute(version, frozenset({file.name}), commits, view, other, other_view, self._modified_ms(file))

    def _modified_ms(self, file: LogFile) -> int:
        if file.modified_ms is not None:
            return file.modified_ms
        ((_, modified_ms),) = self.context.log.engine.storage.stat([f"_delta_log/{file.name}"])
        return modified_ms

    def checksum_values(self) -> Iterator[tuple[LogFile, dict[str, Any]]]:
        """Yield the checksums that can be read and do not contradict themselves, oldest first."""
        for f in self.files:
            if f.kind == "crc":
                value = read_checksum_file(self.context, f)
                if isinstance(value, dict) and is_consistent(value):
                    yield f, value


class Dispute(Struct, frozen=True):
    """A version as commits result in it, and as another file of the log has it.

    Parameters
    ----------
    version : int
    names : frozenset of str
        The other file, or those of the other checkpoint.
    commits : Snapshot
        The version from the commits, above a checkpoint in which nothing was found.
    view : sequence of LogFile
        The files that this was built from, and the commits above it.
    other : Snapshot or None
        The version from the other file; None if that can't be read.
    other_view : sequence of LogFile
        As ``view``.
    modified_ms : int
        When the other file was written.
    """

    version: int
    names: frozenset[str]
    commits: Snapshot
    view: Sequence[LogFile]
    other: Snapshot | None
    other_view: Sequence[LogFile]
    modified_ms: int

    @property
    def base(self) -> int:
        """The version above which commits were replayed."""
        checkpoint = self.commits.segment.checkpoint
        return -1 if checkpoint is None else checkpoint.version


class Verdict(Struct, frozen=True):
    """Whether commits are believed, and why."""

    believes_commits: bool
    reason: str


def verdict(survey: LogSurvey, dispute: Dispute) -> Verdict:
    """Return whether the commits are right and the other file is wrong."""
    if not survey.are_sound(dispute.base, dispute.version):
        return Verdict(False, "commits that it represents are damaged themselves")
    if dispute.other is not None and _are_same(dispute.other, dispute.commits):
        return Verdict(True, "it represents the same state as the commits")
    votes = [(vote(survey, dispute), name) for vote, name in _WITNESSES]
    against = [name for vote, name in votes if vote < 0]
    confirming = [name for vote, name in votes if vote > 0]
    if against:
        return Verdict(False, f"{' and '.join(against)} contradict{'s' * (len(against) == 1)} the commits")
    if not confirming:
        return Verdict(False, "nothing else confirms the commits")
    return Verdict(True, f"the commits are confirmed by {' and '.join(confirming)}")


def _are_same(first: Snapshot, second: Snapshot) -> bool:
    """Whether two states are the same; values that can't be read are not."""
    try:
        return next(differences(first, second), None) is None
    except LogChangedError:
        raise
    except (LogError, CheckpointError):
        return False


def _vote(fits_commits: bool, fits_other: bool | None) -> int:
    """Return 1 for what confirms the commits alone, -1 for what contradicts them, else 0.

    ``fits_other`` is None for a file that can't be read.
    """
    if fits_other is None:
        return 1 if fits_commits else -1
    if fits_commits:
        return 0 if fits_other else 1
    return -1


def _checksum_vote(survey: LogSurvey, dispute: Dispute) -> int:
    """Compare with the next checksum: its numbers and, if no commit changes them, its definition and lists."""
    for file, value in survey.checksum_values():
        if file.version < dispute.version or not survey.are_sound(dispute.version, file.version):
            continue
        numbers = value["numFiles"], value["tableSizeBytes"]
        expected = survey.totals.before(dispute.version, file.version, numbers)
        if expected is None:
            continue
        kinds = frozenset(k for k in LISTED_KINDS.values() if not survey.totals.has({k}, dispute.version, file.version))

        def fits(state: Snapshot, value: dict[str, Any] = value, kinds: frozenset[str] = kinds) -> bool:
            return _numbers(state) == expected and _fits_lists(state, value, kinds)  # noqa: B023 (called at once)

        return _vote(fits(dispute.commits), None if dispute.other is None else fits(dispute.other))
    return 0


def _numbers(state: Snapshot) -> tuple[int, int]:
    sizes = state.files.columns(["size"]).column(0)
    return len(sizes), int(pc.sum(sizes).as_py() or 0)


def _fits_lists(state: Snapshot, value: dict[str, Any], kinds: frozenset[str]) -> bool:
    """Whether a state has the definition and the lists of a checksum, as far as it has any; of these kinds only."""
    if kinds >= _DEFINITION and value.get("protocol") is not None and value.get("metadata") is not None:
        protocol, metadata = Protocol.parse(value["protocol"], "it"), Metadata.parse(value["metadata"], "it")
        own = state.metadata
        if protocol_parts(protocol) != protocol_parts(state.protocol) or (
            (metadata.id, metadata.partition_columns, metadata.configuration, metadata.schema)
            != (own.id, own.partition_columns, own.configuration, state.schema)
        ):
            return False
    listed = value.get("setTransactions")
    if "txn" in kinds and isinstance(listed, list):
        versions = {t.get("appId"): t.get("version") for t in listed}
        # a checkpoint may leave out transactions that have expired
        if any(versions.get(app) != txn.version for app, txn in state.transactions().items()):
            return False
    listed = value.get("domainMetadata")
    if "domainMetadata" in kinds and isinstance(listed, list):
        return {d.get("domain"): d.get("configuration") for d in listed} == state.domains()
    return True


def _checkpoint_vote(survey: LogSurvey, dispute: Dispute) -> int:
    """Compare with the next checkpoint, through the commits in between."""
    for checkpoint in complete_checkpoints(survey.files, set()):
        names = {f.name for f in checkpoint.files}
        if checkpoint.version < dispute.version or names & dispute.names:
            continue
        if not survey.are_sound(dispute.version, checkpoint.version):
            return 0
        stored = survey.stored(checkpoint)
        if stored is None:
            continue
        views = (dispute.view, None if dispute.other is None else dispute.other_view)
        states = [None if view is None else survey.state(view, checkpoint.version) for view in views]
        if states[0] is None:
            return 0
        fits = [state is not None and _are_same(stored, state) for state in states]
        return _vote(fits[0], None if dispute.other is None else fits[1])
    return 0


def _compacted_vote(survey: LogSurvey, dispute: Dispute) -> int:
    """Compare with the states that compacted files result in instead of the commits that they cover."""
    votes = []
    for f in survey.files:
        if (
            f.kind != "compacted"
            or f.name in dispute.names
            or f.version <= dispute.base
            or f.end_version > dispute.version
        ):
            continue
        covered = range(f.version, f.end_version + 1)
        view = [c for c in dispute.view if c.kind not in ("commit", "staged") or c.version not in covered]
        state = survey.state([*view, f], dispute.version)
        if state is not None:
            other = None if dispute.other is None else _are_same(state, dispute.other)
            votes.append(_vote(_are_same(state, dispute.commits), other))
    return -1 if -1 in votes else max(votes, default=0)


# --- data files ----------------------------------------------------------------------------


def _files_vote(survey: LogSurvey, dispute: Dispute) -> int:
    """Compare with the data files that exist, and their sizes."""
    if dispute.other is None:
        return _all_exist(dispute.commits)
    columns = ["path", "dvId", "size", "modificationTime"]
    should, have = (s.files.columns(columns) for s in (dispute.commits, dispute.other))
    votes = [
        *_votes_of_commits(dispute, not_in(should, have), not_in(have, should)),
        *_votes_of_other(dispute, not_in(have, should), not_in(should, have)),
        *_votes_of_sizes(dispute.commits, should, have),
    ]
    return -1 if -1 in votes else max(votes, default=0)


def _all_exist(state: Snapshot) -> int:
    files = state.files.columns(["path", "size"])
    if not files.num_rows:
        return 0
    return 1 if _exist(state, files).all() else -1


def _exist(state: Snapshot, files: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which files exist with the size that the log states, if it states one."""
    sizes = file_sizes(state, decode_paths(files.column("path")))
    known = is_valid(files.column("size"))
    return np.where(known, sizes == int64_values(files.column("size")), sizes >= 0)


def _votes_of_commits(dispute: Dispute, files: pa.Table, others: pa.Table) -> Iterator[int]:
    """Yield votes about the files that only the commits result in."""
    assert dispute.other is not None
    if not files.num_rows:
        return
    removed = KeySet()
    tombstones = dispute.other.tombstones()
    removed.insert(tombstones.column("path"), tombstones.column("dvId"))
    is_removed = removed.contains(files.column("path"), files.column("dvId"))
    if is_removed.any():
        yield -1  # no commit has what the tombstone is of
        return
    files = _without_paths(files, others)
    exists = _exist(dispute.commits, files)
    if not exists.all():
        yield -1
        return
    # the tombstone of a younger file would still be there
    retention: int = read_property(dispute.other.state.configuration, "delta.deletedFileRetentionDuration")
    times = int64_values(pc.fill_null(files.column("modificationTime"), 0))
    if files.num_rows and (times > dispute.modified_ms - retention).all():
        yield 1


def _votes_of_other(dispute: Dispute, files: pa.Table, others: pa.Table) -> Iterator[int]:
    """Yield votes about the files that only the other file has: of what commits touch, existence proves nothing."""
    touched = dispute.commits.touched()
    known = KeySet()
    known.insert(touched.column("path"), touched.column("dvId"))
    files = pc.filter(files, bool_array(~known.contains(files.column("path"), files.column("dvId"))))
    files = _without_paths(files, others)
    if files.num_rows:
        yield -1 if _exist(dispute.commits, files).any() else 1


def _without_paths(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return the files of other paths: of one that has another vector only, existence proves nothing."""
    return pc.filter(files, pc.invert(pc.is_in(files.column("path"), value_set=others.column("path").combine_chunks())))


def _votes_of_sizes(state: Snapshot, should: pa.Table, have: pa.Table) -> Iterator[int]:
    """Yield votes about the files that both have with different sizes."""
    joined = should.select(["path", "size"]).join(
        have.select(["path", "size"]).rename_columns(["path", "other"]), "path", join_type="inner"
    )
    different = joined.filter(pc.fill_null(pc.not_equal(joined.column("size"), joined.column("other")), True))
    if different.num_rows:
        sizes = file_sizes(state, decode_paths(different.column("path")))
        for column, vote in (("size", 1), ("other", -1)):
            if (sizes == int64_values(pc.fill_null(different.column(column), -9))).any():
                yield vote


_WITNESSES: Sequence[tuple[Callable[[LogSurvey, Dispute], int], str]] = (
    (_checksum_vote, "a checksum"),
    (_checkpoint_vote, "another checkpoint"),
    (_compacted_vote, "a compacted file"),
    (_files_vote, "the data files"),
)


# --- checksums -----------------------------------------------------------------------------


def checksum_verdict(
    survey: LogSurvey, compared: ComparedChecksum, all_compared: Sequence[ComparedChecksum]
) -> Verdict:
    """Return whether the log is right and a checksum that differs from it is wrong."""
    version = compared.file.version
    if not survey.has_sound_commits:
        return Verdict(False, "commits are damaged themselves")
    if compared.value is None or not is_consistent(compared.value):
        return Verdict(True, "it contradicts itself, and nothing is wrong with the commits")
    newer = [c for c in all_compared if c.file.version > version and c.is_sound and is_consistent(c.value or {})]
    for name, _, _ in compared.differences:
        if not any(_confirms(survey, c, compared, name) for c in newer):
            return Verdict(False, f"nothing else confirms {name} of the commits")
    return Verdict(True, "the commits are confirmed by a newer checksum")


def _confirms(survey: LogSurvey, newer: ComparedChecksum, compared: ComparedChecksum, name: str) -> bool:
    """Whether a newer checksum, which is right, proves a field of an older version's state.

    An older one would not: the commits above it may have lost actions.
    """
    assert newer.value is not None
    first, last = compared.file.version, newer.file.version
    if name in LISTED_KINDS:
        return not survey.totals.has({LISTED_KINDS[name]}, first, last)
    numbers = newer.value["numFiles"], newer.value["tableSizeBytes"]
    return compared.counts is not None and survey.totals.before(first, last, numbers) == compared.counts


def _quiet(step: str, done: int, total: int) -> None:
    pass
