"""KeySet against a Python set of tuples, and the identity of paths."""

from __future__ import annotations

import json
import threading
import urllib.parse
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.errors import InvalidArgumentError
from delta_core.kernels.dedup import KeySet, dv_unique_ids
from tests.corpus.records import GOLDEN

#: Of most long paths only some bytes are looked at; these differ in one byte, wherever it is, or in their length.
LONG = st.builds(
    lambda size, at, byte: f"{'x' * min(at, size)}{byte}{'x' * (size - at)}",
    st.integers(38, 43),
    st.integers(0, 43),
    st.sampled_from(["", "a", "%", "é"]),
)
TEXTS = st.one_of(st.sampled_from(["a", "b", "part-0", ""]), st.text("ab/=é\0", max_size=40), LONG)
KEYS = st.lists(st.tuples(st.none() | TEXTS, st.none() | TEXTS), max_size=60)
LAYOUTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]


def first_seen(keys: list[tuple[str | None, str | None]], seen: set[tuple[str, str | None]]) -> list[bool]:
    """The model: a set of tuples."""
    out = []
    for path, vector in keys:
        out.append(path is not None and (path, vector) not in seen)
        if path is not None:
            seen.add((path, vector))
    return out


def columns(keys: list[tuple[str | None, str | None]], kind: pa.DataType) -> list[Any]:
    return [pa.array([key[i] for key in keys], pa.string()).cast(kind) for i in (0, 1)]


@settings(max_examples=150, deadline=None)
@given(st.lists(KEYS, max_size=4), KEYS, st.sampled_from(LAYOUTS))
def test_keys_equal_a_python_set(batches: list[Any], asked: list[Any], kind: pa.DataType) -> None:
    keys = KeySet()
    seen: set[tuple[str, str | None]] = set()
    for batch in batches:
        assert keys.insert(*columns(batch, kind)).tolist() == first_seen(batch, seen)
        assert len(keys) == len(seen)
    paths, vectors = columns([("skipped", "skipped"), *asked], kind)
    expected = [(path is not None and (path, vector) in seen) for path, vector in asked]
    assert keys.contains(paths[1:], vectors[1:]).tolist() == expected


@settings(max_examples=50, deadline=None)
@given(KEYS, st.integers(0, 60), st.integers(0, 60))
def test_chunks_need_not_match(batch: list[Any], first: int, second: int) -> None:
    paths, vectors = columns(batch, pa.string())
    keys = KeySet()
    found = keys.insert(
        pa.chunked_array([paths[:first], paths[first:]], pa.string()),
        pa.chunked_array([vectors[:second], vectors[second:]], pa.string()),
    )
    assert found.tolist() == first_seen(batch, set())


def test_many_keys_stay_apart() -> None:
    paths = pa.array([f"part-{i:06d}" + "x" * (i % 70) for i in range(30_000)])
    keys = KeySet()
    assert keys.insert(paths[:20_000]).all()
    assert not keys.insert(paths[:20_000]).any()
    assert np.array_equal(keys.contains(paths), np.arange(30_000) < 20_000)
    assert not keys.contains(paths, pa.array([""] * 30_000)).any()
    assert len(keys) == 20_000


@pytest.mark.parametrize("prefix", ["", "file:", "f"])
@pytest.mark.parametrize("count", [1, 300])
def test_long_paths_are_found_in_whatever_form_they_are(prefix: str, count: int) -> None:
    names = [f"/a b/part-{i:05d}-{'x' * 50}" for i in range(count)]
    keys = KeySet()
    keys.insert(pa.array([prefix.removeprefix("file:") + name for name in names]))
    assert keys.contains(pa.array([prefix + name for name in names])).all()
    assert keys.contains(pa.array([prefix + name.replace(" ", "%20") for name in names])).all()
    assert not keys.contains(pa.array([prefix + name.replace("part", "tart") for name in names])).any()


@pytest.mark.parametrize("kind", LAYOUTS)
def test_keys_outlive_the_arrays_they_came_in(kind: pa.DataType) -> None:
    names = [f"a%20b/part-{i:05d}-{'x' * (i % 90)}" if i % 3 else f"part-{i}" for i in range(9_000)]
    ids = [f"u{i}" if i % 2 else None for i in range(9_000)]
    keys = KeySet()
    for start in range(0, 9_000, 1_000):
        both = [pa.array(texts[start : start + 1_000]).cast(kind) for texts in (names, ids)]
        assert keys.insert(*both).all()
        del both
        pa.array(["z" * 90] * 2_000)  # takes the memory of what is freed
    assert keys.contains(pa.array(names), pa.array(ids)).all()
    assert not keys.contains(pa.array(names), pa.array(ids[1:] + ids[:1])).any()
    assert not keys.insert(pa.array([urllib.parse.unquote(name) for name in names]), pa.array(ids)).any()
    assert len(keys) == 9_000


def test_null_and_empty_vector_ids_differ() -> None:
    keys = KeySet()
    assert keys.insert(pa.array(["p", "p", "p"]), pa.array([None, "", "u1"])).tolist() == [True, True, True]
    assert keys.contains(pa.array(["p"])).tolist() == [True]
    assert keys.contains(pa.array(["p"]), pa.nulls(1)).tolist() == [True]
    assert keys.contains(pa.array(["pu1", "p"]), pa.array([None, "u"])).tolist() == [False, False]


def test_a_path_never_runs_into_its_vector_id() -> None:
    keys = KeySet()
    keys.insert(pa.array(["ab"]), pa.array(["cd"]))
    assert keys.contains(pa.array(["abc", "a"]), pa.array(["d", "bcd"])).tolist() == [False, False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/some/path", "file:/some/path"),
        ("/some/path", "file:///some/path"),
        ("/some/path", "file://localhost/some/path"),
        ("file:/x", "FILE://LocalHost/x"),
        ("/a%20b/p@%23h", "file:///a b/p@#h"),
        ("FILE:/x", "/x"),
        ("a%2fb", "a%2Fb"),
        ("a%2Fb", "a/b"),
        ("100%", "100%25"),
        ("%zz%4", "%25zz%254"),
        ("%C3%A9", "é"),
        ("%", "%25"),
    ],
)
def test_forms_of_one_path_are_one_key(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        keys = KeySet()
        keys.insert(pa.array([first]))
        assert keys.contains(pa.array([second])).tolist() == [True]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a%2520b", "a%20b"),
        ("a+b", "a b"),
        ("file://host/x", "/x"),
        ("file://localhosts/x", "/x"),
        ("file://localhost", "/"),
        ("file:x", "x"),
        ("files:/x", "/x"),
        ("s3://bucket/x", "/x"),
        ("A", "a"),
        ("file%3A/x", "/x"),
    ],
)
def test_forms_of_two_paths_are_two_keys(one: str, other: str) -> None:
    keys = KeySet()
    assert keys.insert(pa.array([one, other])).tolist() == [True, True]


@given(st.text("a%2fFé /", max_size=30))
def test_percent_decoding_equals_urllib(path: str) -> None:
    keys = KeySet()
    keys.insert(pa.array([urllib.parse.unquote_to_bytes(path).replace(b"%", b"%25")]))
    assert keys.contains(pa.array([path])).tolist() == [True]


@pytest.mark.golden
@pytest.mark.skipif(not GOLDEN.exists(), reason=f"no corpus of other projects at {GOLDEN}")
@pytest.mark.parametrize("table", ["normal-b", "special-a", "special-b"])
def test_removes_of_golden_tables_name_their_adds(table: str) -> None:
    paths: dict[str, str] = {}
    for commit in sorted((GOLDEN / "tables" / "golden" / f"canonicalized-paths-{table}" / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            paths.update({kind: action[kind]["path"] for kind in ("add", "remove") if kind in action})
    keys = KeySet()
    keys.insert(pa.array([paths["remove"]]))
    assert keys.contains(pa.array([paths["add"]])).tolist() == [True]


def test_wrong_columns_are_rejected() -> None:
    keys = KeySet()
    with pytest.raises(InvalidArgumentError, match="come with"):
        keys.insert(pa.array(["a"]), pa.array(["x", "y"]))
    with pytest.raises(InvalidArgumentError, match="int64"):
        keys.insert(pa.array([1]))


def test_offsets_that_leave_the_data_are_rejected() -> None:
    for offsets in ([0, 9, 2, 3], [0, 2, 1, 3], [0, -1, 2, 3]):  # pyarrow looks at the ends only
        buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"abc")]
        with pytest.raises(InvalidArgumentError, match="offsets"):
            KeySet().insert(pa.Array.from_buffers(pa.string(), 3, buffers))


def test_many_threads_request_one_set() -> None:
    paths = pa.array([f"part-{i}" for i in range(50_000)])
    keys = KeySet()
    keys.insert(paths.take(pa.array(range(0, 50_000, 2))))
    answers: list[bool] = []

    def ask() -> None:
        answers.append(bool((keys.contains(paths) == (np.arange(50_000) % 2 == 0)).all()))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 4


def test_unique_ids_of_vectors() -> None:
    kinds = pa.array(["x", "u", None, "i", "p", "u"])[1:]
    texts = pa.array(["x", "ab^-", None, "é", "s3://x", ""])[1:]
    offsets = pa.array([7, 1, 3, None, 0, 2**31 - 1], pa.int32())[1:]
    expected = ["uab^-@1", None, "ié", "ps3://x@0", "u@2147483647"]
    assert dv_unique_ids(kinds, texts, offsets).to_pylist() == expected
    assert dv_unique_ids(kinds.dictionary_encode(), texts, offsets.cast(pa.int64())).to_pylist() == expected
    assert dv_unique_ids(pa.nulls(2), pa.nulls(2), pa.nulls(2)).to_pylist() == [None, None]
    assert dv_unique_ids(pa.array(["u"]), pa.array(["a"]), pa.array([-(2**63)])).to_pylist() == [f"ua@{-(2**63)}"]
    assert dv_unique_ids(pa.array([], pa.string()), pa.array([], pa.string()), pa.nulls(0)).to_pylist() == []
