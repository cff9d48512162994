"""Files that pylance writes are read as it reads them: types, nulls, numbers of rows and versions."""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_plugins.lance.files import column_map
from tests.lance.recorded_files import as_array, fields_of, local_manifest, opened

lance = pytest.importorskip("lance", reason="pylance is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

IS_LONG = bool(os.environ.get("DELTA_CORE_LONG"))
COUNTS = (1, 7, 1024, 1025, 5000, 100_000) if IS_LONG else (1, 1025)
NULLS = ("none", "some", "all", "runs") if IS_LONG else ("none", "some", "all")

Make = Callable[[int, np.random.Generator], list[Any]]


def _texts(distinct: int, most: int) -> Make:
    def make(n: int, random: np.random.Generator) -> list[Any]:
        known = [f"{'é' if i % 7 == 0 else 'x'}{i}" * int(random.integers(0, most)) for i in range(distinct)]
        return [known[i] for i in random.integers(0, distinct, n)]

    return make


def _lists(make: Make, most: int = 4) -> Make:
    def lists(n: int, random: np.random.Generator) -> list[Any]:
        sizes = random.integers(0, most, n)
        items = make(int(sizes.sum()) + 1, random)
        ends = np.cumsum(sizes)
        return [items[e - s : e] for e, s in zip(ends.tolist(), sizes.tolist(), strict=True)]

    return lists


def _numbers(low: int, high: int) -> Make:
    return lambda n, random: random.integers(low, high, n).tolist()


def _constant(value: Any) -> Make:
    return lambda n, random: [value] * n


def _runs(n: int, random: np.random.Generator) -> list[Any]:
    return np.repeat(random.integers(0, 50, n // 100 + 1), 100)[:n].tolist()


def _structs(**fields: Make) -> Make:
    def structs(n: int, random: np.random.Generator) -> list[Any]:
        columns = {k: make(n, random) for k, make in fields.items()}
        return [{k: c[i] for k, c in columns.items()} for i in range(n)]

    return structs


def _maps(n: int, random: np.random.Generator) -> list[Any]:
    return [[(f"k{k}", int(k) * 3) for k in range(s)] for s in random.integers(0, 4, n)]


SMALL = _numbers(0, 100)
INT = pa.int64()
CASES: dict[str, tuple[pa.DataType, Make]] = {
    "int8": (pa.int8(), _numbers(-128, 128)),
    "uint16": (pa.uint16(), SMALL),
    "int32": (pa.int32(), _numbers(-(2**31), 2**31)),
    "int64": (INT, _numbers(0, 5000)),
    "wide int64": (INT, _numbers(-(2**63), 2**63 - 1)),
    "runs": (INT, _runs),
    "constant": (INT, _constant(7)),
    "bool": (pa.bool_(), lambda n, random: (random.integers(0, 2, n) == 1).tolist()),
    "half": (pa.float16(), lambda n, random: random.random(n).astype(np.float16).tolist()),
    "float": (pa.float32(), lambda n, random: random.integers(0, 9, n).astype(np.float32).tolist()),
    "double": (pa.float64(), lambda n, random: random.random(n).tolist()),
    "timestamp": (pa.timestamp("us", "+05:30"), _numbers(10**15, 2 * 10**15)),
    "decimal128": (pa.decimal128(20, 3), lambda n, random: [Decimal(int(v)) / 8 for v in random.integers(0, 99, n)]),
    "decimal256": (pa.decimal256(40, 3), lambda n, random: [Decimal(int(v)) / 8 for v in random.integers(0, 99, n)]),
    "fixed binary": (pa.binary(5), lambda n, random: [bytes(r) for r in random.integers(0, 256, (n, 5), np.uint8)]),
    "string": (pa.string(), _texts(4000, 5)),
    "few strings": (pa.string(), _texts(5, 4)),
    "constant string": (pa.string(), _constant("constant")),
    "long constant string": (pa.string(), _constant("constant" * 100)),
    "long strings": (pa.string(), _texts(20, 200)),
    "large string": (pa.large_string(), _texts(300, 5)),
    "binary": (pa.binary(), lambda n, random: [bytes(random.integers(0, 256, k % 9, np.uint8)) for k in range(n)]),
    "dictionary": (pa.dictionary(pa.int16(), pa.string()), _texts(9, 4)),
    "list": (pa.list_(pa.int32()), _lists(SMALL)),
    "list of strings": (pa.list_(pa.string()), _lists(_texts(900, 4))),
    "large list": (pa.large_list(INT), _lists(SMALL)),
    "long list": (pa.list_(INT), _lists(_numbers(0, 2**40), 400)),
    "list of constants": (pa.list_(INT), _lists(_constant(3))),
    "list of lists": (pa.list_(pa.list_(INT)), _lists(_lists(SMALL))),
    "fixed list": (pa.list_(pa.float32(), 3), lambda n, random: random.random((n, 3)).tolist()),
    "vectors": (pa.list_(pa.float32(), 128), lambda n, random: random.random((n, 128)).tolist()),
    "fixed list of fixed lists": (pa.list_(pa.list_(pa.int8(), 2), 3), lambda n, random: [[[1, 2]] * 3] * n),
    "fixed list of bools": (pa.list_(pa.bool_(), 8), lambda n, random: (random.random((n, 8)) > 0.5).tolist()),
    "struct": (pa.struct({"a": INT, "b": pa.string()}), _structs(a=SMALL, b=_texts(9, 4))),
    "struct of structs": (
        pa.struct({"a": pa.struct({"x": INT, "y": pa.string()}), "b": pa.float64()}),
        _structs(a=_structs(x=SMALL, y=_texts(9, 4)), b=lambda n, random: random.random(n).tolist()),
    ),
    "list of structs": (
        pa.list_(pa.struct({"a": INT, "b": pa.list_(pa.string())})),
        _lists(_structs(a=SMALL, b=_lists(_texts(9, 4)))),
    ),
    "struct of lists": (
        pa.struct({"a": pa.list_(INT), "b": pa.list_(pa.string())}),
        _structs(a=_lists(SMALL), b=_lists(_texts(9, 4))),
    ),
    "map": (pa.map_(pa.string(), INT), _maps),
    "fixed list of structs": (
        pa.list_(pa.struct({"a": INT, "b": pa.string()}), 2),
        lambda n, random: [[{"a": i, "b": str(i)}, {"a": -i, "b": None}] for i in range(n)],
    ),
    "null": (pa.null(), _constant(None)),
}
#: What each version of files does not store.
MISSING = {
    "2.2": {"fixed list of bools"},
    "2.1": {"map", "fixed list of structs", "fixed list of bools"},
    "2.0": {"map", "fixed list of structs"},
    "legacy": {"map", "fixed list of structs", "null", "dictionary", "half", "fixed list of bools"},
}


def _array(case: str, nulls: str, n: int) -> pa.Array:
    of, make = CASES[case]
    random = np.random.default_rng(len(case) * 1000 + n)
    values = make(n, random)
    null = {
        "none": np.zeros(n, bool),
        "some": random.random(n) < 0.2,
        "all": np.ones(n, bool),
        "runs": np.arange(n) // 200 % 2 == 1,
    }[nulls]
    values = [None if is_null else v for v, is_null in zip(values, null.tolist(), strict=True)]
    if pa.types.is_dictionary(of):
        return pa.array(values, of.value_type).dictionary_encode().cast(of)
    return pa.array(values, of)


def _written(path: Path, array: pa.Array, version: str, metadata: dict[str, str] | None = None) -> Any:
    schema = pa.schema([pa.field("c", array.type, True, metadata)])
    try:
        # a failed write may panic, which is an exception of its own kind
        return lance.write_dataset(pa.table([array], schema=schema), str(path), data_storage_version=version)
    except BaseException as e:  # noqa: BLE001
        pytest.skip(f"pylance does not write it: {str(e)[:80]}")


def _check(path: Path, dataset: Any) -> None:
    """Compare all rows, positions, a range, and batches."""
    try:
        expected = as_array(dataset.to_table()["c"])
    except BaseException as e:  # noqa: BLE001
        pytest.skip(f"pylance does not read what it wrote: {str(e)[:80]}")
    if isinstance(expected, pa.ExtensionArray):
        expected = expected.storage
    manifest = local_manifest(path)
    [field] = fields_of(manifest["fields"])
    [fragment] = manifest["fragments"]
    [file] = fragment["files"]
    data = opened(path / "data" / file["path"], file["file_major_version"], file["file_minor_version"])
    columns = column_map(file["fields"], file["column_indices"])

    def same(found: Any, wanted: pa.Array) -> None:
        found = as_array(found)
        found.validate(full=True)
        if found.type != wanted.type:
            found = found.cast(wanted.type)
        assert found.equals(wanted) or repr(found.to_pylist()) == repr(wanted.to_pylist())

    n = len(expected)
    assert data.num_rows == n
    same(data.read([field], columns)[0], expected)
    random = np.random.default_rng(n)
    first, last = sorted(random.integers(0, n + 1, 2).tolist())
    same(data.read([field], columns, (first, last))[0], expected.slice(first, last - first))
    positions = np.unique(random.integers(0, n, 20))
    parts = [expected.slice(p, 1) for p in positions]
    same(data.read([field], columns, positions)[0], pa.concat_arrays(parts))
    at = 0
    for [part] in data.batches([field], columns, batch_rows=n // 3 + 1):
        same(part, expected.slice(at, len(part)))
        at += len(part)
    assert at == n


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0", "legacy"])
@pytest.mark.parametrize("case", CASES)
def test_rows_equal_pylance(tmp_path: Path, case: str, version: str) -> None:
    if case in MISSING[version]:
        pytest.skip("this version of files does not store it")
    for n in COUNTS:
        for nulls in NULLS:
            path = tmp_path / f"{n}-{nulls}"
            _check(path, _written(path, _array(case, nulls, n), version))


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
@pytest.mark.parametrize(
    ("case", "metadata"),
    [
        ("string", {"lance-encoding:compression": "zstd"}),
        ("string", {"lance-encoding:compression": "lz4"}),
        ("string", {"lance-encoding:compression": "fsst"}),
        ("long strings", {"lance-encoding:compression": "zstd"}),
        ("int64", {"lance-encoding:compression": "lz4"}),
        ("int64", {"lance-encoding:compression": "zstd"}),
        ("double", {"lance-encoding:bss": "on", "lance-encoding:compression": "zstd"}),
        ("runs", {"lance-encoding:rle-threshold": "0.9"}),
        ("string", {"lance-encoding:structural-encoding": "fullzip"}),
        ("int64", {"lance-encoding:structural-encoding": "fullzip"}),
        ("list", {"lance-encoding:structural-encoding": "fullzip"}),
        ("list of lists", {"lance-encoding:structural-encoding": "fullzip"}),
        ("fixed list", {"lance-encoding:structural-encoding": "fullzip"}),
    ],
)
def test_requested_encodings_equal_pylance(tmp_path: Path, case: str, metadata: dict[str, str], version: str) -> None:
    for n in (5, 6000):
        for nulls in ("none", "some"):
            path = tmp_path / f"{n}-{nulls}"
            _check(path, _written(path, _array(case, nulls, n), version, metadata))


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
@pytest.mark.parametrize("case", ["fixed", "any length"])
def test_packed_structs_equal_pylance(tmp_path: Path, case: str, version: str) -> None:
    fields = {"a": pa.int32(), "b": pa.float64(), "c": pa.list_(pa.float32(), 2)}
    if case == "any length":
        fields = {"a": pa.int32(), "s": pa.string(), "b": pa.binary()}
    rows = [
        {"a": i, "b": i / 3 if case == "fixed" else bytes([i % 251] * (i % 5)), "c": [i, -i], "s": "t" * (i % 40)}
        for i in range(3000)
    ]
    array = pa.array([{k: r[k] for k in fields} for r in rows], pa.struct(fields))
    path = tmp_path / "packed"
    _check(path, _written(path, array, version, {"packed": "true", "lance-encoding:packed": "true"}))


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
def test_pages_of_siblings_that_are_cut_apart_equal_pylance(tmp_path: Path, version: str) -> None:
    """One child of a struct has one page, the other several."""
    n = 40_000
    texts = [None if i % 9 == 0 else f"{i}" * 120 for i in range(n)]
    rows = [{"a": i, "b": t} if i % 5 else None for i, t in enumerate(texts)]
    if version == "2.0":
        rows = [r or {"a": None, "b": None} for r in rows]
    path = tmp_path / "siblings"
    _check(path, _written(path, pa.array(rows, pa.struct({"a": INT, "b": pa.string()})), version))


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
def test_lists_across_chunks_equal_pylance(tmp_path: Path, version: str) -> None:
    sizes = [0, 5000, 1, 1024, 0, 3, 20_000, 2]
    rows = [None if k == 4 else list(range(s)) for k, s in enumerate(sizes)] * 3
    path = tmp_path / "lists"
    _check(path, _written(path, pa.array(rows, pa.list_(INT)), version))
    path = tmp_path / "lists of structs"
    structs = [None if r is None else [{"x": i if i % 3 else None, "y": str(i)} for i in r] for r in rows]
    _check(path, _written(path, pa.array(structs, pa.list_(pa.struct({"x": INT, "y": pa.string()}))), version))
