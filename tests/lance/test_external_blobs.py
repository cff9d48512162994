"""External blobs, which are given by a URI: how they are written, and what changes of rows do with them."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import convert
from delta_core.errors import (
    DataFileNotFoundError,
    DeltaError,
    ExternalPathError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from delta_plugins.lance import external_blobs, open_dataset, write_lance
from delta_plugins.lance.compat import CompatError, write_dataset
from delta_plugins.lance.external_blobs import Reference, decode_reference, encode_reference, is_reference
from delta_plugins.lance.schema import BLOB_VALUES
from tests.lance.blob_datasets import check_blobs, limited_field

BYTES = bytes(range(256)) * 4
Blob = bytes | dict[str, Any] | None


def blobs(values: list[Blob]) -> pa.Array:
    """Return blobs as the struct of the extension type; a dict has a URI, and may have a position and a size."""
    empty = dict.fromkeys(("data", "uri", "position", "size"))
    return pa.array(
        [None if v is None else empty | ({"data": v} if isinstance(v, bytes) else v) for v in values], BLOB_VALUES
    )


def rows(first: int, values: list[Blob], name: str = "photo") -> pa.Table:
    ids = [*range(first, first + len(values))]
    schema = pa.schema([pa.field("id", pa.int64()), limited_field(name, BLOB_VALUES), pa.field("text", pa.string())])
    return pa.table([ids, blobs(values), [f"t{i}" for i in ids]], schema=schema)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = tmp_path / "outside" / "a file.bin"
    path.parent.mkdir()
    path.write_bytes(BYTES)
    return path.as_uri()


def described(where: str, column: str = "photo") -> dict[int, dict[str, Any] | None]:
    """Return the descriptors of external blobs by id, None for other blobs."""
    found = open_dataset(where).to_pyarrow_table(["id", column]).to_pylist()
    return {r["id"]: r[column] if r[column] is not None and r[column]["kind"] == 3 else None for r in found}


def outside(uri: str, position: int = 0, size: int = 0) -> dict[str, Any]:
    return {"kind": 3, "position": position, "size": size, "blob_id": 0, "blob_uri": uri}


def test_whole_files_and_parts_of_them_are_stored_beside_other_blobs(tmp_path: Path, uri: str) -> None:
    where = str(tmp_path / "d")
    part = {"uri": uri, "position": 10, "size": 5}
    write_lance(where, rows(0, [{"uri": uri}, b"in", None, part, b"p" * 50, b"", b"d" * 500]), max_rows_per_file=4)
    assert described(where) == {0: outside(uri), 3: outside(uri, 10, 5), **dict.fromkeys((1, 2, 4, 5, 6))}
    check_blobs(where, {0: BYTES, 1: b"in", 2: None, 3: BYTES[10:15], 4: b"p" * 50, 5: b"", 6: b"d" * 500})


def test_descriptors_equal_those_of_pylance(tmp_path: Path, uri: str) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    folder = uri.rpartition("/")[0]
    given = [uri, f"{folder}/../outside/b c", "file:///a/./b", "FILE:///x", "file://localhost/ü", "file:///a%2fb"]
    values: list[Any] = [lance.Blob(uri=u) for u in given] + [lance.Blob(uri=uri, position=3, size=4), b"x", None]
    table = pa.table({"id": [*range(len(values))], "photo": lance.blob_array(values)})
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    write_lance(ours, table)
    lance.write_dataset(table, theirs, allow_external_blob_outside_bases=True)
    assert described(ours) == described(theirs)
    assert lance.dataset(ours).to_table().to_pylist() == lance.dataset(theirs).to_table().to_pylist()


REJECTED: dict[str, tuple[type[DeltaError], str, dict[str, Any]]] = {
    "relative": (InvalidArgumentError, "expected an absolute URI", {"uri": "folder/name"}),
    "empty": (InvalidArgumentError, "expected an absolute URI", {"uri": ""}),
    "a folder": (InvalidArgumentError, "names a folder", {"uri": "file:///folder/"}),
    "a query": (InvalidArgumentError, "query or a fragment", {"uri": "s3://bucket/key?versionId=1"}),
    "a fragment": (InvalidArgumentError, "query or a fragment", {"uri": "file:///a#b"}),
    "another host": (InvalidArgumentError, "of the host 'other'", {"uri": "file://other/a"}),
    "encoded key": (InvalidArgumentError, "different files", {"uri": "s3://bucket/a%20b"}),
    "space in a key": (InvalidArgumentError, "different files", {"uri": "gs://bucket/a b"}),
    "dots in a key": (InvalidArgumentError, "different files", {"uri": "s3://bucket/a/../b"}),
    "another store": (ExternalPathError, "allow_external", {"uri": "s3://bucket/key"}),
    "position alone": (InvalidArgumentError, "pass both", {"uri": "file:///a", "position": 1}),
    "size alone": (InvalidArgumentError, "pass both", {"uri": "file:///a", "size": 1}),
    "size 0": (InvalidArgumentError, "at least 1", {"uri": "file:///a", "position": 1, "size": 0}),
    "both": (SchemaMismatchError, "both bytes and a URI", {"uri": "file:///a", "data": b"x"}),
    "neither": (SchemaMismatchError, "neither bytes nor a URI", {"position": 1, "size": 1}),
}


@pytest.mark.parametrize("case", REJECTED)
def test_blob_that_can_not_be_stored_is_rejected_and_nothing_is_written(tmp_path: Path, case: str) -> None:
    error, text, value = REJECTED[case]
    with pytest.raises(error, match=text):
        write_lance(str(tmp_path / "d"), rows(0, [b"x", value]))
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_rows_with_both_bytes_and_a_uri_are_found_beside_rows_with_neither(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match="neither bytes nor a URI"):
        write_lance(str(tmp_path / "d"), rows(0, [{"uri": "file:///a", "data": b"x"}, {}]))


_POSITIONED = [pa.field("position", pa.uint64()), pa.field("size", pa.uint64())]


@pytest.mark.parametrize(
    "places",
    [
        _POSITIONED[::-1],
        _POSITIONED[:1],
        [*_POSITIONED, pa.field("more", pa.uint64())],
        [pa.field("offset", pa.uint64()), pa.field("length", pa.uint64())],
        [pa.field("position", pa.string()), pa.field("size", pa.string())],
    ],
    ids=["other order", "one missing", "one more", "other names", "other types"],
)
@pytest.mark.parametrize("call", ["append", "merge"])
def test_blobs_with_other_fields_are_rejected_by_changes(
    tmp_path: Path, uri: str, places: list[pa.Field[Any]], call: str
) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, [b"a"]))
    of = pa.struct([("data", pa.large_binary()), ("uri", pa.string()), *places])
    part = [10, 5] if pa.types.is_integer(places[0].type) else ["10", "5"]
    blob = {"uri": uri} | dict(zip([f.name for f in places], part, strict=False))
    news = pa.table({"id": [1], "photo": pa.array([blob], of)})

    def change() -> None:
        if call == "append":
            write_lance(where, news, "append")
        else:
            dataset.merge(news, "target.id = source.id").when_not_matched_insert_all().execute()

    with pytest.raises(SchemaMismatchError, match=r"photo(\.position)? comes as "):
        change()
    assert open_dataset(where).version == 1


def test_numbers_and_texts_of_appended_blobs_may_have_other_types(tmp_path: Path, uri: str) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(0, []))
    of = pa.struct([("data", pa.binary()), ("uri", pa.large_string()), ("position", pa.int32()), ("size", pa.int64())])
    given: list[Any] = [{"data": b"in"}, {"uri": uri}, {"uri": uri, "position": 7, "size": 2}, None]
    write_lance(where, pa.table({"id": [*range(4)], "photo": pa.array(given, of)}), "append")
    check_blobs(where, {0: b"in", 1: BYTES, 2: BYTES[7:9], 3: None})
    negative: Any = pa.array([{"uri": uri, "position": -1, "size": 2}], of)
    with pytest.raises(SchemaMismatchError, match=r"photo\.position holds a value"):
        write_lance(where, pa.table({"id": [4], "photo": negative}), "append")


def test_backslashes_of_paths_are_encoded_and_those_of_uris_rejected(tmp_path: Path) -> None:
    path, where = tmp_path / "back\\slash", str(tmp_path / "d")
    path.write_bytes(BYTES)
    write_lance(where, rows(0, [{"uri": str(path)}]))
    check_blobs(where, {0: BYTES})
    with pytest.raises(InvalidArgumentError, match="backslash"):
        write_lance(where, rows(1, [{"uri": f"file://{path}"}]), "append")


def test_places_that_are_not_followed_are_not_written(tmp_path: Path, uri: str) -> None:
    with pytest.raises(ExternalPathError, match="only files below the root"):
        write_lance(str(tmp_path / "d"), rows(0, [{"uri": uri}]), allow_external=False)
    key = "memory://elsewhere/key"
    write_lance(str(tmp_path / "e"), rows(0, [{"uri": key}]), allow_external=["memory://elsewhere"])
    assert described(str(tmp_path / "e")) == {0: outside(key)}


@pytest.mark.parametrize("stable", [False, True])
def test_all_changes_of_rows_keep_external_blobs_external(tmp_path: Path, uri: str, stable: bool) -> None:
    where = str(tmp_path / "d")
    part = {"uri": uri, "position": 1000, "size": 24}
    values: list[Blob] = [{"uri": uri}, b"in", part, None, {"uri": uri, "position": 1, "size": 1}, b"p" * 50]
    write_lance(where, rows(0, values), max_rows_per_file=2, stable_row_ids=stable)
    write_lance(where, rows(10, [part, b"x"]), "append")
    expected = {0: BYTES, 1: b"in", 2: BYTES[-24:], 3: None, 4: BYTES[1:2], 5: b"p" * 50, 10: BYTES[-24:], 11: b"x"}
    kept: dict[int, Any] = {
        0: outside(uri),
        2: outside(uri, 1000, 24),
        4: outside(uri, 1, 1),
        10: outside(uri, 1000, 24),
    }

    def same() -> None:
        check_blobs(where, expected)
        assert {i: d for i, d in described(where).items() if d} == kept

    same()
    dataset = open_dataset(where)
    dataset.update({"text": "'changed'"}, predicate="id in (0, 1, 2)")
    same()
    dataset.update({"text": "concat(text, '!')"})
    same()
    dataset.update({"photo": "X'00FF'"}, predicate="id = 2")
    expected[2] = b"\x00\xff"
    del kept[2]
    same()
    text = pa.table({"id": [0, 5], "text": ["a", "b"]})
    dataset.merge(text, "target.id = source.id").when_matched_update({"text": "source.text"}).execute()
    same()
    changes = rows(10, [b"new", b"newer", b"newest"])
    merge = dataset.merge(changes, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    expected |= {10: b"new", 11: b"newer", 12: b"newest"}
    del kept[10]
    same()
    dataset.delete("id = 5")
    del expected[5]
    dataset.add_columns({"length": "octet_length(photo)"})
    lengths = dataset.to_pyarrow_table(["id", "length"]).to_pylist()
    assert {r["id"]: r["length"] for r in lengths} == {i: None if b is None else len(b) for i, b in expected.items()}
    same()
    assert dataset.compact()["num_added_fragments"] == 1
    same()
    dataset.overwrite(pa.table({"id": [0], "photo": blobs([part])}), "id = 0")
    expected[0], kept[0] = BYTES[-24:], outside(uri, 1000, 24)
    same()
    dataset.restore(2)
    assert len(described(where)) == 8


def test_rows_are_written_again_without_the_files_of_their_blobs(tmp_path: Path, uri: str) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, [{"uri": uri}, b"x"]), max_rows_per_file=1)
    (tmp_path / "outside" / "a file.bin").unlink()
    dataset.update({"text": "'z'"})
    dataset.compact()
    assert described(where) == {0: outside(uri), 1: None}
    with pytest.raises(DataFileNotFoundError, match="a file"):
        dataset.take_blobs("photo", [0])


USES: dict[str, Callable[[Any], Any]] = {
    "update": lambda d: d.update({"photo": "concat(photo, photo)"}),
    "another column": lambda d: d.update({"text": "cast(octet_length(photo) as string)"}),
    "copy": lambda d: d.update({"scan": "photo"}),
    "merge": lambda d: (
        d.merge(pa.table({"id": [0]}), "target.id = source.id").when_matched_update({"scan": "target.photo"}).execute()
    ),
}


@pytest.mark.parametrize("use", USES)
def test_values_are_not_computed_of_external_blobs(tmp_path: Path, uri: str, use: str) -> None:
    where = str(tmp_path / "d")
    table = rows(0, [{"uri": uri}, b"x"]).append_column("scan", pa.array([b"1", b"2"], pa.binary()))
    dataset = write_lance(where, table)
    files = {p for p in Path(where).rglob("*") if p.is_file()}
    with pytest.raises(UnsupportedFeatureError, match=r"external blob of column 'photo'.*a new value is computed"):
        USES[use](dataset)
    assert {p for p in Path(where).rglob("*") if p.is_file()} == files
    dataset.update({"photo": "concat(photo, photo)"}, predicate="id = 1")
    check_blobs(where, {0: BYTES, 1: b"xx"})


def test_conditions_of_merges_compare_the_bytes_of_external_blobs(tmp_path: Path, uri: str) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, [{"uri": uri}, b"x", {"uri": uri, "position": 0, "size": 1}]))
    source = pa.table({"photo": [BYTES, b"x", b"\x01"], "text": ["a", "b", "c"]})
    merge = dataset.merge(source, "target.photo = source.photo").when_matched_update({"text": "source.text"})
    assert merge.execute()["num_target_rows_updated"] == 2
    found = dataset.to_pyarrow_table(["id", "text"]).to_pylist()
    assert {r["id"]: r["text"] for r in found} == {0: "a", 1: "b", 2: "t2"}
    assert described(where) == {0: outside(uri), 1: None, 2: outside(uri, 0, 1)}


REPLACED: dict[str, Callable[[Any, pa.Table], Any]] = {
    "merge": lambda d, t: d.merge(t, "target.id = source.id").when_matched_update_all().execute(),
    "replace_using": lambda d, t: d.overwrite(t, replace_using=["id"]),
    "replace_on": lambda d, t: d.overwrite(t, replace_on="t.id = s.id"),
}


@pytest.mark.parametrize("call", REPLACED)
def test_uris_in_rows_that_are_compared_are_rejected(tmp_path: Path, uri: str, call: str) -> None:
    dataset = write_lance(str(tmp_path / "d"), rows(0, [b"a"]))
    with pytest.raises(UnsupportedFeatureError, match="photo has blobs that are given by a URI"):
        REPLACED[call](dataset, rows(0, [{"uri": uri}]))
    REPLACED[call](dataset, rows(0, [b"b"]))
    check_blobs(dataset.uri, {0: b"b"})


def test_cleanup_keeps_files_that_descriptors_name(tmp_path: Path) -> None:
    where = tmp_path / "d"
    dataset = write_lance(str(where), rows(0, [b"d" * 500]))
    inside = [where / "data" / "a b.lance", where / "data" / "folder" / ("1" * 32 + ".blob")]
    for path in inside:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(BYTES)
    stray = where / "data" / "stray.lance"
    stray.write_bytes(b"nothing")
    # the file of a blob of the first version is one of an external blob of the second
    [own] = [p for p in where.rglob("*.blob") if p not in inside]
    paths = [*inside, own]
    dataset.overwrite(rows(0, [{"uri": p.as_uri()} for p in paths]))
    dataset.update({"text": "'again'"})
    dataset.compact(materialize_deletions=0.0)
    for _ in range(2):
        dataset.cleanup(keep_versions=1, unreferenced_older_than=timedelta(0))
        check_blobs(str(where), {0: BYTES, 1: BYTES, 2: b"d" * 500})
    assert not stray.exists()


def test_converted_tables_have_the_bytes(tmp_path: Path, uri: str) -> None:
    where, other, back = (str(tmp_path / n) for n in ("d", "delta", "back"))
    write_lance(where, rows(0, [{"uri": uri}, b"x", None]))
    convert(where, other, to="delta", without=["blobs"])
    convert(other, back, to="lance")
    found = open_dataset(back).to_pyarrow_table(["id", "photo"]).sort_by("id")
    assert found.column("photo").to_pylist() == [BYTES, b"x", None]


def test_new_columns_and_fragments_of_pylance_have_external_blobs(tmp_path: Path, uri: str) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    dataset = write_lance(where, pa.table({"id": [0, 1]}))
    dataset.add_columns(pa.table({"photo": lance.blob_array([uri, None])}))
    theirs = pa.table({"id": [2, 3], "photo": lance.blob_array([lance.Blob(uri=uri, position=2, size=2), b"theirs"])})
    lance.write_dataset(theirs, where, mode="append", allow_external_blob_outside_bases=True)
    expected: dict[int, bytes | None] = {0: BYTES, 1: None, 2: BYTES[2:4], 3: b"theirs"}
    check_blobs(where, expected)
    open_dataset(where).compact()
    check_blobs(where, expected)
    lance.dataset(where).update({"id": "id + 10"}, where="id < 2")
    check_blobs(where, {2: BYTES[2:4], 3: b"theirs", 10: BYTES, 11: None})
    lance.dataset(where).optimize.compact_files()
    check_blobs(where, {2: BYTES[2:4], 3: b"theirs", 10: BYTES, 11: None})
    assert {i for i, d in described(where).items() if d} == {2, 10}


def test_encoded_characters_of_file_uris_are_decoded(tmp_path: Path) -> None:
    where, folder = str(tmp_path / "d"), tmp_path / "o"
    folder.mkdir()
    names = ["ü a", "100%", "a+b", "a%20b"]
    for name in names:
        (folder / name).write_bytes(name.encode())
    write_lance(where, rows(0, [{"uri": (folder / n).as_uri()} for n in names] + [{"uri": str(folder / "100%")}]))
    check_blobs(where, {i: n.encode() for i, n in enumerate([*names, "100%"])})


def test_scripts_of_pylance_pass_uris_if_they_are_allowed(tmp_path: Path, uri: str) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    inner = pa.StructArray.from_arrays([lance.blob_array([uri])], fields=[lance.blob_field("photo")])
    for table in (pa.table({"photo": lance.blob_array([uri])}), pa.table({"s": inner})):
        where = str(tmp_path / table.schema.names[0])
        for data in (table, table.to_reader()):
            with pytest.raises(CompatError, match="allow_external_blob_outside_bases"):
                write_dataset(data, where)
        write_dataset(table, where, allow_external_blob_outside_bases=True)
        assert open_dataset(where).count() == 1
    write_dataset(pa.table({"photo": lance.blob_array([b"x", None])}), str(tmp_path / "plain"))


def test_random_changes_of_both_libraries_keep_the_bytes(tmp_path: Path, uri: str) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    for seed in range(3):
        chance = random.Random(seed)
        where = str(tmp_path / str(seed))
        expected: dict[int, bytes | None] = {}

        def some(n: int, chance: random.Random = chance) -> list[tuple[Blob, bytes | None]]:
            found: list[tuple[Blob, bytes | None]] = []
            for _ in range(n):
                at, size = chance.randrange(900), chance.randrange(1, 100)
                plain = chance.choice((b"", b"i" * 5, b"p" * 60, b"d" * 200, None))
                part = {"uri": uri, "position": at, "size": size}
                found.append(chance.choice([(plain, plain), ({"uri": uri}, BYTES), (part, BYTES[at : at + size])]))
            return found

        for step in range(8):
            values = some(4)
            table = rows(step * 10, [v for v, _ in values])
            if not step or chance.random() < 0.5:
                write_lance(where, table, "append" if step else "create", max_rows_per_file=3)
            else:
                given = [v if not isinstance(v, dict) else lance.Blob(**v) for v, _ in values]
                theirs = table.set_column(1, "photo", lance.blob_array(given))
                lance.write_dataset(theirs, where, mode="append", allow_external_blob_outside_bases=True)
            expected |= {step * 10 + i: b for i, (_, b) in enumerate(values)}
            ours, number = open_dataset(where), chance.randrange(4)
            if number == 0:
                gone = chance.choice([*expected])
                ours.delete(f"id = {gone}")
                del expected[gone]
            elif number == 1:
                ours.update({"text": "'u'"}, predicate=f"id % 3 = {step % 3}")
            elif number == 2:
                lance.dataset(where).update({"text": "'v'"}, where=f"id % 3 = {step % 3}")
            else:
                ours.compact() if chance.random() < 0.5 else lance.dataset(where).optimize.compact_files()
            check_blobs(where, expected)


@given(st.integers(0, 2**32 - 1), st.text(), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@settings(max_examples=50, deadline=None)
def test_reference_is_decoded_as_it_was_encoded(base: int, uri: str, position: int, size: int) -> None:
    reference = Reference(base, uri.encode(errors="ignore").decode(), position, size)
    value = encode_reference(reference)
    assert decode_reference(value) == reference
    others: list[bytes | None] = [value, b"", None, value[1:], b"x" + value, external_blobs.__name__.encode()]
    assert is_reference(pa.array(others, pa.large_binary())).tolist() == [True, *[False] * 5]


def test_marks_are_other_ones_in_other_processes() -> None:
    assert len(encode_reference(Reference(0, ""))) == 32 + 20
    assert encode_reference(Reference(0, ""))[:32] != bytes(32)


def test_descriptors_with_large_numbers_are_kept(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    part = {"uri": "file:///a", "position": 2**64 - 1, "size": 2**63}
    write_lance(where, rows(0, [part, b"x"]), max_rows_per_file=1)
    open_dataset(where).compact()
    assert described(where) == {0: outside("file:///a", 2**64 - 1, 2**63), 1: None}
