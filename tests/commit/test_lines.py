"""What a commit's lines specify: a writer takes it from what it staged; parsing them finds the same."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CommitError, CommitStateUnknownError, InvalidArgumentError
from delta_core.kernel.commit import lines, transaction as committing
from delta_core.kernel.commit.attempt import Attempt, build_attempt
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.commit.lines import CommitLines, as_parsed, format_commit, small_action
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.committer import Committed, Proposal
from delta_core.kernel.snapshot import Snapshot, open_context, open_snapshot
from delta_core.kernels import json_lines
from delta_core.kernels.json_actions import ActionParser
from delta_core.kernels.json_lines import format_lines
from delta_core.kernels.row_set import RowSet
from delta_core.operations.write import WriteOptions, write_table

COLUMNS = ("size", "modificationTime", "dataChange", "dvCardinality")
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.feature.domainMetadata": "supported",
}


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[Attempt]:
    """Every attempt that is built."""
    found: list[Attempt] = []

    def noted(*args: Any) -> Attempt:
        found.append(build_attempt(*args))
        return found[-1]

    monkeypatch.setattr(committing, "build_attempt", noted)
    return found


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": ["a", "b"] * (len(ids) // 2) + ["ü"] * (len(ids) % 2)})


def write(uri: str, *ids: int, **options: Any) -> None:
    snapshot = open_snapshot(uri)
    write_table(snapshot.context, rows(*ids), WriteOptions(**{"mode": "append", **options}), snapshot)


def drop_rows(uri: str) -> None:
    """Drop a row of a file, then another of the same file, so that a vector is replaced."""
    for position in (0, 1):
        snapshot = open_snapshot(uri)
        transaction = Transaction(snapshot.context, snapshot, "DELETE")
        path = min(snapshot.files.columns(["path"]).column("path").to_pylist())
        transaction.remove_rows(path, RowSet.from_positions([position]))
        transaction.commit()


def set_small_things(uri: str) -> None:
    snapshot = open_snapshot(uri)
    transaction = Transaction(snapshot.context, snapshot, "SET TBLPROPERTIES")
    transaction.set_domain("acme.notes", '{"a": "ö"}')
    transaction.set_transaction("job", 3)
    transaction.commit()


WORK: dict[str, Callable[[str], None]] = {
    "append": lambda uri: write(uri, 7, 8),
    "overwrite": lambda uri: write(uri, 7, 8, 9, mode="overwrite"),
    "replace rows": lambda uri: write(uri, 1, mode="overwrite", replace_where="id = 1"),
    "rows dropped": drop_rows,
    "domains and application ids": set_small_things,
    "schema": lambda uri: write(uri, 4, mode="overwrite", schema_mode="overwrite", transactions={"app": 1}),
    "nothing": lambda uri: write(uri, user_metadata="empty"),
}
NEEDS_FEATURES = {"rows dropped", "domains and application ids"}


@pytest.mark.parametrize("partition_by", [(), ("kind",)], ids=["plain", "partitioned"])
@pytest.mark.parametrize(
    ("name", "properties"),
    [
        *(pytest.param(name, {}, id=f"{name}-old") for name in WORK if name not in NEEDS_FEATURES),
        *(pytest.param(name, PROPERTIES, id=f"{name}-features") for name in WORK),
    ],
)
def test_what_was_staged_is_what_a_reader_parses(
    name: str, properties: dict[str, str], partition_by: tuple[str, ...], tmp_path: Path, attempts: list[Attempt]
) -> None:
    uri = str(tmp_path / "t")
    made = WriteOptions(partition_by=partition_by, properties=properties)
    write_table(open_context(uri), rows(1, 2, 3, 4, 5), made)
    attempts.clear()
    WORK[name](uri)
    assert attempts
    for attempt in attempts:
        parser = ActionParser(COLUMNS, skip_kinds={"commitInfo", "cdc"})
        assert isinstance(attempt.lines, bytes)
        parser.feed(attempt.view.version, attempt.lines)
        parsed = parser.finish()
        assert attempt.content is not None
        for kind in ("adds", "removes", "cdcs", "other_actions"):
            staged, found = getattr(attempt.content.actions, kind), getattr(parsed, kind)
            assert staged.schema == found.schema
            assert staged.to_pylist() == found.to_pylist(), kind
    last = attempts[-1]
    assert last.content is not None
    assert last.content.info == next(
        c.info for c in open_snapshot(uri).commits(last.view.version) if c.version == last.view.version
    )


def test_snapshot_after_commits_is_what_a_fresh_open_returns(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    made = write_table(open_context(uri), rows(1, 2, 3, 4), WriteOptions(properties=PROPERTIES))
    assert made is not None
    held: Snapshot = made.snapshot
    assert held.files.count == 1, "so that later files are put on top"
    for options in ({}, {"replace_where": "id = 1", "mode": "overwrite"}, {"transactions": {"app": 1}}):
        result = write_table(held.context, rows(1), WriteOptions(**{"mode": "append", **options}), held)  # type: ignore[arg-type]
        assert result is not None
        held = result.snapshot
    fresh = open_snapshot(uri)
    assert held.version == fresh.version == 3
    assert held.transactions() == fresh.transactions()
    assert held.domains() == fresh.domains()
    columns, by_path = (["path", "dvId", "size", "modificationTime", "stats", "baseRowId"], [("path", "ascending")])
    assert held.files.columns(columns).sort_by(by_path).equals(fresh.files.columns(columns).sort_by(by_path))
    assert held.tombstones().sort_by(by_path).equals(fresh.tombstones().sort_by(by_path))


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits of two files and more are formatted while they are written, in pieces of one line."""
    monkeypatch.setattr(lines, "RUN_ROWS", 1)
    monkeypatch.setattr(json_lines, "RUN_ROWS", 1)


@pytest.mark.usefixtures("in_pieces")
def test_commit_that_is_formatted_while_it_is_written_is_what_a_fresh_open_returns(
    tmp_path: Path, attempts: list[Attempt]
) -> None:
    uri = str(tmp_path / "t")
    made = WriteOptions(partition_by=("kind",), properties=PROPERTIES)
    held = write_table(open_context(uri), rows(1, 2, 3, 4, 5), made).snapshot  # type: ignore[union-attr]
    held = write_table(held.context, rows(6, 7, 8), WriteOptions(mode="overwrite"), held).snapshot  # type: ignore[union-attr]
    assert [type(a.lines) for a in attempts] == [CommitLines, CommitLines]
    commit = Path(uri, "_delta_log", f"{1:020d}.json").read_bytes()
    assert commit == b"".join(attempts[-1].lines)  # type: ignore[arg-type]
    kinds = [next(iter(json.loads(line))) for line in commit.splitlines()]
    view = attempts[-1].view
    assert kinds[0] == "commitInfo"
    assert kinds[-view.removes.num_rows - view.adds.num_rows :] == [
        *["remove"] * view.removes.num_rows,
        *["add"] * view.adds.num_rows,
    ]
    fresh = open_snapshot(uri)
    columns, by_path = (["path", "size", "stats", "baseRowId"], [("path", "ascending")])
    assert held.files.columns(columns).sort_by(by_path).equals(fresh.files.columns(columns).sort_by(by_path))
    assert held.tombstones().sort_by(by_path).equals(fresh.tombstones().sort_by(by_path))
    (own,), (read,) = held.commits(1, 1), fresh.commits(1, 1)
    assert own.info == read.info
    assert own.adds.equals(read.adds)
    assert own.removes.equals(read.removes)


@pytest.mark.usefixtures("in_pieces")
def test_commit_whose_lines_fail_while_it_is_written_leaves_nothing_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    write_table(open_context(uri), rows(1, 2, 3, 4), WriteOptions(partition_by=("kind",)))
    before = sorted(os.listdir(Path(uri, "_delta_log")))
    snapshot = open_snapshot(uri)
    transaction = Transaction(snapshot.context, snapshot, "DELETE")
    transaction.remove_files(snapshot.scan().files())

    def fail(kind: str, files: pa.Table) -> Iterator[bytes]:
        yield next(format_lines(kind, files))
        raise InvalidArgumentError(f"Row 1 of {kind} actions can't be written as JSON")

    with monkeypatch.context() as broken:
        broken.setattr(lines, "format_lines", fail)
        with pytest.raises(InvalidArgumentError, match="Row 1 of remove actions"):
            transaction.commit()
    assert sorted(os.listdir(Path(uri, "_delta_log"))) == before
    assert transaction.commit().version == 1
    assert open_snapshot(uri).files.count == 0


class _FailsAfterwards:
    """A committer whose follow-up raises an error of its own."""

    def __init__(self, inner: StoreCommitter) -> None:
        self._inner = inner

    def commit(self, proposal: Proposal) -> Committed:
        self._inner.commit(proposal)
        raise InvalidArgumentError("the follow-up has an unknown option")


@pytest.mark.parametrize("is_long", [False, True])
def test_commit_whose_committer_fails_afterwards_is_in_doubt(
    tmp_path: Path, is_long: bool, request: pytest.FixtureRequest
) -> None:
    if is_long:
        request.getfixturevalue("in_pieces")
    uri = str(tmp_path / "t")
    write_table(open_context(uri), rows(1, 2, 3, 4), WriteOptions(partition_by=("kind",)))
    snapshot = open_snapshot(uri)
    committer = _FailsAfterwards(StoreCommitter(snapshot.context.log.engine.storage))
    transaction = Transaction(snapshot.context, snapshot, "DELETE", committer=committer)
    transaction.remove_files(snapshot.scan().files())
    with pytest.raises(InvalidArgumentError, match="unknown option"):
        transaction.commit()
    assert transaction.in_doubt  # nothing that it names is deleted
    assert open_snapshot(uri).version == 1


@pytest.mark.usefixtures("in_pieces")
def test_disk_that_is_full_in_the_middle_of_a_commit_leaves_nothing_and_it_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    write_table(open_context(uri), rows(1, 2, 3, 4), WriteOptions(partition_by=("kind",)))
    before = sorted(os.listdir(Path(uri, "_delta_log")))
    snapshot = open_snapshot(uri)
    transaction = Transaction(snapshot.context, snapshot, "DELETE")
    transaction.remove_files(snapshot.scan().files())
    write, written = os.write, list[int]()

    def full(handle: int, data: Any) -> int:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(write(handle, data))
        return written[-1]

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full)
        with pytest.raises(CommitError, match=r"could not be written.*No space left") as caught:
            transaction.commit()
    assert not isinstance(caught.value, CommitStateUnknownError)
    assert sorted(os.listdir(Path(uri, "_delta_log"))) == before
    assert transaction.commit().version == 1
    assert open_snapshot(uri).files.count == 0


def test_file_action_that_was_staged_as_a_small_one_is_left_to_the_parser() -> None:
    nothing = pa.table({"path": pa.array([], pa.string())})
    small = [small_action("commitInfo", {"operation": "WRITE"}), small_action("cdc", {"path": "c"})]
    assert as_parsed(1, small, nothing, nothing) is None
    assert format_commit(small, nothing, nothing, nothing).count(b"\n") == 2
