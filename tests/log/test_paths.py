"""Paths of many files are decoded together as each would be by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core import DeltaTable
from delta_core.errors import DeltaError, LogError
from delta_core.kernel.log.paths import decode_paths, path_uris
from delta_core.kernels.path_texts import joined_lists
from delta_core.storage.stores import open_storage
from delta_core.testing.table_builder import TableBuilder

#: Escapes of what a path may have, of what makes other escapes, and what is none.
PARTS = st.sampled_from(
    [
        "x",
        "p=1/",
        "%20",
        "%25",
        "%2525",
        "%C3%A9",
        "%c3%a9",
        "ü",
        ":",
        "%3A",
        "/",
        "%2F",
        "..",
        "%",
        "%2",
        "%zz",
        "%32",
        "%35",
        ".",
        "%2E%2E",
        "%00",
        "p=2024-01-01 10:00:00",
        "p=2024-01-01%2010%3A00%3A00/",
    ]
)
TEXTS = st.lists(PARTS, min_size=1, max_size=5).map("".join)
KINDS = st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])


def alone(path: str) -> str:
    (found,) = decode_paths(pa.chunked_array([[path]]))
    return found


@given(st.lists(TEXTS, min_size=40, max_size=45), KINDS)
def test_many_paths_are_decoded_as_each_alone(paths: list[str], kind: pa.DataType) -> None:
    column = pa.chunked_array([pa.array(paths).cast(kind)]).slice(3)
    assert decode_paths(column) == [alone(path) for path in paths[3:]]


STORAGES = {
    root: open_storage(root)
    for root in ("/ta%62le", "/", "memory://tab%20le", "http://127.0.0.1/t", "simplecache::memory://t")
}


def resolved(uri: Callable[[str], str], path: str) -> str | DeltaError:
    try:
        return uri(alone(path))
    except DeltaError as e:
        return e


@pytest.mark.parametrize("root", STORAGES)
@given(paths=st.lists(TEXTS, max_size=8), kind=KINDS)
def test_uris_of_many_paths_are_those_of_each_alone(root: str, paths: list[str], kind: pa.DataType) -> None:
    uri = STORAGES[root].uri
    alike = {path: resolved(uri, path) for path in paths}
    column = pa.chunked_array([pa.array(["plain", *paths], pa.string()).cast(kind)]).slice(1)
    errors = [found for found in alike.values() if isinstance(found, DeltaError)]
    if errors:
        with pytest.raises(type(errors[0])):
            path_uris(column, uri)
    else:
        assert path_uris(column, uri) == [alike[path] for path in paths]


def test_uri_of_a_path_with_a_dot_and_an_escape_is_the_same_among_others() -> None:
    for storage in STORAGES.values():
        column = pa.chunked_array([pa.array(["./%25", "a/./%", "./a"])])
        assert path_uris(column, storage.uri) == [storage.uri(p) for p in ("./%", "a/./%", "./a")]


def test_only_unusual_paths_are_resolved_one_by_one() -> None:
    asked = []

    def uri(path: str) -> str:
        asked.append(path)
        return f"/t/{path}"

    column = pa.chunked_array([["a b", "ü", "p=1%3A2/x", "/absolute", "s3://b/x"]])
    assert path_uris(column, uri)[:3] == ["/t/a b", "/t/ü", "/t/p=1:2/x"]
    assert [path for path in asked if "\1" not in path] == ["/absolute", "s3://b/x"]


@given(TEXTS)
def test_path_is_decoded_once(path: str) -> None:
    assert alone(path).removeprefix("./") == unquote(path, errors="strict").removeprefix("./")


@pytest.mark.parametrize("count", [1, 100])
def test_escapes_that_are_no_utf8_are_named(count: int) -> None:
    column = pa.chunked_array([["a"] * count + ["b%FF"]])
    with pytest.raises(LogError, match=r"'b%FF'.*no UTF-8"):
        decode_paths(column)


@pytest.mark.parametrize(
    "odd", ["b c", "ü", "a%b", "x:y", "p..q"], ids=["space", "unicode", "percent", "colon", "dots"]
)
def test_uris_of_many_files_are_those_of_each(tmp_path: Path, odd: str) -> None:
    builder = TableBuilder(tmp_path).create({"id": "long"})
    names = [*(f"d/part-{i}.parquet" for i in range(40)), f"{odd}/part.parquet", f"{odd}.parquet"]
    builder.commit(*(a for name in names for a in builder.add_actions([{"id": 1}], path=name)))
    found = DeltaTable(tmp_path).file_uris()
    assert sorted(found) == sorted(str(tmp_path / name) for name in names)
    assert all(Path(place).is_file() for place in found)


def test_uris_of_a_checkpoint_in_parts_are_those_of_its_live_files(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).create({"id": "long"})
    for name in [*(f"part-{i}-{'x' * 40}.parquet" for i in range(40)), "p=1:2/ü.parquet"]:
        builder.commit(*builder.add_actions([{"id": 1}], path=name))
    builder.checkpoint("v1-multipart")
    builder.remove(builder.paths()[3]).append([{"id": 2}])
    expected = sorted(str(tmp_path / name) for name in decode_paths(pa.chunked_array([builder.paths()])))
    table = DeltaTable(tmp_path)
    assert sorted(table.file_uris()) == expected
    table.scan().files()
    assert sorted(table.file_uris()) == expected  # from the paths that are loaded
    assert len(expected) == 41


def test_uris_of_no_file_are_none(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"})
    assert DeltaTable(tmp_path).file_uris() == []


@given(st.lists(st.lists(st.text(max_size=3), max_size=5), max_size=5))
def test_joined_lists_have_the_items_of_all_in_order(lists: list[list[str]]) -> None:
    expected = [item for part in lists for item in part]
    references = [sys.getrefcount(item) for item in expected]
    found = joined_lists(lists)
    assert found == expected
    assert [sys.getrefcount(item) for item in expected] == references
    assert len(lists) == 1 or not any(lists)


def test_list_is_not_joined_with_itself() -> None:
    twice = ["a"]
    with pytest.raises(DeltaError, match="distinct"):
        joined_lists([twice, ["b"], twice])
