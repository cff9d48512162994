"""Whatever a path looks like: under ``allow_external=False`` nothing but the root's own files is ever touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import EngineError, ExternalPathError
from delta_core.kernel.log.paths import decode_paths
from delta_core.storage.boundary import Boundary
from delta_core.storage.stores import open_storage

ROOTS = ("/lake/t", "memory://own/t", "s3://own/t", "latency:///own/t", "abfss://own@mine.dfs.core.windows.net/t")
PIECES = st.sampled_from([
    "..", ".", "", "a", "t", "own", "lake", "%2e%2e", "%2E.", "%252e%252e", "a..b", "...", "%2F", "\\", "?", "#", "@",
    ":", "\n", " ",
    "..%2F", "%2e%2e%2f", "t2", "file:", "s3:", "%3A", "::", "\u2024\u2024", "\uff0e\uff0e",
])  # fmt: skip
STARTS = st.sampled_from([
    "", "/", "//", "///", "file:/", "file:", "file://", "file:///", "file://localhost/", "FILE:///", "local://",
    "s3://own/t/", "s3://own/",
    "s3a://own/t/", "s3://other/", "s3:", "s3::", "memory://own/t/", "memory://own/", "memory:/", "latency:///own/t/",
    "latency:/",
    "http://own/t/", "data:", "simplecache::", "zip://t::", "abfss://own@mine.dfs.core.windows.net/t/", "abfss://own@theirs/t/",
    "az://own/t/", "c:/", "./", "../", "/lake/t/", "file:///lake/t/", "s3://own@other/t/", "s3://own?/t/", "s3://own#/t/",
])  # fmt: skip
TEXTS = st.builds(
    lambda start, parts, glue: start + glue.join(parts),
    STARTS,
    st.lists(PIECES, max_size=6),
    st.sampled_from(["/", ""]),
)


@given(text=TEXTS, root=st.sampled_from(ROOTS))
def test_path_leads_below_the_root_or_is_rejected(text: str, root: str) -> None:
    (path,) = decode_paths(pa.chunked_array([[text]]))
    boundary = Boundary(root, {}, False)
    try:
        place = boundary.place(path)
        boundary.check(place, path)
    except EngineError:
        assert not boundary.is_plain(path)
        return
    below = boundary.root.path + "/"
    assert place.path == boundary.root.path or place.path.startswith(below)
    assert ".." not in place.path.split("/")
    if boundary.is_plain(path):
        # what takes the fast path is spelled as it is used, and means the same
        joined = f"{boundary.root.path}/{path}"
        assert os.path.normpath(joined) == os.path.normpath(place.path)


@given(text=TEXTS)
def test_local_file_is_the_one_that_was_checked(text: str) -> None:
    (path,) = decode_paths(pa.chunked_array([[text]]))
    storage = open_storage("/lake/t", None, False)
    try:
        local = storage.local_path(path)
    except EngineError:
        return
    assert local is not None
    assert os.path.normpath(local) == "/lake/t" or os.path.normpath(local).startswith("/lake/t/")
    assert storage.uri(path) == local


@given(text=TEXTS)
def test_key_of_a_store_is_the_one_that_was_checked(text: str) -> None:
    pytest.importorskip("s3fs")
    (path,) = decode_paths(pa.chunked_array([[text]]))
    storage = open_storage("s3://own/t", {"anon": True}, False)
    try:
        key = storage._key(path)  # type: ignore[union-attr]  # what is handed to the filesystem
    except EngineError:
        return
    assert key == "own/t" or (str(key).startswith("own/t/") and ".." not in str(key).split("/"))
    assert storage.uri(path).startswith(("s3://own/t", "s3a://own/t"))


@given(text=TEXTS, prefix=st.sampled_from(["s3://shared/a", "memory://own", "/data/shared"]))
def test_prefix_allows_what_lies_below_it(text: str, prefix: str) -> None:
    path = unquote(text)
    boundary = Boundary("http://host/t", {}, [prefix])
    try:
        place = boundary.place(path)
        boundary.check(place, path)
    except EngineError:
        return
    kind, authority, below = {
        "s3://shared/a": ("s3", "shared", "/a"),
        "memory://own": ("memory", "own", ""),
        "/data/shared": ("file", "", "/data/shared"),
    }[prefix]
    assert (place.kind, place.authority) == ("http", "host") or (
        (place.kind, place.authority) == (kind, authority) and (place.path + "/").startswith(below + "/")
    )


@given(texts=st.lists(TEXTS, max_size=4))
def test_paths_together_are_what_each_of_them_is(texts: list[str]) -> None:
    paths = decode_paths(pa.chunked_array([pa.array(texts, pa.string())]))
    storage = open_storage("/lake/t", None, False)

    def outcome(work: Callable[[], list[str | None]]) -> Any:
        try:
            return work()
        except EngineError as e:
            return str(e)

    assert outcome(lambda: storage.local_paths(paths)) == outcome(lambda: [storage.local_path(p) for p in paths])


def test_paths_with_a_line_end_or_out_of_the_root_are_found_among_others(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    assert storage.local_paths(["a", "b\n/c", ""]) == [f"{tmp_path}/a", f"{tmp_path}/b\n/c", f"{tmp_path}/"]
    for outside in ("http://host/f", "/etc/passwd", "../f", "x/../../f"):
        with pytest.raises(ExternalPathError):
            open_storage(str(tmp_path), None, False).local_paths(["a", outside])
