"""Blobs in structs, in files of each version: written, changed and read by both libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import convert
from delta_core.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.schema import BLOB_VALUES
from tests.lance.blob_datasets import EXTENSION, LIMITS, check_blobs, limited_field

Blobs = list[bytes | None]
VERSIONS = ("2.0", "2.1", "2.2")
LARGE = {"lance-encoding:blob": "true"}
#: Blobs of each kind.
MIXED: Blobs = [b"abc", None, b"", b"p" * 50, b"d" * 500, b"\x00", None, b"last"]


def blob_field(version: str, name: str = "photo", nullable: bool = True) -> pa.Field:
    if version == "2.2":
        return limited_field(name, pa.large_binary(), nullable)
    return pa.field(name, pa.large_binary(), nullable, LARGE)


def structs(version: str, blobs: Blobs, nulls: set[int] = frozenset(), nullable: bool = True) -> pa.Array:  # type: ignore[assignment]
    """Return structs with a blob, a number and a struct with the same blob; those at ``nulls`` are null."""
    array = pa.array(blobs, pa.large_binary())
    inner = pa.StructArray.from_arrays([array], fields=[blob_field(version, "scan")])
    fields = [blob_field(version, nullable=nullable), pa.field("x", pa.int64()), pa.field("in", inner.type)]
    mask = pa.array([i in nulls for i in range(len(blobs))]) if nulls else None
    return pa.StructArray.from_arrays([array, pa.array(range(len(blobs))), inner], fields=fields, mask=mask)


def rows(version: str, first: int, blobs: Blobs, nulls: set[int] = frozenset(), **options: Any) -> pa.Table:  # type: ignore[assignment]
    ids = [*range(first, first + len(blobs))]
    return pa.table({"id": ids, "s": structs(version, blobs, nulls, **options), "text": [f"t{i}" for i in ids]})


def check(where: str, expected: dict[int, bytes | None], inner: dict[int, bytes | None] | None = None) -> None:
    check_blobs(where, expected, "s.photo")
    inner = expected if inner is None else inner
    table = open_dataset(where).to_pyarrow_table(["id", "s"], blobs="bytes").to_pylist()
    assert {r["id"]: None if r["s"] is None else r["s"]["in"]["scan"] for r in table} == inner
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    found = lance.dataset(where).take_blobs("s.in.scan", indices=[*range(len(table))])
    assert [None if f is None else f.readall() for f in found] == [inner[r["id"]] for r in table]


NULLS: dict[str, set[int]] = {
    "no null": set(),
    "first": {0, 1},
    "all but one": {0, 1, 2, 3, 5, 6, 7},
    "all": {*range(8)},
}


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_are_read_back_by_us_and_by_pylance(tmp_path: Path, version: str, nulls: str) -> None:
    where = str(tmp_path / "d")
    table = rows(version, 0, MIXED, NULLS[nulls])
    if version == "2.0" and NULLS[nulls]:
        with pytest.raises(UnsupportedFeatureError, match="structs that are null"):
            write_lance(where, table, file_version=version)
        return
    write_lance(where, table, file_version=version, max_rows_per_file=5)
    check(where, {i: None if i in NULLS[nulls] else b for i, b in enumerate(MIXED)})
    found = open_dataset(where).to_pyarrow_table(["s"]).column("s").to_pylist()
    assert {i for i, v in enumerate(found) if v is None} == NULLS[nulls]


@pytest.mark.parametrize("blobs", [[None] * 4, [b""] * 4, [b"i"] * 4, [b"p" * 50] * 4, [None, None, b"d" * 200, None]])
@pytest.mark.parametrize("version", VERSIONS)
def test_pages_of_one_kind_of_blobs(tmp_path: Path, version: str, blobs: Blobs) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(version, 0, blobs), file_version=version)
    check(where, dict(enumerate(blobs)))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_all_changes_of_rows_carry_blobs(tmp_path: Path, version: str, stable: bool) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    nulls = set() if version == "2.0" else {2, 6}
    dataset = write_lance(
        where, rows(version, 0, MIXED, nulls), file_version=version, max_rows_per_file=3, stable_row_ids=stable
    )
    expected: dict[int, bytes | None] = {i: None if i in nulls else b for i, b in enumerate(MIXED)}
    inner = dict(expected)
    check(where, expected, inner)
    dataset.update({"s.x": "s.x + 1"}, predicate="id in (0, 3)")
    dataset.update({"text": "'t'"}, predicate="id >= 4")
    check(where, expected, inner)
    dataset.update({"s.photo": "X'00FF'"}, predicate="id in (1, 3)")
    expected |= {1: b"\x00\xff", 3: b"\x00\xff"}
    check(where, expected, inner)
    dataset.update({"s.in.scan": "s.photo"}, predicate="id = 3")
    inner[3] = b"\x00\xff"
    check(where, expected, inner)
    source = rows(version, 4, [b"n" * 300, None])
    dataset.merge(source, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    for found in (expected, inner):
        found |= {4: b"n" * 300, 5: None}
    check(where, expected, inner)
    dataset.delete("id = 0")
    write_lance(where, rows(version, 20, [b"x" * 120, None]), "append")
    for found in (expected, inner):
        del found[0]
        found |= {20: b"x" * 120, 21: None}
    check(where, expected, inner)
    dataset = open_dataset(where)
    dataset.add_columns({"twice": "id * 2"})
    assert dataset.compact(materialize_deletions=0.0)["num_added_fragments"] == 1
    check(where, expected, inner)
    dataset.rename_column("s.x", "y")
    if version != "2.0":
        dataset.cast_column("s.y", pa.int32())
        check(where, expected, inner)
    lance.dataset(where).delete("id = 20")
    lance.dataset(where).optimize.compact_files(materialize_deletions_threshold=0.0)
    for found in (expected, inner):
        del found[20]
    check(where, expected, inner)
    dataset = open_dataset(where)
    dataset.drop_columns(["s.in"])
    check_blobs(where, expected, "s.photo")


def test_descriptors_equal_those_of_pylance(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    blobs: list[Any] = [b"a", None, b"p" * 50, b"d" * 500, b"p" * 60, b"hidden", b""]
    field = lance.blob_field("photo").with_metadata(LIMITS)
    column = pa.StructArray.from_arrays(
        [lance.blob_array(blobs)], fields=[field], mask=pa.array([i == 5 for i in range(7)])
    )
    table = pa.table({"id": [*range(7)], "s": column})
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    write_lance(ours, table)
    lance.write_dataset(table, theirs)

    def shape(where: str) -> list[Any]:
        found = [r["s"] and r["s"]["photo"] for r in lance.dataset(where).to_table().to_pylist()]
        # blobs in the data file are anywhere in it
        return [d and {k: v for k, v in d.items() if d["kind"] or k != "position"} for d in found]

    assert shape(ours) == shape(theirs)
    sizes = [sorted(p.stat().st_size for p in Path(w).rglob("*.blob")) for w in (ours, theirs)]
    assert sizes[0] == sizes[1]
    assert b"hidden" not in b"".join(p.read_bytes() for p in Path(ours).rglob("*.lance"))
    schemas = [lance.dataset(w).schema for w in (ours, theirs)]
    assert schemas[0] == schemas[1]


def test_external_blobs_in_structs_stay_external(tmp_path: Path) -> None:
    where, other = str(tmp_path / "d"), tmp_path / "other"
    other.write_bytes(b"0123456789")
    empty = dict.fromkeys(("data", "uri", "position", "size"))
    given: list[Any] = [{"uri": other.as_uri()}, {"uri": other.as_uri(), "position": 2, "size": 3}, {"data": b"in"}]
    blobs = pa.array([empty | g for g in given], BLOB_VALUES)
    column = pa.StructArray.from_arrays(
        [blobs, pa.array([1, 2, 3])], fields=[limited_field("photo", BLOB_VALUES), pa.field("x", pa.int64())]
    )
    dataset = write_lance(where, pa.table({"id": [0, 1, 2], "s": column}), max_rows_per_file=2)
    expected: dict[int, bytes | None] = {0: b"0123456789", 1: b"234", 2: b"in"}
    check_blobs(where, expected, "s.photo")
    dataset.update({"s.x": "s.x * 2"}, predicate="id < 2")
    dataset.compact(materialize_deletions=0.0)
    check_blobs(where, expected, "s.photo")
    found = {r["id"]: r["s"] for r in dataset.to_pyarrow_table().to_pylist()}
    assert [found[i]["photo"]["kind"] for i in range(3)] == [3, 3, 0]
    assert [found[i]["x"] for i in range(3)] == [2, 4, 3]
    with pytest.raises(UnsupportedFeatureError, match="a new value is computed"):
        dataset.update({"s.photo": "concat(s.photo, s.photo)"})
    dataset.update({"s.photo": "X'01'"}, predicate="id = 0")
    check_blobs(where, {**expected, 0: b"\x01"}, "s.photo")


@pytest.mark.parametrize("version", VERSIONS)
def test_null_in_a_required_field_of_blobs_is_rejected(tmp_path: Path, version: str) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(version, 0, [b"a", b""], nullable=False), file_version=version)
    check(where, {0: b"a", 1: b""})
    with pytest.raises(SchemaMismatchError, match="photo"):
        write_lance(where, rows(version, 2, [b"a", None]), "append")
    check(where, {0: b"a", 1: b""})


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_in_lists_maps_and_packed_structs_are_rejected(tmp_path: Path, version: str) -> None:
    inner = pa.struct([blob_field(version)])
    for of in (pa.list_(blob_field(version)), pa.list_(inner), pa.map_(pa.string(), inner), pa.list_(inner, 2)):
        with pytest.raises(UnsupportedFeatureError, match=r"stores no blobs|stores no maps|stores no lists"):
            write_lance(str(tmp_path / "d"), pa.table([pa.nulls(1, of)], names=["l"]), file_version=version)
    packed = pa.schema([pa.field("p", inner, True, {"lance-encoding:packed": "true"})])
    with pytest.raises((UnsupportedFeatureError, InvalidArgumentError)):
        write_lance(str(tmp_path / "d"), pa.table([pa.nulls(1, inner)], schema=packed), file_version=version)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_structs_that_are_passed_with_other_fields_are_rejected(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows("2.2", 0, [b"a"]))
    with pytest.raises(SchemaMismatchError, match="Column s comes as"):
        write_lance(where, pa.table({"id": [1], "s": [{"photo": b"a", "y": 1}]}), "append")
    # the fields of a struct that are there have the types of the dataset
    write_lance(where, pa.table({"id": [1], "s": pa.array([{"photo": b"b", "x": 1, "in": {"scan": None}}])}), "append")
    check(where, {0: b"a", 1: b"b"}, {0: b"a", 1: None})


@pytest.mark.parametrize("version", VERSIONS)
def test_converted_structs_have_the_bytes(tmp_path: Path, version: str) -> None:
    where, other = str(tmp_path / "d"), str(tmp_path / "delta")
    write_lance(where, rows(version, 0, MIXED), file_version=version)
    convert(where, other, to="delta", without=["blobs"])
    convert(other, str(tmp_path / "back"), to="lance")
    found = open_dataset(str(tmp_path / "back")).to_pyarrow_table(["id", "s"]).sort_by("id")
    assert [r["s"]["photo"] for r in found.to_pylist()] == MIXED


def test_many_rows_in_many_pages(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    blobs: Blobs = [None if i % 7 == 0 else bytes([i % 256]) * (i % 10) for i in range(30_000)]
    for version in ("2.1", "2.2"):
        column = structs(version, blobs, {*range(0, 30_000, 11)})
        dataset = write_lance(
            f"{where}{version}", pa.table({"id": [*range(30_000)], "s": column}), file_version=version
        )
        expected: list[Any] = [None if i % 11 == 0 else b for i, b in enumerate(blobs)]
        found = dataset.to_pyarrow_table(["s"], blobs="bytes").column("s").to_pylist()
        assert [None if v is None else v["photo"] for v in found] == expected


def test_metadata_of_the_extension_stay_in_the_schema(tmp_path: Path) -> None:
    dataset = write_lance(str(tmp_path / "d"), rows("2.2", 0, [b"a"]))
    field = dataset.manifest.fields[1].children[0]
    assert {k: v.decode() for k, v in field.metadata.items()} == EXTENSION | LIMITS
