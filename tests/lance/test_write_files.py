"""Files that are written are read back with the same rows, by this project and by pylance."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.api import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.files import DataFileWriter, column_map
from delta_plugins.lance.schema import arrow_schema
from tests.lance.made_arrays import CASES, INT, MISSING, made_array
from tests.lance.made_files import opened_bytes
from tests.lance.recorded_files import as_array

IS_LONG = bool(os.environ.get("DELTA_CORE_LONG"))
COUNTS = (0, 1, 7, 1024, 1025, 5000, 100_000) if IS_LONG else (0, 7, 1025)
NULLS = ("none", "some", "all", "runs") if IS_LONG else ("none", "some", "all")
VERSIONS = {"2.1": (2, 1), "2.2": (2, 2)}


def file_of(array: pa.Array, version: str = "2.2", metadata: dict[str, str] | None = None, **options: Any) -> bytes:
    """Return the bytes of a file of one column."""
    schema = pa.schema([pa.field("c", array.type, True, metadata)])
    out = io.BytesIO()
    batches = options.pop("batches", 1)
    writer = DataFileWriter(out, lance_fields(schema), version=VERSIONS[version], **options)
    step = max(-(-len(array) // batches), 1)
    for at in range(0, len(array), step):
        writer.write(pa.record_batch([array.slice(at, step)], schema=schema))
    file = writer.finish()
    assert file.size == len(out.getvalue())
    assert file.num_rows == len(array)
    return out.getvalue()


def read_back(data: bytes, of: pa.DataType) -> pa.Array:
    """Return the column of a file, whose leaves are its columns in their order."""
    fields = lance_fields(pa.schema([pa.field("c", of)]))
    writer = DataFileWriter(io.BytesIO(), fields)
    file = writer.finish()
    [found] = opened_bytes(data).read(list(fields), column_map(file.fields, file.column_indices))
    array = as_array(found)
    array.validate(full=True)
    return array


def check(found: pa.Array, expected: pa.Array) -> None:
    assert len(found) == len(expected)
    assert found.equals(expected) or repr(found.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_rows_of_each_type_are_read_back(case: str, version: str) -> None:
    if case in MISSING[version] - {"fixed list of bools"}:
        pytest.skip("this version of files does not store it")
    for n in COUNTS:
        for nulls in NULLS:
            array = made_array(case, nulls, max(n, 1)).slice(0, n)
            check(read_back(file_of(array, version), array.type), array)
            # pages and batches are cut elsewhere
            check(read_back(file_of(array, version, batches=3, page_bytes=3000), array.type), array)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", [c for c in CASES if c != "fixed list of bools"])
def test_rows_of_each_type_are_read_by_pylance(tmp_path: Path, case: str, version: str) -> None:
    files = pytest.importorskip("lance.file", reason="pylance is not installed")
    if case in MISSING[version]:
        pytest.skip("this version of files does not store it")
    for n in COUNTS:
        for nulls in NULLS:
            array = made_array(case, nulls, max(n, 1)).slice(0, n)
            for batches, page_bytes in ((1, 8 << 20), (3, 3000)):
                path = tmp_path / "file.lance"
                path.write_bytes(file_of(array, version, batches=batches, page_bytes=page_bytes))
                found = files.LanceFileReader(str(path)).read_all(batch_size=1000).to_table()["c"]
                check(pa.concat_arrays(found.chunks) if found.num_chunks else found.combine_chunks(), array)


REQUESTS = [
    ("string", {"lance-encoding:compression": "zstd"}),
    ("string", {"lance-encoding:compression": "lz4"}),
    ("string", {"lance-encoding:compression": "fsst"}),
    ("string", {"lance-encoding:structural-encoding": "fullzip"}),
    ("long strings", {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "5"}),
    ("int64", {"lance-encoding:compression": "lz4"}),
    ("int64", {"lance-encoding:structural-encoding": "fullzip"}),
    ("double", {"lance-encoding:bss": "on", "lance-encoding:compression": "zstd"}),
    ("runs", {"lance-encoding:rle-threshold": "0"}),
    ("list", {"lance-encoding:structural-encoding": "fullzip"}),
    ("list of lists", {"lance-encoding:structural-encoding": "fullzip"}),
    ("fixed list", {"lance-encoding:structural-encoding": "fullzip"}),
    ("vectors", {"lance-encoding:structural-encoding": "miniblock"}),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("case", "metadata"), REQUESTS)
def test_requested_encodings_are_read_back(tmp_path: Path, case: str, metadata: dict[str, str], version: str) -> None:
    for n in (5, 6000):
        for nulls in ("none", "some"):
            array = made_array(case, nulls, n)
            check(read_back(file_of(array, version, metadata), array.type), array)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("case", "metadata"), REQUESTS)
def test_requested_encodings_are_read_by_pylance(
    tmp_path: Path, case: str, metadata: dict[str, str], version: str
) -> None:
    files = pytest.importorskip("lance.file", reason="pylance is not installed")
    for n in (5, 6000):
        for nulls in ("none", "some"):
            array = made_array(case, nulls, n)
            path = tmp_path / "file.lance"
            path.write_bytes(file_of(array, version, metadata))
            check(pa.concat_arrays(files.LanceFileReader(str(path)).read_all().to_table()["c"].chunks), array)


@pytest.mark.parametrize("version", VERSIONS)
def test_numbers_of_all_64_bits_are_read_back(version: str) -> None:
    for values in ([-1, -(2**63)], [2**63 - 1] * 3 + [0], list(range(-5000, 5000)), [-1] * 3000):
        array = pa.array(values, INT)
        check(read_back(file_of(array, version), INT), array)


@pytest.mark.parametrize("version", VERSIONS)
def test_lists_across_chunks_and_pages_are_read_back(version: str) -> None:
    sizes = [0, 5000, 1, 1024, 0, 3, 20_000, 2]
    rows = [None if k == 4 else list(range(s)) for k, s in enumerate(sizes)] * 3
    for page_bytes in (8 << 20, 10_000):
        array = pa.array(rows, pa.list_(INT))
        check(read_back(file_of(array, version, page_bytes=page_bytes), array.type), array)


@pytest.mark.parametrize("version", VERSIONS)
def test_many_empty_lists_between_values_are_read_back(version: str) -> None:
    """More levels than a mini-block holds lie between two values."""
    array = pa.array([[1], *[[]] * 40_000, [2], None, [3]], pa.list_(INT))
    check(read_back(file_of(array, version), array.type), array)


def test_values_beneath_nulls_do_not_matter() -> None:
    """What lies beneath a null changes neither the rows nor the bytes."""
    validity = pa.py_buffer(b"\x05")
    files = set()
    for hidden in (0, 77):
        data = pa.py_buffer(np.array([1, hidden, 3], "<i8").tobytes())
        files.add(file_of(pa.Array.from_buffers(INT, 3, [validity, data])))
    for text in (b"aXXb", b"aYYb"):
        offsets = pa.py_buffer(np.array([0, 1, 3, 4], "<i4").tobytes())
        array = pa.Array.from_buffers(pa.string(), 3, [validity, offsets, pa.py_buffer(text)])
        files.add(file_of(array))
        check(read_back(file_of(array), pa.string()), pa.array(["a", None, "b"]))
    offsets = pa.py_buffer(np.array([0, 1, 3, 4], "<i4").tobytes())
    lists = pa.Array.from_buffers(pa.list_(INT), 3, [validity, offsets], children=[pa.array([1, 8, 9, 2])])
    check(read_back(file_of(lists), lists.type), pa.array([[1], None, [2]]))
    assert len(files) == 2


def test_the_same_rows_give_the_same_bytes() -> None:
    for case in ("string", "int64", "list of structs", "vectors"):
        array = made_array(case, "some", 5000)
        assert file_of(array) == file_of(pa.concat_arrays([array.slice(0, 100), array.slice(100)]))


def test_texts_with_common_parts_take_less_than_four_fifths() -> None:
    array = pa.array([f"https://example.org/items/{i * 7919 % 100_003}/view" for i in range(20_000)])
    plain = sum(len(v.as_py()) for v in array)
    assert len(file_of(array)) < 0.8 * plain


_BYTES = st.none() | st.integers(-128, 127)
_VALUES = st.recursive(
    st.one_of(
        st.tuples(st.just(pa.int64()), st.just(st.integers(-(2**63), 2**63 - 1))),
        st.tuples(st.just(pa.string()), st.just(st.text(max_size=12))),
        st.tuples(st.just(pa.bool_()), st.just(st.booleans())),
    ),
    lambda inner: st.one_of(
        inner.map(lambda of: (pa.list_(of[0]), st.lists(st.none() | of[1], max_size=5))),
        inner.map(
            lambda of: (
                pa.struct({"x": of[0], "y": pa.int8()}),
                st.fixed_dictionaries({"x": st.none() | of[1], "y": _BYTES}),
            )
        ),
    ),
    max_leaves=4,
)


@settings(max_examples=2000 if IS_LONG else 60, deadline=None)
@given(st.data())
def test_nested_values_are_read_back(data: st.DataObject) -> None:
    of, values = data.draw(_VALUES)
    array = pa.array(data.draw(st.lists(st.none() | values, max_size=40)), of)
    for version in VERSIONS:
        check(read_back(file_of(array, version, batches=data.draw(st.integers(1, 3)), page_bytes=64), of), array)


@pytest.mark.parametrize(
    ("of", "version", "what"),
    [
        (pa.map_(pa.string(), INT), "2.1", "maps"),
        (pa.list_(pa.map_(pa.string(), INT)), "2.1", "maps"),
        (pa.list_(pa.struct({"a": INT}), 2), "2.1", "lists of a fixed size of structs"),
        (pa.struct([]), "2.2", "structs without fields"),
        (pa.dictionary(pa.int8(), pa.bool_()), "2.2", "dictionaries of bool or null"),
    ],
)
def test_types_that_files_do_not_store_are_rejected_by_name(of: pa.DataType, version: str, what: str) -> None:
    fields = lance_fields(pa.schema([pa.field("c", of)]))
    with pytest.raises(UnsupportedFeatureError, match=f"'c'.*{what}|{what}"):
        DataFileWriter(io.BytesIO(), fields, version=VERSIONS[version])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compression", "snappy"),
        ("compression-level", "high"),
        ("structural-encoding", "sparse"),
        ("bss", "maybe"),
        ("rle-threshold", "2"),
    ],
)
def test_requests_that_are_not_understood_are_rejected_by_name(key: str, value: str) -> None:
    metadata = {
        f"lance-encoding:{key}": value,
        **({} if key == "compression" else {"lance-encoding:compression": "zstd"}),
    }
    with pytest.raises(InvalidArgumentError, match=f"lance-encoding:{key}.*{value}"):
        file_of(pa.array([1]), metadata=metadata)


def test_more_distinct_values_than_keys_are_rejected() -> None:
    for keys, fits in ((pa.int8(), 100), (pa.uint8(), 200)):
        of = pa.dictionary(keys, pa.string())
        schema = pa.schema([pa.field("c", of)])
        indices = pa.array(range(fits), keys)
        array, others = (
            pa.DictionaryArray.from_arrays(indices, pa.array([f"{name} {i}" for i in range(fits)])) for name in "ab"
        )
        data = file_of(array)
        assert opened_bytes(data).num_rows == fits
        writer = DataFileWriter(io.BytesIO(), lance_fields(schema))
        writer.write(pa.record_batch([array], schema=schema))
        writer.write(pa.record_batch([others], schema=schema))
        with pytest.raises(UnsupportedFeatureError, match="more distinct values than keys"):
            writer.finish()


@pytest.mark.parametrize("version", VERSIONS)
def test_packed_structs_are_read_back(version: str) -> None:
    packed = {"lance-encoding:packed": "true"}
    of = pa.struct({"a": pa.int32(), "b": pa.float64(), "c": pa.list_(pa.float32(), 2)})
    array = pa.array([{"a": i, "b": i / 3, "c": [i, -i]} for i in range(3000)], of)
    schema = pa.schema([pa.field("c", of, True, packed)])
    fields = lance_fields(schema)
    for part in (array, array.slice(7, 1500)):
        [found] = opened_bytes(file_of(part, version, packed)).read(list(fields), {0: 0})
        check(as_array(found), part)
    with pytest.raises(SchemaMismatchError, match="nulls"):
        file_of(pa.array([None], of), version, packed)
    with pytest.raises(UnsupportedFeatureError, match="any length"):
        file_of(pa.array([], pa.struct({"s": pa.string()})), version, packed)


def test_nulls_in_a_field_without_nulls_are_rejected() -> None:
    schema = pa.schema([pa.field("a", INT, False)])
    writer = DataFileWriter(io.BytesIO(), lance_fields(schema))
    with pytest.raises(SchemaMismatchError, match=r"'a'.*not nullable"):
        writer.write(pa.record_batch([pa.array([1, None])], schema=schema))


def test_batches_of_other_columns_are_rejected() -> None:
    writer = DataFileWriter(io.BytesIO(), lance_fields(pa.schema([pa.field("a", INT)])))
    with pytest.raises(SchemaMismatchError, match="columns"):
        writer.write(pa.record_batch([pa.array([1])], names=["b"]))
    with pytest.raises(SchemaMismatchError, match="'a'"):
        writer.write(pa.record_batch([pa.array(["x"])], names=["a"]))


def test_schemas_become_fields_and_return() -> None:
    types = [of for of, _ in CASES.values()]
    schema = pa.schema([pa.field(f"c{i}", of) for i, of in enumerate(types)])
    assert arrow_schema(lance_fields(schema)).types == types
