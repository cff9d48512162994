"""Paths of many files are decoded together as each would be by itself."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core import DeltaTable
from delta_core.errors import LogError
from delta_core.log.paths import decode_paths
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
