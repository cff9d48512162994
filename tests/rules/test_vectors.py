"""Deletion vectors from the log to the rows: where they lie, what they drop, and what breaks them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from delta_core.engines.records import RangeRequest
from delta_core.errors import CorruptTableError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from delta_core.testing.vector_bytes import decode_z85, encode_vector, encode_vector_file, encode_z85, vector_path

#: 44 bytes that drop the rows 3, 4, 7, 11, 18 and 29.
KNOWN = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"]).append({"id": range(40)})


def ids(table: TableBuilder) -> list[int]:
    return sorted(open_snapshot(table.uri).scan().to_table().column("id").to_pylist())


def with_descriptor(table: TableBuilder, **descriptor: object) -> TableBuilder:
    (add,) = table.state.files.values()
    stats = json.dumps({**json.loads(add["stats"]), "tightBounds": False})
    return table.commit(*table.remove_actions(), {"add": {**add, "stats": stats, "deletionVector": descriptor}})


def broken(table: TableBuilder, data: bytes, **descriptor: object) -> None:
    text, path = vector_path(uuid.UUID(int=1))
    table.write(path, data)
    place = {"storageType": "u", "pathOrInlineDv": text, "offset": 1, "sizeInBytes": 44, "cardinality": 6, **descriptor}
    with_descriptor(table, **{k: v for k, v in place.items() if v is not None})
    with pytest.raises(CorruptTableError) as caught:
        ids(table)
    assert "deletion_vector_00000000" in str(caught.value)


GOOD, (AT,) = encode_vector_file([encode_vector([3, 4, 7, 11, 18, 29])])
LEFT = [i for i in range(40) if i not in (3, 4, 7, 11, 18, 29)]


@pytest.mark.parametrize("prefix", ["", "ab", "deep/er"])
def test_relative_vector_lies_under_the_root_even_for_a_partitioned_table(tmp_path: Path, prefix: str) -> None:
    table = TableBuilder(tmp_path).create(
        {"id": "long", "p": "string"}, partition_by=["p"], features=["deletionVectors"]
    )
    table.append([{"id": i, "p": "xy"[i % 2]} for i in range(20)])
    table.delete_rows(lambda row: row["id"] % 3 == 0, prefix=prefix)
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())


@pytest.mark.parametrize("runs", [False, True], ids=["arrays and bitmaps", "runs"])
@pytest.mark.parametrize("storage", ["u", "p", "i"])
def test_each_storage_drops_the_same_rows(tmp_path: Path, storage: str, runs: bool) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"])
    table.append({"id": range(20_000)}, files=3)
    table.delete_rows(lambda row: row["id"] % 2 == 0, storage=storage, runs=runs)
    table.delete_rows(lambda row: row["id"] > 15_000, storage=storage, runs=runs)
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())


def test_known_inline_text_drops_its_rows(table: TableBuilder) -> None:
    with_descriptor(table, storageType="i", pathOrInlineDv=KNOWN, sizeInBytes=44, cardinality=6)
    assert ids(table) == LEFT


def test_obsolete_inline_example_of_the_protocol_is_rejected(table: TableBuilder) -> None:
    """Its header is big-endian with another magic number: no writer uses it."""
    old = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    with_descriptor(table, storageType="i", pathOrInlineDv=old, sizeInBytes=40, cardinality=6)
    with pytest.raises(CorruptTableError):
        ids(table)


def test_inline_text_is_cut_to_its_size(table: TableBuilder) -> None:
    payload = encode_vector([1], runs=True)
    text = encode_z85(payload)
    assert len(decode_z85(text)) > len(payload)
    with_descriptor(table, storageType="i", pathOrInlineDv=text, sizeInBytes=len(payload), cardinality=1)
    assert ids(table) == [0, *range(2, 40)]


@pytest.mark.parametrize("offset", [None, 0, 1])
def test_absent_and_zero_offset_mean_the_first_vector(table: TableBuilder, offset: int | None) -> None:
    text, path = vector_path(uuid.UUID(int=1))
    place = {} if offset is None else {"offset": offset}
    table.write(path, GOOD)
    with_descriptor(table, storageType="u", pathOrInlineDv=text, **place, sizeInBytes=44, cardinality=6)
    assert ids(table) == LEFT


def test_wrong_checksum_is_rejected(table: TableBuilder) -> None:
    broken(table, GOOD[:-1] + bytes([GOOD[-1] ^ 1]))


def test_changed_payload_is_rejected(table: TableBuilder) -> None:
    broken(table, GOOD[:40] + bytes([GOOD[40] ^ 4]) + GOOD[41:])


@pytest.mark.parametrize("length", [0, 1, 5, 20, len(GOOD) - 1])
def test_torn_vector_file_is_rejected(table: TableBuilder, length: int) -> None:
    broken(table, GOOD[:length])


def test_size_that_differs_from_the_files_is_rejected(table: TableBuilder) -> None:
    broken(table, GOOD, sizeInBytes=40)


def test_cardinality_that_differs_from_the_vectors_is_rejected(table: TableBuilder) -> None:
    broken(table, GOOD, cardinality=7)


@pytest.mark.parametrize("offset", [2, 30, 49, 5000, 2**31 - 1])
def test_offset_that_points_at_no_vector_is_rejected(table: TableBuilder, offset: int) -> None:
    broken(table, GOOD, offset=offset)


def test_row_beyond_the_end_of_the_file_is_never_another_row(table: TableBuilder) -> None:
    payload = encode_vector([5, 1000])
    with_descriptor(table, storageType="i", pathOrInlineDv=encode_z85(payload), sizeInBytes=len(payload), cardinality=2)
    with pytest.raises(CorruptTableError, match=r"holds row 1000, but the file has 40 rows"):
        ids(table)


def test_unknown_storage_type_is_rejected(table: TableBuilder) -> None:
    with_descriptor(table, storageType="z", pathOrInlineDv="x", sizeInBytes=1, cardinality=1)
    with pytest.raises(CorruptTableError, match="storage type is none of u, p and i"):
        ids(table)


def test_missing_vector_file_is_rejected_by_name(table: TableBuilder) -> None:
    table.delete_rows(lambda row: row["id"] == 1)
    (path,) = Path(table.uri).glob("deletion_vector_*.bin")
    path.unlink()
    with pytest.raises(CorruptTableError, match=path.name) as caught:
        ids(table)
    assert isinstance(caught.value, FileNotFoundError)


def test_vectors_hold_though_the_property_forbids_new_ones(table: TableBuilder) -> None:
    table.delete_rows(lambda row: row["id"] < 10).alter(properties={"delta.enableDeletionVectors": "false"})
    assert ids(table) == list(range(10, 40))


def test_file_with_every_row_dropped_returns_none(table: TableBuilder) -> None:
    table.delete_rows(lambda row: True)
    assert ids(table) == []
    assert open_snapshot(table.uri).scan().count() == 0


def test_vector_ids_are_type_path_and_offset(table: TableBuilder) -> None:
    table.append({"id": range(40, 50)}).delete_rows(lambda row: row["id"] % 2 == 0)
    found = open_snapshot(table.uri).files.columns(["path", "dvId"]).to_pylist()
    assert sorted((f["path"], f["dvId"]) for f in found) == sorted(table.state.files)
    assert min(int(f["dvId"].rpartition("@")[2]) for f in found) == 1


def test_positions_stay_physical_when_row_groups_are_skipped(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"])
    table.append({"id": range(1000)}, parquet={"row_group_size": 100}, statistics=False)
    table.delete_rows(lambda row: row["id"] % 10 == 3)
    scan = open_snapshot(tmp_path).scan(metadata=("_file_row_index",), predicate="id between 540 and 760")
    found = sorted(scan.to_table().to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in found] == [i for i in range(540, 761) if i % 10 != 3]
    assert all(row["_file_row_index"] == row["id"] for row in found)


def test_filter_and_limit_see_no_dropped_row(table: TableBuilder) -> None:
    table.delete_rows(lambda row: row["id"] < 35)
    snapshot = open_snapshot(table.uri)
    assert snapshot.scan(predicate="id < 36").to_table().column("id").to_pylist() == [35]
    assert min(snapshot.scan(limit=3).to_table().column("id").to_pylist()) >= 35
    assert snapshot.scan().count() == 5


def test_counts_of_nulls_of_wide_statistics_prune_nothing(tmp_path: Path) -> None:
    """With wide bounds a null count other than 0 or all rows may be out of date."""
    table = TableBuilder(tmp_path).create({"id": "long", "x": "long"}, features=["deletionVectors"])
    table.append([{"id": i, "x": None if i == 1 else i} for i in range(4)], statistics={"nullCount": {"id": 0, "x": 3}})
    table.delete_rows(lambda row: row["id"] == 0)
    snapshot = open_snapshot(tmp_path)
    assert snapshot.scan(predicate="x is null").to_table().num_rows == 1
    assert snapshot.scan(predicate="x is not null").to_table().num_rows == 2


def test_count_is_of_rows_not_of_records(table: TableBuilder) -> None:
    table.append({"id": [100]}, statistics=False).delete_rows(lambda row: row["id"] < 7)
    assert open_snapshot(table.uri).scan().count() == 34
    assert open_snapshot(table.uri).scan(predicate="id >= 100").count() == 1


def test_vectors_of_one_file_are_read_by_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = (
        TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"]).append({"id": range(400)}, files=40)
    )
    table.delete_rows(lambda row: row["id"] % 7 == 0)
    snapshot = open_snapshot(tmp_path)
    asked: list[list[RangeRequest]] = []
    read = snapshot.engine.storage.read

    def spy(requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        asked.append(list(requests))
        return read(requests)

    monkeypatch.setattr(snapshot.engine.storage, "read", spy)
    assert_same_rows(snapshot.scan().to_table(), table.expected())
    vectors = [requests for requests in asked if any(r.path.endswith(".bin") for r in requests)]
    assert [len(requests) for requests in vectors] == [40]


@pytest.mark.parametrize("keys", [[1, 0], [0, 0], [2**31], [2**32 - 1]], ids=str)
def test_bucket_keys_out_of_order_or_out_of_range_are_rejected(table: TableBuilder, keys: list[int]) -> None:
    one = encode_vector([5])
    payload = one[:4] + len(keys).to_bytes(8, "little")
    for key in keys:
        payload += key.to_bytes(4, "little") + one[16:]
    size = len(payload)
    with_descriptor(table, storageType="i", pathOrInlineDv=encode_z85(payload), sizeInBytes=size, cardinality=len(keys))
    with pytest.raises(CorruptTableError):
        ids(table)
