"""Log compaction: the state is the same with the file instead of its commits, and no tombstone is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import CommitProperties, DeltaTable, Transaction, write_deltalake
from delta_core.errors import InvalidArgumentError, VersionNotFoundError
from delta_core.kernel.snapshot import Snapshot
from tests.operations.row_tables import TABLES, rows_of, table_of

DOMAIN = {"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}}
REMOVED = {"domainMetadata": {"domain": "d", "configuration": "", "removed": True}}
ROWS = [(i, "ab"[i % 2], i / 2) for i in range(10)]


def state(snapshot: Snapshot) -> Any:
    files = snapshot.files.columns(["path", "dvId", "size", "stats"]).to_pylist()
    gone = snapshot.tombstones(["deletionTimestamp"]).to_pylist()
    texts = [snapshot.metadata, snapshot.protocol, snapshot.domains(), snapshot.transactions()]
    return sorted(map(str, files)), sorted(map(str, gone)), texts


_STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "delete", "overwrite", "alter"]), st.integers(2, 5)), min_size=1, max_size=6
)


@pytest.mark.parametrize("kind", ["plain", "vectors, feed, row ids", "vectors, mapping"])
@settings(max_examples=5, deadline=None)
@given(steps=_STEPS, span=st.tuples(st.integers(0, 5), st.integers(1, 6)))
def test_state_is_the_same_without_the_commits(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[tuple[str, int]], span: tuple[int, int]
) -> None:
    root = tmp_path_factory.mktemp("model") / "t"
    write_deltalake(root, table_of(ROWS), configuration=TABLES[kind], partition_by=["p"])
    table = DeltaTable(root)
    for step, number in steps:
        if step == "append":
            once = CommitProperties(app_transactions=[Transaction("job", number)])
            write_deltalake(table, table_of([(number, "c", None)]), mode="append", commit_properties=once)
        elif step == "delete":
            table.delete(f"id % {number} = 1")
        elif step == "overwrite":
            write_deltalake(table, table_of(ROWS[:number]), mode="overwrite")
        else:
            table.alter.set_table_properties({"n": str(number)}, raise_if_not_exists=False)
    latest = table.version()
    if latest == 0:
        return
    start = min(span[0], latest - 1)
    end = min(start + span[1], latest)
    expected = state(DeltaTable(root).snapshot())
    table.compact_logs(start, end)
    log = root / "_delta_log"
    for version in range(start, end):
        (log / f"{version:020d}.json").unlink()
        (log / f"{version:020d}.crc").unlink(missing_ok=True)
    assert state(DeltaTable(root).snapshot()) == expected


def lines_of(root: Path, start: int, end: int) -> list[dict[str, Any]]:
    text = (root / "_delta_log" / f"{start:020d}.{end:020d}.compacted.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def commit(root: Path, version: int, text: str) -> None:
    (root / "_delta_log" / f"{version:020d}.json").write_text(text)


def test_each_key_is_there_once_with_its_newest_action_as_it_was_written(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.feature.domainMetadata": "supported"})
    (tmp_path / "_delta_log" / f"{0:020d}.crc").unlink(missing_ok=True)
    remove = {"path": "gone", "deletionTimestamp": 1, "dataChange": True, "unknownField": {"x": [1.0]}}
    actions: list[list[dict[str, Any]]] = [
        [{"txn": {"appId": "a", "version": 1}}, {"remove": remove}, DOMAIN],
        [
            {"txn": {"appId": "a", "version": 2}},
            {"txn": {"appId": "b", "version": 1}},
            {"commitInfo": {"operation": "X"}},
        ],
        [REMOVED, {"cdc": {"path": "c", "partitionValues": {}, "size": 1}}],
    ]
    for version, lines in enumerate(actions, 1):
        commit(tmp_path, version, "\n".join(map(json.dumps, lines)))
    DeltaTable(tmp_path).compact_logs(1, 3)
    assert lines_of(tmp_path, 1, 3) == [actions[0][1], actions[1][0], actions[1][1], actions[2][0]]


def test_actions_that_are_not_one_a_line_become_so(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    (tmp_path / "_delta_log" / f"{0:020d}.crc").unlink(missing_ok=True)
    action = {"txn": {"appId": "a\nb", "version": 1}}
    commit(tmp_path, 1, json.dumps(action, indent=2))
    commit(tmp_path, 2, '\n{"txn": {"appId": "c", "version": 2}}\r\n\n')
    DeltaTable(tmp_path).compact_logs(1, 2)
    assert lines_of(tmp_path, 1, 2) == [action, {"txn": {"appId": "c", "version": 2}}]


def test_range_that_can_not_be_compacted_is_rejected(tmp_path: Path) -> None:
    for _ in range(4):
        write_deltalake(tmp_path, pa.table({"id": [1]}), mode="append")
    table = DeltaTable(tmp_path)
    for start, end in [(1, 1), (2, 1), (-1, 2), (True, 2), (0, "2")]:
        with pytest.raises(InvalidArgumentError):
            table.compact_logs(start, end)  # type: ignore[arg-type]
    with pytest.raises(VersionNotFoundError, match="version 4"):
        table.compact_logs(2, 9)
    table.create_checkpoint()
    (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="version 1"):
        table.compact_logs(0, 2)


def test_rows_are_read_without_the_commits_on_a_copy(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", table_of(ROWS))
    DeltaTable(tmp_path / "t").delete("id < 3")
    DeltaTable(tmp_path / "t").compact_logs(0, 1)
    shutil.copytree(tmp_path / "t", tmp_path / "u")
    (tmp_path / "u/_delta_log" / f"{0:020d}.json").unlink()
    assert rows_of(DeltaTable(tmp_path / "u").to_pyarrow_table()) == rows_of(table_of(ROWS[3:]))
