"""What commits add up to: newest first, by path and vector, whatever else is in the log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from uuid import uuid4

import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.errors import EngineError, InvalidArgumentError, LogError, TableNotFoundError, VersionNotFoundError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])


def read(table: TableBuilder, version: int | None = None) -> None:
    assert_same_rows(open_snapshot(table.uri, version).scan().to_table(), table.expected(version))


def test_remove_hides_add_of_older_commit(table: TableBuilder) -> None:
    table.append({"id": [1]}).append({"id": [2]}).remove(table.paths()[0])
    read(table)
    read(table, 2)


def test_add_after_remove_provides_the_file_back(table: TableBuilder) -> None:
    table.append({"id": [1]})
    add = {"add": dict(next(iter(table.state.files.values())))}
    table.remove().commit(add)
    read(table)
    read(table, 2)


def test_add_again_replaces_statistics_and_tags(table: TableBuilder) -> None:
    table.append({"id": [1, 2]}, statistics=False)
    add = dict(next(iter(table.state.files.values())))
    table.commit({"add": {**add, "stats": '{"numRecords":2}', "tags": {"k": "v"}, "dataChange": False}})
    files = open_snapshot(table.uri).files.columns(["path", "stats", "tags"]).to_pylist()
    assert [(f["stats"], f["tags"]) for f in files] == [('{"numRecords":2}', [("k", "v")])]
    read(table)


def test_remove_without_the_old_vector_leaves_the_file_live(table: TableBuilder) -> None:
    table.append({"id": range(5)}).delete_rows(lambda row: row["id"] == 2)
    (path,) = table.paths()
    table.commit({"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}})
    read(table)
    assert open_snapshot(table.uri).files.count == 1


def test_one_commit_may_remove_and_add_a_path_with_another_vector(table: TableBuilder) -> None:
    table.append({"id": range(9)}).delete_rows(lambda row: row["id"] == 2).delete_rows(lambda row: row["id"] > 6)
    read(table)
    read(table, 2)
    assert open_snapshot(table.uri).files.count == 1


@pytest.mark.parametrize("add_first", [True, False])
def test_order_within_a_commit_does_not_matter_for_a_changed_vector(table: TableBuilder, add_first: bool) -> None:
    table.append({"id": range(9)})
    (path,) = table.paths()
    actions = table.vector_actions({path: [1, 2]})
    table.commit(*(actions[::-1] if add_first else actions))
    read(table)


def test_unknown_actions_and_fields_are_passed_over(table: TableBuilder) -> None:
    add = table.add_actions({"id": [1]}, futureField={"deep": [1, {"x": None}]})
    table.commit({"futureAction": {"a": [[]], "b": '}"{'}}, *add, {"another": None}, {"third": 3})
    read(table)


def test_latest_protocol_and_metadata_win(table: TableBuilder) -> None:
    table.append({"id": [1]}).alter({"id": "long", "more": "string"}, properties={"p": "1"})
    table.append([{"id": 2, "more": "x"}])
    read(table)
    assert open_snapshot(table.uri, 1).schema.names == ["id"]
    assert open_snapshot(table.uri).metadata.configuration == {"p": "1"}


def test_actions_spread_over_lines_are_read(table: TableBuilder) -> None:
    (add,) = table.add_actions({"id": [1, 2]})
    table.commit(
        add, text=json.dumps({"commitInfo": {"operation": "X"}}, indent=2) + "\n\n" + json.dumps(add, indent=4)
    )
    read(table)


@pytest.mark.parametrize("between", ["\r\n", "\n\n", "  \n\t", ""])
def test_white_space_between_actions_means_nothing(table: TableBuilder, between: str) -> None:
    first, second = table.add_actions({"id": [1]}), table.add_actions({"id": [2]})
    text = between.join(json.dumps(a) for a in (*first, *second)) + between
    table.commit(*first, *second, text=text)
    read(table)


def test_last_line_without_line_feed_is_read(table: TableBuilder) -> None:
    actions = table.add_actions({"id": [1]})
    table.commit(*actions, text="\n".join(map(json.dumps, actions)))
    read(table)


def test_empty_commit_is_a_version(table: TableBuilder) -> None:
    table.append({"id": [1]}).commit(text="")
    assert open_snapshot(table.uri).version == 2
    read(table)


def test_broken_json_is_rejected_with_file_and_place(table: TableBuilder) -> None:
    table.append({"id": [1]}).write_log(f"{2:020d}.json", '{"add":{"path":"x"\n')
    with pytest.raises(LogError, match=f"{2:020d}.json"):
        open_snapshot(table.uri).scan().to_table()


def test_gap_between_commits_is_rejected_with_the_missing_version(table: TableBuilder) -> None:
    table.append({"id": [1]}).append({"id": [2]}).append({"id": [3]}).drop(f"_delta_log/{2:020d}.json")
    with pytest.raises(LogError) as caught:
        open_snapshot(table.uri)
    assert caught.value.version == 2
    read(table, 1)


def test_gap_above_a_checkpoint_is_rejected(table: TableBuilder) -> None:
    table.append({"id": [1]}).checkpoint().append({"id": [2]}).append({"id": [3]}).drop(f"_delta_log/{2:020d}.json")
    with pytest.raises(LogError):
        open_snapshot(table.uri)


def test_commit_at_the_checkpoint_may_be_gone(table: TableBuilder) -> None:
    table.append({"id": [1]}).append({"id": [2]}).checkpoint().append({"id": [3]}).cleanup_before(3)
    table.checkpoint(version=2)
    read(table)
    read(table, 2)
    with pytest.raises(VersionNotFoundError):
        open_snapshot(table.uri, 1)


def test_version_above_the_latest_is_not_found(table: TableBuilder) -> None:
    with pytest.raises(VersionNotFoundError) as caught:
        open_snapshot(table.uri, 5)
    assert caught.value.version == 5


@pytest.mark.parametrize("layout", ["nothing", "no log", "empty log", "other files"])
def test_directory_without_commits_is_no_table(tmp_path: Path, layout: str) -> None:
    place = tmp_path / "t"
    if layout != "nothing":
        place.mkdir()
    if layout in ("empty log", "other files"):
        (place / "_delta_log").mkdir()
    if layout == "other files":
        (place / "_delta_log" / "00000000000000000000.crc").write_text("{}")
        (place / "_delta_log" / "0.json").write_text("{}")
    with pytest.raises(TableNotFoundError):
        open_snapshot(place)


def test_strange_names_in_the_log_are_passed_over(table: TableBuilder) -> None:
    table.append({"id": [1]})
    for name in ("_commits/x.json", ".tmp.json", f"{9:020d}.json.tmp", "99.json", f"{9:020d}.crc.tmp", "notes.txt"):
        table.write_log(name, "garbage")
    assert open_snapshot(table.uri).version == 1
    read(table)


def test_paths_are_percent_decoded_once(table: TableBuilder) -> None:
    names = ["a b.parquet", "a%20b.parquet", "a+b.parquet", "ü/ñ.parquet", "x=1%2F2/f.parquet", "#?.parquet"]
    for number, path in enumerate(names):
        table.commit(*table.add_actions({"id": [number]}, path=path))
    read(table)


def test_reserved_characters_may_stay_unencoded_or_be_encoded(table: TableBuilder) -> None:
    (plain,) = table.add_actions({"id": [1]}, path="k=a:b/f+1.parquet")
    table.commit({"add": {**plain["add"], "path": "k%3Da%3Ab/f%2b1.parquet"}})
    assert open_snapshot(table.uri).scan().to_table().to_pylist() == [{"id": 1}]


def test_keys_ignore_the_case_of_percent_escapes(table: TableBuilder) -> None:
    (add,) = table.add_actions({"id": [1]}, path="a b%.parquet")
    table.commit(add, {"add": {**table.add_actions({"id": [2]}, path="x=ü.parquet")[0]["add"]}})
    upper = next(path for path in table.paths() if "%C3%BC" in path)
    table.commit({"remove": {"path": upper.replace("%C3%BC", "%c3%bc"), "deletionTimestamp": 1, "dataChange": True}})
    assert open_snapshot(table.uri).scan().to_table().to_pylist() == [{"id": 1}]


@pytest.mark.parametrize("form", ["file:///", "file:/", "file://localhost/", "FILE://LocalHost/", "path"])
def test_absolute_paths_are_used_as_they_are(table: TableBuilder, tmp_path: Path, form: str) -> None:
    other = TableBuilder(tmp_path / "other place").create({"id": "long"}).append({"id": [7]})
    (add,) = other.state.files.values()
    absolute = f"{other.uri}/{add['path']}"
    text = ("" if form == "path" else form.removesuffix("/")) + absolute.replace(" ", "%20")
    table.append({"id": [1]}).commit({"add": {**add, "path": text}})
    assert sorted(open_snapshot(table.uri).scan().to_table().column("id").to_pylist()) == [1, 7]


def test_file_of_another_host_is_rejected(table: TableBuilder, tmp_path: Path) -> None:
    """No path below the root of this machine: ``/elsewhere/...`` would be another file."""
    (add,) = table.add_actions({"id": [1]})
    text = f"file://elsewhere{tmp_path}/t/{add['add']['path']}"
    table.commit({"add": {**add["add"], "path": text}})
    with pytest.raises(EngineError, match="lies on the host 'elsewhere'"):
        open_snapshot(table.uri).scan().to_table()


def test_relative_and_path_like_places_open_too(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append({"id": [1]})
    monkeypatch.chdir(Path(table.uri).parent)
    for place in (Path("t"), "t", "t/", f"file://{table.uri}", f"file://localhost{table.uri}", "./t"):
        assert open_snapshot(place).scan().to_table().num_rows == 1
    with pytest.raises(InvalidArgumentError, match="names a file of the host 'elsewhere'"):
        open_snapshot(f"file://elsewhere{table.uri}")


def test_transactions_and_domains_reconcile_by_key(table: TableBuilder) -> None:
    table.commit({"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "b", "version": 5}})
    table.checkpoint().commit({"txn": {"appId": "a", "version": 2, "lastUpdated": 77}})
    table.commit({"domainMetadata": {"domain": "d", "configuration": {"k": "v"}, "removed": False}})
    snapshot = open_snapshot(table.uri)
    assert {k: (t.version, t.last_updated) for k, t in snapshot.transactions().items()} == {
        "a": (2, 77),
        "b": (5, None),
    }
    assert json.loads(snapshot.domains()["d"]) == {"k": "v"}


def test_protocol_named_by_old_examples_is_rejected(table: TableBuilder) -> None:
    """Examples in the protocol's text print readerVersion; real logs hold minReaderVersion."""
    table.commit({"protocol": {"readerVersion": 1, "writerVersion": 2}})
    with pytest.raises(LogError, match="minReaderVersion"):
        open_snapshot(table.uri)


@pytest.mark.parametrize("storage", ["u", "p", "i"])
def test_table_of_any_file_system_is_read(storage: str) -> None:
    place = f"memory://replay-{storage}"
    table = TableBuilder(place).create({"id": "long", "p": "string"}, partition_by=["p"], features=["deletionVectors"])
    table.append([{"id": i, "p": "a b%"[i % 4 :]} for i in range(20)]).checkpoint("v1-multipart")
    table.delete_rows(lambda row: row["id"] % 3 == 0, storage=storage)
    read(table)
    assert open_snapshot(place).scan(predicate="id > 17").to_table().num_rows == 1


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_stray_file_named_as_a_staged_commit_is_no_commit(tmp_path: Path, version: int, has_checkpoint: bool) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}]).append([{"id": 2}])
    if has_checkpoint:
        table.checkpoint("v1")
    opened = open_snapshot(tmp_path)
    action = {"add": {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}
    table.write_log(f"{version:020d}.{uuid4()}.json", json.dumps(action).encode())
    for snapshot in (open_snapshot(tmp_path), opened.update(), open_snapshot(tmp_path, 2)):
        assert snapshot.version == 2
        assert snapshot.files.count == 2
        assert len(snapshot.history()) == 3
    with pytest.raises(VersionNotFoundError):
        open_snapshot(tmp_path, 3)


@pytest.mark.parametrize("gone", [[], [0, 1, 2], [9, 10, 11], [0, 1, 10, 11], [5], range(1, 12), range(11)])
@pytest.mark.parametrize("statistics", ["json", "struct"])
def test_files_below_a_checkpoint_are_the_same_whichever_are_removed(
    tmp_path: Path, gone: Sequence[int], statistics: Literal["json", "struct"]
) -> None:
    table = TableBuilder(tmp_path).create(
        {"id": "long", "kind": "string"}, partition_by=["kind"], features=["deletionVectors"]
    )
    table.append([{"id": i, "kind": "abcdefghijkl"[i]} for i in range(12)] * 3)
    table.delete_rows(lambda row: row["id"] in (2, 7) and row["kind"] > "b")
    table.checkpoint(statistics=statistics)
    files = table.paths()
    for number in gone:
        table.remove(files[number])
    read(table)
    of_commits = TableBuilder(tmp_path / "other").create(
        {"id": "long", "kind": "string"}, partition_by=["kind"], features=["deletionVectors"]
    )
    of_commits.commit(*({"add": dict(add)} for add in table.state.files.values()))
    found, expected = (DeltaTable(t.uri) for t in (table, of_commits))
    for flatten in (False, True):
        rows = [pa.table(t.get_add_actions(flatten=flatten)).sort_by("path") for t in (found, expected)]
        assert rows[0].equals(rows[1])
    chosen = [
        t.scan().files().drop_columns(["version", "dataChange"]).sort_by("path").to_pylist() for t in (found, expected)
    ]
    assert chosen[0] == chosen[1]
    assert sorted(map(str, found.partitions())) == sorted(map(str, expected.partitions()))
    assert len(found.file_uris()) == 12 - len(gone)
