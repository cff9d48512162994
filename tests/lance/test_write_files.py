"""Files that are written are read back with the same rows, by this project and by pylance."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings, strategies as st

from delta_core.api import InvalidArgumentError, SchemaError, SchemaMismatchError, UnsupportedFeatureError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.files import DataFileWriter, column_map, data_file
from delta_plugins.lance.schema import arrow_schema
from tests.lance.made_arrays import CASES, INT, MISSING, made_array
from tests.lance.made_files import opened_bytes
from tests.lance.recorded_files import as_array

IS_LONG = bool(os.environ.get("DELTA_CORE_LONG"))
COUNTS = (0, 1, 7, 1024, 1025, 5000, 100_000) if IS_LONG else (0, 7, 1025)
NULLS = ("none", "some", "all", "runs") if IS_LONG else ("none", "some", "all")
VERSIONS = {"2.0": (2, 0), "2.1": (2, 1), "2.2": (2, 2)}


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
    """Return the column of a file, whose fields have their columns in their order."""
    fields = lance_fields(pa.schema([pa.field("c", of)]))
    version = (2, 0) if data[-8:-4] == b"\0\0\3\0" else (2, 2)
    writer = DataFileWriter(io.BytesIO(), fields, version=version)
    file = writer.finish()
    [found] = opened_bytes(data).read(list(fields), column_map(file.fields, file.column_indices))
    array = joined(found) if isinstance(found, pa.ChunkedArray) else found
    array.validate(full=True)
    return array


def joined(found: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([plain(c) for c in found.chunks]) if found.num_chunks else found.combine_chunks()


def plain(array: pa.Array) -> pa.Array:
    """Return an array without a dictionary."""
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def is_stored(case: str, nulls: str, version: str) -> bool:
    """Whether files of a version store such rows: version 2.0 has no structs that are null."""
    return version != "2.0" or nulls == "none" or not case.startswith("struct")


def check(found: pa.Array, expected: pa.Array) -> None:
    assert len(found) == len(expected)
    found, expected = plain(found), plain(expected)
    assert found.equals(expected) or repr(found.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_rows_of_each_type_are_read_back(case: str, version: str) -> None:
    if case in MISSING[version] - {"fixed list of bools"}:
        pytest.skip("this version of files does not store it")
    for n in COUNTS:
        for nulls in NULLS:
            if not is_stored(case, nulls, version):
                continue
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
            if not is_stored(case, nulls, version):
                continue
            array = made_array(case, nulls, max(n, 1)).slice(0, n)
            for batches, page_bytes in ((1, 8 << 20), (3, 3000)):
                path = tmp_path / "file.lance"
                path.write_bytes(file_of(array, version, batches=batches, page_bytes=page_bytes))
                found = files.LanceFileReader(str(path)).read_all(batch_size=1000).to_table()["c"]
                check(joined(found), array)


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
    ("vectors", {"lance-encoding:compression": "zstd"}),
    ("fixed list", {"lance-encoding:compression": "lz4"}),
    ("long strings", {"lance-encoding:compression": "lz4"}),
    ("long strings", {"lance-encoding:compression": "zstd", "lance-encoding:structural-encoding": "fullzip"}),
    ("runs", {"lance-encoding:compression": "zstd"}),
    ("bool", {"lance-encoding:compression": "lz4"}),
    ("dictionary", {"lance-encoding:compression": "zstd"}),
    ("dictionary", {"lance-encoding:dict-values-compression": "lz4"}),
    ("few strings", {"lance-encoding:dict-values-compression": "zstd", "lance-encoding:compression": "lz4"}),
    ("few strings", {"lance-encoding:dict-divisor": "2", "lance-encoding:dict-size-ratio": "0.9"}),
    ("decimal128", {"lance-encoding:dict-values-compression": "lz4"}),
    ("string", {"lance-encoding:minichunk-size": "512"}),
    ("double", {"lance-encoding:minichunk-size": "128"}),
    ("list of structs", {"lance-encoding:compression": "lz4"}),
]
EARLY_REQUESTS = [
    (case, {"lance-encoding:compression": scheme, **level})
    for case in ("string", "long strings", "int64", "double", "vectors", "fixed list", "list of structs", "decimal128")
    for scheme, level in (("lz4", {}), ("zstd", {}), ("zstd", {"lance-encoding:compression-level": "5"}))
]
VERSIONS_AND_REQUESTS = [*((v, *r) for v in ("2.1", "2.2") for r in REQUESTS), *(("2.0", *r) for r in EARLY_REQUESTS)]


@pytest.mark.parametrize(("version", "case", "metadata"), VERSIONS_AND_REQUESTS)
def test_requested_encodings_are_read_back(version: str, case: str, metadata: dict[str, str]) -> None:
    for n in (5, 6000):
        for nulls in ("none", "some"):
            array = made_array(case, nulls, n)
            check(read_back(file_of(array, version, metadata), array.type), array)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("version", "case", "metadata"), VERSIONS_AND_REQUESTS)
def test_requested_encodings_are_read_by_pylance(
    tmp_path: Path, version: str, case: str, metadata: dict[str, str]
) -> None:
    files = pytest.importorskip("lance.file", reason="pylance is not installed")
    for n in (5, 6000):
        for nulls in ("none", "some"):
            array = made_array(case, nulls, n)
            path = tmp_path / "file.lance"
            path.write_bytes(file_of(array, version, metadata))
            check(joined(files.LanceFileReader(str(path)).read_all().to_table()["c"]), array)


def file_size(array: pa.Array, **requests: str) -> int:
    return len(file_of(array, metadata={f"lance-encoding:{k.replace('_', '-')}": v for k, v in requests.items()}))


def test_requests_change_what_is_stored() -> None:
    texts = pa.array([f"{i % 40:0100}" for i in range(20_000)])
    vectors = pa.array([[i % 7.0] * 128 for i in range(2000)], pa.list_(pa.float32(), 128))
    plain = file_size(texts, dict_divisor="1000000")
    assert file_size(texts) < plain / 2
    assert file_size(texts, dict_size_ratio="0") > file_size(texts)
    assert file_size(texts, dict_values_compression="zstd") < file_size(texts) - 2000
    keys = texts.dictionary_encode()
    assert file_size(keys, compression="zstd") < file_size(keys) - 2000
    assert file_size(vectors, compression="lz4") < file_size(vectors) / 5
    small = pa.array([f"{i * 7919 % 10_007}" for i in range(4000)])
    assert file_size(small, minichunk_size="64") > file_size(small) + 2000


def test_requests_of_a_field_hold_for_those_below_it() -> None:
    for of in (pa.list_(pa.string()), pa.struct({"a": pa.struct({"b": pa.string()})})):
        texts = [f"{i:090}" for i in range(1000)]
        array = pa.array([[t] if pa.types.is_list(of) else {"a": {"b": t}} for t in texts], of)
        assert file_size(array, compression="zstd") < file_size(array, compression="none") / 2


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
    rows = [[1], *[[]] * 40_000, [0], None, [1, 1], *[None] * 30_000, [0]]
    keys = pa.dictionary(pa.int8(), pa.string())
    for item in (INT, pa.bool_(), pa.list_(pa.bool_()), keys, pa.string()):
        make = {INT: int, pa.bool_(): bool, pa.list_(pa.bool_()): lambda v: [bool(v), None]}.get(item, str)
        of = pa.list_(item.value_type if item is keys else item)
        array = pa.array([None if r is None else [make(v) for v in r] for r in rows], of)
        if item is keys:
            codes = array.values.dictionary_encode().cast(keys)
            array = pa.Array.from_buffers(
                pa.list_(keys), len(array), array.buffers()[:2], array.null_count, children=[codes]
            )
        check(read_back(file_of(array, version), array.type), array)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", VERSIONS)
def test_many_empty_lists_between_values_are_read_by_pylance(tmp_path: Path, version: str) -> None:
    files = pytest.importorskip("lance.file", reason="pylance is not installed")
    for item in (pa.bool_(), pa.list_(pa.bool_())):
        values = [True, False] if item == pa.bool_() else [[True], [False, None]]
        array = pa.array([[values[0]], *[[]] * 40_000, values, None, [values[1]]], pa.list_(item))
        path = tmp_path / "file.lance"
        path.write_bytes(file_of(array, version))
        check(files.LanceFileReader(str(path)).read_all().to_table()["c"].combine_chunks(), array)


def test_fixed_lists_of_structs_are_cut_at_rows() -> None:
    of = pa.list_(pa.struct({"a": pa.list_(pa.bool_())}), 3)
    rows = [[{"a": [True]}, {"a": []}, {"a": None}], *[[{"a": []}] * 3] * 9001, None, [{"a": [False]}] * 3]
    array = pa.array(rows, of)
    check(read_back(file_of(array), of), array)


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
        with contextlib.suppress(*([UnsupportedFeatureError] if version == "2.0" else [])):
            written = file_of(array, version, batches=data.draw(st.integers(1, 3)), page_bytes=64)
            check(read_back(written, of), array)


@pytest.mark.parametrize(
    ("of", "version", "what"),
    [
        (pa.map_(pa.string(), INT), "2.1", "maps"),
        (pa.list_(pa.map_(pa.string(), INT)), "2.1", "maps"),
        (pa.list_(pa.struct({"a": INT}), 2), "2.1", "lists of a fixed size of structs"),
        (pa.map_(pa.string(), INT), "2.0", "maps"),
        (pa.struct({"a": pa.map_(pa.string(), INT)}), "2.0", "maps"),
        (pa.list_(pa.struct({"a": INT}), 2), "2.0", "lists of a fixed size of structs"),
        (pa.struct([]), "2.0", "structs without fields"),
        (pa.struct([]), "2.2", "structs without fields"),
        (pa.dictionary(pa.int8(), pa.bool_()), "2.2", "dictionaries of bool or null"),
    ],
)
def test_types_that_files_do_not_store_are_rejected_by_name(of: pa.DataType, version: str, what: str) -> None:
    fields = lance_fields(pa.schema([pa.field("c", of)]))
    with pytest.raises(UnsupportedFeatureError, match=f"'c'.*{what}|{what}"):
        DataFileWriter(io.BytesIO(), fields, version=VERSIONS[version])


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_are_rejected_by_name(version: str) -> None:
    of_extension = {"ARROW:extension:name": "lance.blob.v2"}
    for of, metadata, takes in (
        (pa.large_binary(), {"lance-encoding:blob": "true"}, ("2.0", "2.1")),
        (pa.binary(), {"lance-encoding:blob": "true"}, ()),
        (pa.struct({"data": pa.large_binary(), "uri": pa.string()}), of_extension, ("2.2",)),
    ):
        at_top = pa.schema([pa.field("c", of, True, metadata)])
        in_struct = pa.schema([pa.field("s", pa.struct([pa.field("c", of, True, metadata)]))])
        in_list = pa.schema([pa.field("l", pa.list_(pa.field("c", of, True, metadata)))])
        for schema in (in_list, *([] if version in takes else [at_top, in_struct])):
            with pytest.raises(UnsupportedFeatureError, match=r"'c'.*no blobs.*large_binary"):
                DataFileWriter(io.BytesIO(), lance_fields(schema), version=VERSIONS[version])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compression", "snappy"),
        ("compression-level", "high"),
        ("structural-encoding", "sparse"),
        ("bss", "maybe"),
        ("rle-threshold", "2"),
        ("dict-divisor", "0"),
        ("dict-size-ratio", "much"),
        ("dict-max-size", "9"),
        ("dict-values-compression", "fsst"),
        ("dict-values-compression-level", "0.5"),
        ("minichunk-size", "nan"),
        ("no-such-request", "1"),
    ],
)
def test_requests_that_are_not_understood_are_rejected_by_name(key: str, value: str) -> None:
    metadata = {
        f"lance-encoding:{key}": value,
        **({} if key == "compression" else {"lance-encoding:compression": "zstd"}),
    }
    with pytest.raises(InvalidArgumentError, match=f"lance-encoding:{key}.*{value}"):
        file_of(pa.array([1]), metadata=metadata)


@pytest.mark.parametrize(
    ("array", "metadata", "expected"),
    [
        (pa.array([1]), {"compression": "fsst"}, "only strings"),
        (pa.array([[1]]), {"compression": "fsst"}, "only strings"),
        (pa.array(["a"]).dictionary_encode(), {"structural-encoding": "fullzip"}, "miniblock"),
        (pa.array([True]), {"structural-encoding": "fullzip"}, "miniblock"),
        (pa.array([1]), {"structural-encoding": "fullzip", "compression": "lz4"}, "miniblock"),
        (pa.array(["a"]), {"compression": "lz4", "compression-level": "3"}, "only with the compression 'zstd'"),
        (pa.array(["a"]), {"dict-values-compression-level": "3"}, "'zstd'"),
        (pa.array(["a"]), {"minichunk-size": "10000"}, "at most 8192"),
        (pa.array([[0.0] * 4096], pa.list_(pa.float64(), 4096)), {"compression": "lz4"}, "at most 8192 bytes"),
    ],
)
def test_requests_that_a_field_does_not_have_are_rejected_by_name(
    array: pa.Array, metadata: dict[str, str], expected: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"lance-encoding:.*{expected}"):
        file_of(array, "2.1", {f"lance-encoding:{k}": v for k, v in metadata.items()})


@pytest.mark.parametrize(
    ("array", "metadata", "expected"),
    [
        (pa.array(["a"]), {"compression": "fsst"}, "'lz4' or 'zstd'"),
        (pa.array([True]), {"compression": "zstd"}, "values of one bit"),
        (pa.array(["a"]).dictionary_encode(), {"compression": "lz4"}, "dictionaries"),
        (pa.array([{"a": 1}]), {"compression": "lz4", "packed": "true"}, "packed structs"),
        (pa.array([1]), {"structural-encoding": "miniblock"}, "only 'compression'"),
        (pa.array([1.5]), {"bss": "on"}, "only 'compression'"),
        (pa.array([[1]]), {"rle-threshold": "1"}, "only 'compression'"),
        (pa.array(["a"]), {"dict-divisor": "2"}, "only 'compression'"),
    ],
)
def test_requests_that_version_2_0_does_not_have_are_rejected_by_name(
    array: pa.Array, metadata: dict[str, str], expected: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"lance-encoding:.*{expected}"):
        file_of(array, "2.0", {f"lance-encoding:{k}": v for k, v in metadata.items()})


def test_null_structs_are_rejected_in_version_2_0() -> None:
    inner = pa.struct({"a": INT})
    for array in (
        pa.array([{"a": 1}, None], inner),
        pa.array([[{"a": 1}], [None]], pa.list_(inner)),
        pa.array([{"b": {"a": 1}}, {"b": None}], pa.struct({"b": inner})),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"structs that are null.*2\.0.*2\.2"):
            file_of(array, "2.0")
    # a list that is null has no structs
    lists = pa.array([[{"a": 1}], None, []], pa.list_(inner))
    check(read_back(file_of(lists, "2.0"), lists.type), lists)


def test_null_needs_a_key_in_version_2_0() -> None:
    values = pa.array([f"value {i}" for i in range(128)])
    whole = pa.DictionaryArray.from_arrays(pa.array(range(128), pa.int8()), values)
    check(read_back(file_of(whole, "2.0"), whole.type), whole)
    with_null = pa.DictionaryArray.from_arrays(pa.array([*range(128), None], pa.int8()), values)
    with pytest.raises(UnsupportedFeatureError, match=r"129 distinct values with null.*int8.*2\.2"):
        file_of(with_null, "2.0")


def test_rows_of_the_caller_are_not_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are collected for long are copied; the file is the same."""
    array = made_array("list of strings", "some", 4000)
    expected = file_of(array, "2.0", batches=40)
    monkeypatch.setattr("delta_plugins.lance.files.write_file._MOST_LENT", 1000)
    assert file_of(array, "2.0", batches=40) == expected


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", VERSIONS)
def test_written_fragments_are_part_of_datasets_of_pylance(tmp_path: Path, version: str) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    cases = ["int64", "string", "few strings", "list of structs", "vectors", "bool", "decimal128"]
    names = [c.replace(" ", "_") for c in cases]
    theirs, ours = (pa.table([made_array(c, "some", n) for c in cases], names=names) for n in (300, 700))
    dataset = lance.write_dataset(theirs, str(tmp_path), data_storage_version=version)
    [files] = [f.data_files() for f in dataset.get_fragments()]
    with (tmp_path / "data" / "ours.lance").open("wb") as out:
        writer = DataFileWriter(out, lance_fields(ours.schema), version=VERSIONS[version], page_bytes=3000)
        for batch in ours.to_batches(max_chunksize=90):
            writer.write(batch)
        file = writer.finish()
    assert file.fields == files[0].fields
    assert file.column_indices == files[0].column_indices
    described = lance.fragment.DataFile(
        "ours.lance", file.fields, file.column_indices, *file.version, file_size_bytes=file.size
    )
    fragment = lance.fragment.FragmentMetadata(0, [described], file.num_rows)
    dataset = lance.LanceDataset.commit(str(tmp_path), lance.LanceOperation.Append([fragment]), read_version=1)
    expected = pa.concat_tables([theirs, ours])
    assert dataset.to_table().equals(expected)
    assert dataset.take([1, 299, 300, 999]).equals(expected.take([1, 299, 300, 999]))
    assert dataset.count_rows("int64 > 2500") == pc.sum(pc.greater(expected["int64"], 2500)).as_py()
    dataset.delete("int64 > 2500")
    dataset.optimize.compact_files()
    kept = expected.filter(pc.fill_null(pc.less_equal(expected["int64"], 2500), True))
    assert dataset.to_table().equals(kept)


def test_packed_values_that_are_no_structs_and_requests_within_packed_structs_are_rejected() -> None:
    with pytest.raises(UnsupportedFeatureError, match="packed values of type 'int64'"):
        file_of(pa.array([1]), metadata={"lance-encoding:packed": "true"})
    of = pa.struct([pa.field("a", INT, metadata={"lance-encoding:compression": "zstd"})])
    with pytest.raises(InvalidArgumentError, match=r"'a'.*packed struct 'c'"):
        file_of(pa.array([{"a": 1}], of), metadata={"lance-encoding:packed": "true"})


def test_compressed_vectors_with_null_items_are_rejected() -> None:
    array = pa.array([[1.0, None]] * 200, pa.list_(pa.float32(), 2))
    assert file_of(array)
    with pytest.raises(UnsupportedFeatureError, match="null items can't be compressed"):
        file_of(array, metadata={"lance-encoding:compression": "zstd"})


def test_nulls_in_full_zip_pages_of_lz4_are_rejected() -> None:
    metadata = {"lance-encoding:compression": "lz4", "lance-encoding:structural-encoding": "fullzip"}
    array = pa.array(["", "a", "b" * 500])
    check(read_back(file_of(array, metadata=metadata), array.type), array)
    with pytest.raises(UnsupportedFeatureError, match=r"nulls.*full-zip.*lz4"):
        file_of(pa.array(["a", None, "b"]), metadata=metadata)


_ROWS = st.lists(
    st.none()
    | st.lists(
        st.none() | st.fixed_dictionaries({"x": st.none() | st.lists(st.integers(0, 9), max_size=2)}), max_size=2
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@settings(max_examples=60, deadline=None)
@given(rows=_ROWS, version=st.sampled_from(["2.1", "2.2"]), is_deep=st.booleans())
@example(rows=[[{"x": [1]}, None], []], version="2.2", is_deep=False)
@example(rows=[[{"x": [1]}, None], None], version="2.1", is_deep=True)
def test_lists_in_null_structs_are_read_by_pylance(rows: list[Any], version: str, is_deep: bool) -> None:
    files = pytest.importorskip("lance.file", reason="pylance is not installed")
    item: pa.DataType = pa.struct([("x", pa.list_(pa.int32()))])
    if is_deep:
        item = pa.struct([("y", item)])
        rows = [None if r is None else [None if v is None else {"y": v} for v in r] for r in rows]
    array = pa.array(rows, pa.list_(item))
    data = file_of(array, version)
    check(read_back(data, array.type), array)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.lance"
        path.write_bytes(data)
        check(joined(files.LanceFileReader(str(path)).read_all().to_table()["c"]), array)


@pytest.mark.parametrize("version", VERSIONS)
def test_dictionaries_that_are_read_have_no_null(version: str) -> None:
    """PyArrow can neither join dictionaries with nulls nor turn them into pandas."""
    for values in (["a", None, "b", None], [None, None], [None, "a"]):
        array = pa.array(values).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
        found = read_back(file_of(array, version), array.type)
        assert (found.to_pylist(), found.null_count, found.dictionary.null_count) == (values, values.count(None), 0)


@pytest.mark.parametrize("writer", ["ours", "pylance"])
def test_small_fragments_with_null_in_dictionaries_are_joined(tmp_path: Path, writer: str) -> None:
    where = str(tmp_path / "d")
    parts = [pa.table({"c": pa.array(v, pa.string()).dictionary_encode()}) for v in (["a", None], [None, "b", "a"])]
    if writer == "ours":
        write_lance(where, parts[0], file_version="2.0")
        write_lance(where, parts[1], "append")
    else:
        lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
        lance.write_dataset(parts[0], where, data_storage_version="2.0")
        lance.write_dataset(parts[1], where, mode="append")
    dataset = open_dataset(where)
    expected = ["a", None, None, "b", "a"]
    assert dataset.to_pyarrow_table()["c"].to_pylist() == expected
    assert dataset.count("c is null") == 2
    dataset.compact()
    assert dataset.to_pyarrow_table()["c"].to_pylist() == expected
    assert dataset.take([4, 2])["c"].to_pylist() == ["a", None]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_nulls_of_dictionary_types_need_no_key(version: str) -> None:
    """All keys have values, and some rows are null."""
    for keys, n in ((pa.int8(), 128), (pa.uint8(), 256)):
        values = pa.array([f"value {i}" for i in range(n)])
        indices = pa.array([*range(n), None, *range(n - 1, -1, -1), None], keys)
        for array in (
            pa.DictionaryArray.from_arrays(indices, values),
            pa.DictionaryArray.from_arrays(indices, pa.array(range(n))),
        ):
            check(read_back(file_of(array, version), array.type), array)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("of", [pa.binary(0), pa.list_(pa.binary(0)), pa.list_(pa.int8(), 0)], ids=str)
def test_values_without_bytes_are_rejected(version: str, of: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"Values of .*\[0\] have no"):
        file_of(pa.array([], of), version)


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
    if version < "2.2":
        with pytest.raises(UnsupportedFeatureError, match="any length"):
            file_of(pa.array([], pa.struct({"s": pa.string()})), version, packed)


PACKED = {"lance-encoding:packed": "true"}
TEXTS = pa.struct(
    [
        pa.field("n", pa.int32()),
        pa.field("s", pa.string()),
        pa.field("v", pa.list_(pa.float32(), 2)),
        pa.field("b", pa.large_binary()),
    ]
)


def packed_texts(n: int) -> pa.Array[Any]:
    values = [{"n": i, "s": "é" * (i % 7), "v": [i, -i], "b": bytes([i % 256]) * (i % 300)} for i in range(n)]
    return pa.array(values, TEXTS)


@pytest.mark.parametrize("n", [0, 1, 3, 40_000])
def test_packed_structs_of_values_of_any_length_are_read_back(tmp_path: Path, n: int) -> None:
    array = packed_texts(n)
    of = pa.list_(pa.field("item", TEXTS, True, PACKED))
    schema = pa.schema([pa.field("c", TEXTS, True, PACKED), pa.field("l", of)])
    lists = pa.array([[x, x] if i % 3 else [] if i % 2 else None for i, x in enumerate(array.to_pylist())], of)
    table = pa.table([array, lists], schema=schema)
    where = str(tmp_path / "d")
    write_lance(where, table.slice(0, n // 2))
    write_lance(where, table.slice(n // 2), "append")
    assert open_dataset(where).to_pyarrow_table().to_pylist() == table.to_pylist()
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    theirs = lance.dataset(where)
    theirs.validate()
    assert theirs.to_table().to_pylist() == table.to_pylist()
    chosen = pa.array([i for i in (0, 2, n // 2, n - 1) if 0 <= i < n], pa.int64())
    assert theirs.take(chosen.to_pylist()).to_pylist() == table.take(chosen).to_pylist()
    assert open_dataset(where).take(chosen.to_pylist()).to_pylist() == table.take(chosen).to_pylist()
    if n > 1:
        theirs.optimize.compact_files()
        assert open_dataset(where).to_pyarrow_table().to_pylist() == table.to_pylist()
        open_dataset(where).update({"c.s": "'other'"}, predicate="c.n = 1")
        assert lance.dataset(where).to_table().column("c").to_pylist()[-1] == {**array[1].as_py(), "s": "other"}


@pytest.mark.parametrize("values", [["a"], ["same"] * 300, [""] * 5])
def test_packed_structs_of_one_text_are_read_back(tmp_path: Path, values: list[str]) -> None:
    of = pa.struct([("s", pa.large_string())])
    where = str(tmp_path / "d")
    table = pa.table([pa.array([{"s": v} for v in values], of)], schema=pa.schema([pa.field("c", of, True, PACKED)]))
    write_lance(where, table)
    assert open_dataset(where).to_pyarrow_table().to_pylist() == table.to_pylist()
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    assert lance.dataset(where).to_table().to_pylist() == table.to_pylist()


@pytest.mark.parametrize(("key", "value"), [("compression", "zstd"), ("structural-encoding", "miniblock")])
def test_requests_that_packed_texts_do_not_have_are_rejected(key: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"'c'.*lance-encoding:{key}"):
        file_of(packed_texts(3), metadata={**PACKED, f"lance-encoding:{key}": value})


def test_nulls_in_packed_texts_and_structs_within_packed_structs_are_rejected() -> None:
    with pytest.raises(SchemaMismatchError, match="has nulls"):
        file_of(
            pa.array([{"n": 1, "s": "a"}, None], pa.struct([("n", pa.int8()), ("s", pa.string())])), metadata=PACKED
        )
    with pytest.raises(SchemaMismatchError, match="has nulls"):
        file_of(pa.array([{"n": 1, "s": None}], pa.struct([("n", pa.int8()), ("s", pa.string())])), metadata=PACKED)
    nested = pa.struct([("s", pa.string()), ("t", pa.struct([("n", pa.int32())]))])
    with pytest.raises(UnsupportedFeatureError, match="packed structs of structs"):
        file_of(pa.array([], nested), metadata=PACKED)


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


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@given(rows=st.sets(st.integers(0, 2999), min_size=1, max_size=60), first=st.integers(0, 2999))
def test_many_bytes_are_read_page_by_page(version: str, rows: set[int], first: int) -> None:
    """The bytes of scattered rows of many pages are not in memory together; the rows are the same."""
    table = pa.table(
        {
            "i": [i * i for i in range(3000)],
            "t": [f"text {i}" * (i % 3) if i % 5 else None for i in range(3000)],
            "l": [[i] * (i % 4) if i % 7 else None for i in range(3000)],
            "s": [{"x": i, "y": f"{i % 9}"} for i in range(3000)],
        }
    )
    fields = lance_fields(table.schema)
    out = io.BytesIO()
    writer = DataFileWriter(out, fields, version=VERSIONS[version], page_bytes=4000)
    for batch in table.to_batches(max_chunksize=200):
        writer.write(batch)
    file = writer.finish()
    columns = column_map(file.fields, file.column_indices)
    positions = np.array(sorted(rows), np.int64)
    requests = [positions, (first, 3000)]
    at_once, by_page = [], []
    with pytest.MonkeyPatch.context() as patch:
        for most, found in ((1 << 60, at_once), (0, by_page)):
            patch.setattr(data_file, "_MOST_AT_ONCE", most)
            reader = opened_bytes(out.getvalue())
            found += [[a.to_pylist() for a in reader.read(list(fields), columns, r)] for r in requests]
    assert by_page == at_once
    assert by_page[0] == [c.to_pylist() for c in table.take(pa.array(positions)).columns]
