"""What the builder writes is what an independent reader finds."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.testing.checkpoint_files import hint_checksum
from delta_core.testing.statistics import compute_statistics
from delta_core.testing.table_builder import TableBuilder
from delta_core.testing.vector_bytes import decode_z85, encode_vector, encode_z85, vector_path

pyroaring = pytest.importorskip("pyroaring")
deltalake = pytest.importorskip("deltalake")

NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.struct([("x", pa.string())])))])),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("d", pa.decimal128(10, 2)),
        ("ts", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("f", pa.float64()),
        ("b", pa.binary()),
        ("flag", pa.bool_()),
    ]
)
ROW = {
    "id": 1,
    "s": {"a": 1, "l": [{"x": "q"}, None]},
    "m": [("k", 1)],
    "d": Decimal("1.25"),
    "ts": dt.datetime(2024, 1, 1, 1, 2, 3, 456789, tzinfo=dt.UTC),
    "day": dt.date(1960, 1, 1),
    "f": float("inf"),
    "b": b"x",
    "flag": True,
}


def peer_rows(table: TableBuilder, version: int | None = None) -> list[dict]:
    found = deltalake.DeltaTable(table.uri, version=version)
    reader = deltalake.QueryBuilder().register("t", found).execute("select * from t order by id")
    return pa.table(reader.read_all()).to_pylist()


def builder_rows(table: TableBuilder, version: int | None = None) -> list[dict]:
    return table.expected(version).sort_by("id").to_pylist()


def letters(count: int) -> list[dict]:
    return [{"id": i, "kind": "abc"[i % 3]} for i in range(count)]


@pytest.mark.peer
@pytest.mark.parametrize("mapping", [None, "name", "id"])
def test_peer_reads_nested_rows_and_an_added_column(tmp_path: Path, mapping: str | None) -> None:
    table = TableBuilder(tmp_path).create(NESTED, column_mapping=mapping).append([ROW, {**ROW, "id": 2, "s": None}])
    table.append([{"id": 3}]).alter(pa.schema([*NESTED, ("new", pa.string())])).append([{**ROW, "id": 4, "new": "x"}])
    assert peer_rows(table) == builder_rows(table)
    assert peer_rows(table, 2) == builder_rows(table, 2)


@pytest.mark.peer
@pytest.mark.parametrize("storage", ["u", "p", "i"])
def test_peer_drops_the_rows_of_vectors(tmp_path: Path, storage: str) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"])
    table.append({"id": range(100)}, files=4).delete_rows(lambda row: row["id"] % 7 == 0, storage=storage)
    table.delete_rows(lambda row: row["id"] % 5 == 0, storage=storage, runs=True)
    assert peer_rows(table, 2) == builder_rows(table, 2)
    assert [row["id"] for row in peer_rows(table)] == [i for i in range(100) if i % 7 and i % 5]


@pytest.mark.peer
@pytest.mark.parametrize("statistics", ["json", "struct", "both"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("v1", {}),
        ("v1-multipart", {"parts": 3}),
        ("v2-json", {}),
        ("v2-json", {"sidecars": 2}),
        ("v2-parquet", {}),
        ("v2-parquet", {"sidecars": 2, "embed": True}),
        ("v2-classic", {}),
        ("v2-classic", {"sidecars": 1}),
    ],
)
def test_peer_reads_from_every_kind_of_checkpoint(tmp_path: Path, kind: str, options: dict, statistics: str) -> None:
    features = ["deletionVectors", *(["v2Checkpoint"] if kind.startswith("v2") else [])]
    table = TableBuilder(tmp_path).create({"id": "long", "kind": "string"}, partition_by=["kind"], features=features)
    table.append(letters(20)).delete_rows(lambda row: row["id"] % 5 == 0)
    table.checkpoint(kind, statistics=statistics, **options).append([{"id": 200, "kind": None}]).cleanup_before(2)
    assert peer_rows(table) == builder_rows(table)


@pytest.mark.peer
def test_peer_reads_partition_values_with_special_characters(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long", "kind": "string"}, partition_by=["kind"])
    table.append([{"id": 1, "kind": "a b/c%"}, {"id": 2, "kind": None}, {"id": 3, "kind": "ü=:"}])
    assert peer_rows(table) == builder_rows(table)
    assert table.paths()[0].startswith("kind=a%20b%252Fc%2525/")


def test_rows_follow_versions_and_renamed_columns(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "integer"}, column_mapping="name").append([{"a": 1}])
    field = table.schema.fields[0]
    table.alter({"type": "struct", "fields": [{**json.loads(field.to_json()), "name": "b", "type": "long"}]})
    table.append([{"b": 2**40}])
    assert table.expected().to_pylist() == [{"b": 1}, {"b": 2**40}]
    assert table.expected(1).to_pylist() == [{"a": 1}]
    assert len(table.paths(0)) == 0


def test_memory_file_system_takes_a_table() -> None:
    table = TableBuilder("memory://builder").create({"id": "long"}).append([{"id": 1}]).checkpoint()
    assert table.expected().to_pylist() == [{"id": 1}]


def test_commits_carry_row_ids_and_in_commit_timestamps(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create(
        {"id": "long"},
        features=["rowTracking", "domainMetadata", "inCommitTimestamp"],
        properties={"delta.enableInCommitTimestamps": "true"},
    )
    table.append({"id": range(3)}).append({"id": range(2)})
    assert [add["baseRowId"] for add in table.state.files.values()] == [0, 3]
    assert json.loads(table.state.domains["delta.rowTracking"]["configuration"]) == {"rowIdHighWaterMark": 4}
    first = json.loads(table.bodies[2].splitlines()[0])
    assert first["commitInfo"]["inCommitTimestamp"] == table.timestamp_ms(2)
    assert (tmp_path / f"_delta_log/{2:020d}.json").stat().st_mtime_ns == table.timestamp_ms(2) * 1_000_000


def test_hint_checksum_returns_the_protocols_sample() -> None:
    sample = (
        '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], '
        '{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
    )
    assert hint_checksum(json.loads(sample)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize(
    "rows", [[], [1], [0, 2**33 + 5, 70000], [*range(10000), 2**20], [i << 16 for i in range(9)]], ids=len
)
def test_vectors_decode_by_an_independent_library(rows: list[int], runs: bool) -> None:
    assert list(pyroaring.BitMap64.deserialize(encode_vector(rows, runs)[4:])) == sorted(rows)


def test_vector_text_returns_the_known_examples() -> None:
    found = vector_path(name := uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61"), "ab")
    assert found == ("ab^-aqEH.-t@S}K{vb[*k^", f"ab/deletion_vector_{name}.bin")
    inline = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    assert decode_z85(inline)[:44] == encode_vector([3, 4, 7, 11, 18, 29])
    assert encode_z85(encode_vector([3, 4, 7, 11, 18, 29])) == inline


def test_statistics_are_what_writers_leave_behind() -> None:
    table = pa.table(
        {
            "f": [1.0, float("nan")],
            "t": ["a" * 40, "é" * 40],
            "u": ["x", "z" * 32 + "\U0010ffff"],
            "ts": pa.array([-1, 1500], pa.timestamp("us")),
        }
    )
    found = compute_statistics(table)
    assert found["minValues"]["f"] == found["maxValues"]["f"] == 1.0
    assert found["minValues"]["t"] == "a" * 32
    assert found["maxValues"]["t"] == "é" * 32 + "\U0010ffff"
    assert "u" not in found["maxValues"]
    assert (found["minValues"]["ts"], found["maxValues"]["ts"]) == (
        "1969-12-31T23:59:59.999",
        "1970-01-01T00:00:00.001",
    )
