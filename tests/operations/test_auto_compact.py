"""Small files that are joined right after a commit: when, which ones, and that it never fails the write."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable, PostCommitHookProperties, write_deltalake
from delta_core.errors import CommitConflictError, InvalidArgumentError
from tests.operations.row_tables import FEED, ROW_IDS, VECTORS, row_ids, rows_of, table_of

AUTO = {"delta.autoOptimize.autoCompact": "true"}
FEW = PostCommitHookProperties(auto_compact_min_files=4)


def append(uri: str, *ids: int, part: str = "a", post: Any = FEW, **properties: str) -> None:
    write_deltalake(
        uri,
        table_of([(i, part, None) for i in ids]),
        mode="append",
        partition_by=["p"],
        configuration=properties,
        post_commithook_properties=post,
    )


def operations(uri: str) -> list[str]:
    return [h["operation"] for h in DeltaTable(uri).history()][::-1]


@pytest.mark.parametrize("properties", [{}, FEED, {**VECTORS, **ROW_IDS}], ids=str)
def test_partition_with_enough_small_files_is_compacted(tmp_path: Path, properties: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    for i in range(4):
        append(uri, i, part="b", post=None, **AUTO, **properties)
    for i in range(3):
        append(uri, 10 + i, **AUTO, **properties)
    before = row_ids(DeltaTable(uri)) if "delta.enableRowTracking" in properties else {}
    assert len(DeltaTable(uri).file_uris()) == 7
    append(uri, 13)
    table = DeltaTable(uri)
    # the other partition was not written to
    assert len(table.file_uris([("p", "=", "a")])) == 1
    assert len(table.file_uris([("p", "=", "b")])) == 4
    assert operations(uri)[-2:] == ["WRITE", "OPTIMIZE"]
    last = table.history(1)[0]
    assert str(last["operationParameters"]["auto"]).lower() == "true"
    assert [r[0] for r in rows_of(table.to_pyarrow_table())] == [0, 1, 10, 11, 12, 13, 2, 3]
    if before:
        assert before.items() <= row_ids(table).items()
    if properties is FEED:
        assert table.changes(table.version()).to_table().num_rows == 0


def test_table_without_the_property_is_compacted_on_request_only(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for i in range(6):
        append(uri, i)
    assert "OPTIMIZE" not in operations(uri)
    table = DeltaTable(uri)
    post = PostCommitHookProperties(auto_compact=True, auto_compact_min_files=2)
    write_deltalake(table, table_of([(9, "a", None)]), mode="append", post_commithook_properties=post)
    assert operations(uri)[-1] == "OPTIMIZE"
    assert table.version() == 7
    assert len(table.file_uris()) == 1


def test_request_goes_before_the_property(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    post = PostCommitHookProperties(auto_compact=False, auto_compact_min_files=2)
    for i in range(4):
        append(uri, i, post=post, **AUTO)
    assert "OPTIMIZE" not in operations(uri)


def test_large_files_count_and_move_not(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    size = 1
    for i in range(5):
        append(uri, i, post=PostCommitHookProperties(auto_compact_min_files=2, auto_compact_max_file_size=size), **AUTO)
    assert "OPTIMIZE" not in operations(uri)


@pytest.mark.parametrize("change", ["delete", "update", "merge", "nothing"])
def test_changes_of_rows_are_followed_by_it_if_they_committed(tmp_path: Path, change: str) -> None:
    uri = str(tmp_path / "t")
    for i in range(4):
        append(uri, i, i + 10, post=None, **AUTO)
    table = DeltaTable(uri)
    if change == "delete":
        table.delete("id = 1", post_commithook_properties=FEW)
    elif change == "update":
        table.update({"x": "1.0"}, predicate="id = 1", post_commithook_properties=FEW)
    elif change == "merge":
        merge = table.merge(table_of([(1, "a", 2.0)]), "target.id = source.id", post_commithook_properties=FEW)
        merge.when_matched_update_all().execute()
    else:
        table.delete("id = 77", post_commithook_properties=FEW)
    assert (operations(uri)[-1] == "OPTIMIZE") == (change != "nothing")
    assert table.version() == DeltaTable(uri).version()


def test_compaction_that_fails_does_not_fail_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    uri = str(tmp_path / "t")
    for i in range(3):
        append(uri, i, post=None, **AUTO)

    def conflict(*_: Any) -> Any:
        raise CommitConflictError("another writer was faster")

    monkeypatch.setattr("delta_core.operations.compact_parts.optimize_table", conflict)
    with caplog.at_level(logging.WARNING):
        append(uri, 3)
    assert "another writer was faster" in caplog.text
    assert len(DeltaTable(uri).file_uris()) == 4


def test_numbers_that_are_none_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="auto_compact_min_files=0"):
        PostCommitHookProperties(auto_compact_min_files=0).check()
