"""Feature deletionVectors, written: rows dropped by position, in vector files, against writers that drop others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable, QueryBuilder
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from delta_core.errors import (
    ConcurrentDeleteDeleteError,
    InvalidArgumentError,
    TooManyAttemptsError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.intents import READ_FILE, REMOVED_FILE
from delta_core.kernel.commit.transaction import CommitResult, Transaction
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernels.row_set import RowSet
from delta_core.testing.feature_contract import attempt_view, table_state
from delta_plugins.deletion_vectors.logic import decode, is_absolute, locate, vector_paths
from delta_plugins.deletion_vectors.write import check_commit, encode
from tests.plugins.written import append, begin, create, overwrite, rows

ID = [{"name": "id", "type": "long"}]
ON = {"delta.enableDeletionVectors": "true"}
row_sets = st.lists(st.sets(st.integers(0, 1 << 40), min_size=1, max_size=50), min_size=1, max_size=5)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = create(tmp_path / "t", ID, properties=ON)
    append(made, {"id": list(range(10))})
    append(made, {"id": list(range(10, 20))})
    return made


def in_order(files: pa.Table) -> pa.Table:
    """Return files by the least value of their only column: two may share the log's millisecond."""
    least = [min(json.loads(text)["minValues"].values()) for text in files.column("stats").to_pylist()]
    return files.take(sorted(range(len(least)), key=least.__getitem__))


def dropping(uri: str, positions: Sequence[int], file: int = 0, **options: Any) -> Transaction:
    """A transaction that drops rows of the file that was added as number ``file``."""
    transaction = begin(uri, "DELETE", **options)
    assert transaction.base is not None
    files = in_order(transaction.base.files.columns(["path", "stats"]))
    transaction.remove_rows(files.column("path")[file].as_py(), RowSet.from_positions(positions))
    return transaction


def drop(uri: str, positions: Sequence[int], file: int = 0) -> CommitResult:
    return dropping(uri, positions, file).commit()


def vectors_on_disk(uri: str) -> int:
    return len(list(Path(uri).rglob("deletion_vector_*.bin")))


def peer_ids(uri: str) -> list[int]:
    found = QueryBuilder().register("t", PeerTable(uri)).execute("select id from t order by id")
    return pa.table(found).column("id").to_pylist()


# --- bytes ---------------------------------------------------------------------------------


@given(row_sets, st.sampled_from(["", "aB"]), st.sampled_from([0, 40, 65_536]))
def test_encoded_rows_are_found_and_read_again(sets: list[set[int]], prefix: str, inline: int) -> None:
    made = encode([RowSet.from_positions(sorted(s)) for s in sets], prefix, inline)
    files = pa.table({"deletionVector": made.descriptors})
    for place, wanted in zip(locate(files).to_pylist(), sets, strict=True):
        if place["path"] is None:
            data = place["data"]
        else:
            assert place["path"] == made.path
            data = made.data[place["offset"] : place["offset"] + place["length"]]
        assert set(decode(data, len(wanted), "here").positions().tolist()) == wanted


def test_vectors_of_one_commit_share_a_file_that_begins_with_its_version() -> None:
    made = encode([RowSet.from_positions([1]), RowSet.from_positions([2, 3])], "xy")
    assert made.data[0] == 1
    assert made.path is not None
    assert made.path.startswith("xy/deletion_vector_")
    first, second = made.descriptors.to_pylist()
    assert (first["offset"], second["offset"]) == (1, 1 + 8 + first["sizeInBytes"])
    assert vector_paths(made.descriptors).to_pylist() == [made.path] * 2
    assert is_absolute(made.descriptors).to_pylist() == [False, False]


def test_small_vectors_may_lie_in_the_log() -> None:
    made = encode([RowSet.from_positions([1])], "", 65_536)
    assert (made.path, made.data) == (None, b"")
    (descriptor,) = made.descriptors.to_pylist()
    assert (descriptor["storageType"], descriptor["offset"]) == ("i", None)
    assert vector_paths(made.descriptors).to_pylist() == [None]


# --- tables --------------------------------------------------------------------------------


def test_table_with_vectors_names_their_feature_and_no_other(uri: str) -> None:
    protocol = open_snapshot(uri).protocol
    assert protocol.reader_features == ("deletionVectors",)
    assert protocol.writer_features == ("appendOnly", "deletionVectors", "invariants")


def test_dropped_rows_are_gone_here_and_for_a_peer(uri: str) -> None:
    result = drop(uri, [0, 3, 9])
    assert sorted(rows(result.snapshot)) == sorted(rows(uri))
    assert sorted(rows(uri)) == [1, 2, 4, 5, 6, 7, 8, *range(10, 20)]
    assert peer_ids(uri) == sorted(rows(uri))


def test_log_states_what_readers_need_of_a_vector(uri: str) -> None:
    result = drop(uri, [0, 3])
    lines = (Path(uri) / "_delta_log" / f"{result.version:020d}.json").read_text().splitlines()
    actions = {k: v for line in lines for k, v in json.loads(line).items()}
    added, removed = actions["add"], actions["remove"]
    assert added["path"] == removed["path"]
    stats = json.loads(added["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (10, False)
    assert added["deletionVector"]["cardinality"] == 2
    assert "deletionVector" not in removed
    assert set(removed) == {
        "path",
        "dataChange",
        "deletionTimestamp",
        "extendedFileMetadata",
        "partitionValues",
        "size",
    }


def test_second_vector_holds_the_rows_of_the_first_and_the_remove_names_the_first(uri: str) -> None:
    first = drop(uri, [0]).snapshot
    old = first.files.columns(["path", "dvId"]).to_pylist()
    result = drop(uri, [0, 1])
    assert sorted(rows(uri))[:1] == [2]
    lines = (Path(uri) / "_delta_log" / f"{result.version:020d}.json").read_text()
    removed = next(json.loads(line)["remove"] for line in lines.splitlines() if '"remove"' in line)
    vector = removed["deletionVector"]
    assert f"u{vector['pathOrInlineDv']}@{vector['offset']}" in {f["dvId"] for f in old}


def test_file_without_rows_left_is_removed(uri: str) -> None:
    result = drop(uri, list(range(10)))
    assert result.snapshot.files.count == 1
    assert sorted(rows(uri)) == list(range(10, 20))
    assert vectors_on_disk(uri) == 0


def test_rows_that_are_gone_already_change_nothing(uri: str) -> None:
    drop(uri, [4])
    before = rows(uri)
    transaction = dropping(uri, [4])
    transaction.commit()
    assert rows(uri) == before
    assert vectors_on_disk(uri) == 1


def test_position_beyond_the_file_is_rejected_and_nothing_written(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="has 10 rows"):
        drop(uri, [10])
    assert vectors_on_disk(uri) == 0


def test_strange_file_is_rejected(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no live file"):
        begin(uri, "DELETE").remove_rows("gone.parquet", RowSet.from_positions([1]))


@pytest.mark.parametrize(
    ("file", "rows"), [("a.parquet", [1, 2]), ("a.parquet", None), (["a.parquet"], RowSet.from_positions([1]))]
)
def test_rows_as_a_list_are_rejected(uri: str, file: Any, rows: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a path and a RowSet"):
        begin(uri, "DELETE").remove_rows(file, rows)


def test_mapped_table_has_its_vectors_below_random_prefixes(tmp_path: Path) -> None:
    uri = create(tmp_path / "m", ID, properties={**ON, "delta.columnMapping.mode": "name"})
    append(uri, {"id": [1, 2, 3]})
    drop(uri, [1])
    (vector,) = Path(uri).rglob("deletion_vector_*.bin")
    assert len(vector.relative_to(uri).parts[0]) == 2
    assert rows(uri) == [1, 3]


def test_inline_vectors_where_the_table_requires_them(tmp_path: Path) -> None:
    uri = create(tmp_path / "m", ID, properties={**ON, "delta_core.inlineVectorsBelow": "1000"})
    append(uri, {"id": [1, 2, 3]})
    drop(uri, [1])
    assert vectors_on_disk(uri) == 0
    assert rows(uri) == [1, 3]
    with pytest.raises(InvalidArgumentError, match="65536"):
        create(tmp_path / "n", ID, properties={**ON, "delta_core.inlineVectorsBelow": "65537"})


def test_overwrite_removes_files_with_the_vectors_that_they_have(uri: str) -> None:
    drop(uri, [1])
    overwrite(uri, {"id": [7]})
    assert rows(uri) == [7]
    assert open_snapshot(uri).files.count == 1


def test_table_with_vectors_off_takes_no_new_ones_and_keeps_the_old(uri: str) -> None:
    drop(uri, [1])
    transaction = begin(uri, "SET TBLPROPERTIES")
    metadata = transaction.table.metadata
    transaction.set_metadata(replace(metadata, configuration={"delta.enableDeletionVectors": "false"}))
    transaction.commit()
    assert sorted(rows(uri))[:2] == [0, 2]
    with pytest.raises(InvalidArgumentError, match="no feature active that drops rows"):
        drop(uri, [2])


def test_hand_made_adds_with_vectors_are_checked() -> None:
    vector = encode([RowSet.from_positions([1])], "").descriptors
    on = table_state(["deletionVectors"], properties=ON)

    def adds(stats: str | None) -> pa.Table:
        return pa.table({"path": ["f"], "stats": pa.array([stats], pa.string()), "deletionVector": vector})

    for stats, message in ((None, "no numRecords"), ('{"numRecords":3}', "tight bounds")):
        with pytest.raises(InvalidArgumentError, match=message):
            check_commit(attempt_view(on, adds=adds(stats)))
    fine = adds('{"numRecords":3,"tightBounds":false}')
    check_commit(attempt_view(on, adds=fine))
    off = table_state(["deletionVectors"])
    removed = pa.table({"path": ["f"]})
    with pytest.raises(UnsupportedOperationError, match="enableDeletionVectors"):
        check_commit(attempt_view(off, adds=fine, removes=removed))
    # an older version's file comes back as it was
    check_commit(attempt_view(off, adds=fine, removes=REMOVED_FILE.empty_table()))


# --- races ---------------------------------------------------------------------------------


def test_rows_dropped_meanwhile_and_other_rows_dropped_here_are_all_gone(uri: str) -> None:
    slow = dropping(uri, [1, 2])
    drop(uri, [5])
    drop(uri, [8])
    result = slow.commit()
    assert (result.attempts, sorted(rows(uri))[:7]) == (2, [0, 3, 4, 6, 7, 9, 10])
    assert sorted(rows(result.snapshot)) == sorted(rows(uri))
    assert peer_ids(uri) == sorted(rows(uri))


def test_vectors_of_lost_attempts_are_deleted(uri: str) -> None:
    slow = dropping(uri, [1])
    slow_vectors = vectors_on_disk(uri)
    drop(uri, [5])
    slow.commit()
    assert (slow_vectors, vectors_on_disk(uri)) == (0, 2)
    assert slow.abandoned == []


def test_race_over_other_files_writes_the_vectors_once(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = dropping(uri, [1])
    append(uri, {"id": [99]})
    puts: list[str] = []
    storage = slow.context.log.engine.storage
    put = storage.put

    def counting(path: str, data: bytes) -> None:
        puts.append(path)
        put(path, data)

    monkeypatch.setattr(storage, "put", counting)
    assert slow.commit().attempts == 2
    assert len([p for p in puts if p.endswith(".bin")]) == 1


@pytest.mark.parametrize("mine", [[5], [4, 5, 6]])
def test_same_row_dropped_twice_conflicts(uri: str, mine: list[int]) -> None:
    slow = dropping(uri, mine)
    drop(uri, [5])
    with pytest.raises(ConcurrentDeleteDeleteError, match="dropped rows of it that this transaction drops too"):
        slow.commit()
    assert vectors_on_disk(uri) == 1


def test_file_removed_meanwhile_conflicts(uri: str) -> None:
    slow = dropping(uri, [5])
    drop(uri, list(range(10)))
    with pytest.raises(ConcurrentDeleteDeleteError, match="removed the file"):
        slow.commit()


def test_rows_provided_back_meanwhile_conflict(uri: str) -> None:
    drop(uri, [5])
    slow = dropping(uri, [1])
    other = begin(uri, "RESTORE")
    assert other.base is not None
    files = in_order(other.base.files.columns([*READ_FILE])).slice(0, 1)
    changed = pa.array([True])
    place = files.schema.get_field_index("dataChange")
    files = files.set_column(place, "dataChange", changed) if place >= 0 else files.append_column("dataChange", changed)
    other.remove_files(files)
    place = files.schema.get_field_index("deletionVector")
    back = files.set_column(place, "deletionVector", pa.nulls(1, files.schema.field("deletionVector").type))
    other.add_files(back.drop_columns(["dvId"]).append_column("fresh", pa.array([False])))
    other.commit()
    with pytest.raises(ConcurrentDeleteDeleteError, match="restored rows"):
        slow.commit()


def test_file_added_again_with_other_statistics_meanwhile_is_taken_as_it_is_now(uri: str) -> None:
    slow = dropping(uri, [1])
    other = begin(uri, "COMPUTE STATISTICS")
    assert other.base is not None
    file = in_order(other.base.files.columns([*READ_FILE])).slice(0, 1)
    stats = pa.array(['{"numRecords":10,"minValues":{"id":-7}}'])
    file = file.set_column(file.schema.get_field_index("stats"), "stats", stats)
    place = file.schema.get_field_index("dataChange")
    kept = pa.array([False])
    file = file.set_column(place, "dataChange", kept) if place >= 0 else file.append_column("dataChange", kept)
    other.add_files(file.drop_columns(["dvId"]).append_column("fresh", pa.array([False])))
    other.commit()
    result = slow.commit()
    found = [json.loads(s) for s in result.snapshot.files.columns(["stats"]).column("stats").to_pylist()]
    assert {"numRecords": 10, "minValues": {"id": -7}, "tightBounds": False} in found


def test_lost_races_leave_no_vector(uri: str) -> None:
    slow = dropping(uri, [1])
    drop(uri, [5])
    with pytest.raises(TooManyAttemptsError):
        slow.commit(max_retries=0)
    assert vectors_on_disk(uri) == 1


@settings(max_examples=15, deadline=None)
@given(st.sets(st.integers(0, 9), min_size=1), st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=1, max_size=3))
def test_any_schedule_of_drops_ends_as_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, mine: set[int], others: list[set[int]]
) -> None:
    uri = create(tmp_path_factory.mktemp("t") / "t", ID, properties=ON)
    append(uri, {"id": list(range(10))})
    slow = dropping(uri, sorted(mine))
    gone: set[int] = set()
    for other in others:
        if gone < set(range(10)) and other - gone:
            drop(uri, sorted(other - gone))
            gone |= other
    try:
        slow.commit()
    except ConcurrentDeleteDeleteError:
        assert mine & gone or len(gone) == 10
    else:
        assert not mine & gone
        gone |= mine
    assert set(rows(uri)) == set(range(10)) - gone
