"""Structs, lists and maps decoded here are those that PyArrow reads; what is damaged is returned undone."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError, InvalidArgumentError
from delta_core.kernels.gather import SelectionVector
from delta_core.parquet._pages import Workspace, read_nested
from delta_core.parquet.columns import GroupReader
from delta_core.parquet.nested_pages import nested_column, read_nested_column
from delta_core.parquet.opened_file import DataFile
from tests.kernels.test_parquet_pages import FORMS, TYPES

CAST = [pa.bool_(), pa.int8(), pa.int16(), pa.large_string(), *(pa.decimal128(p, 2) for p in (4, 9, 15, 18, 25, 38))]
FLAT = st.sampled_from([*(t for t, _ in TYPES.values() if not pa.types.is_decimal(t)), *CAST])


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3)
    return st.one_of(
        fields.map(lambda parts: pa.struct([pa.field(f"f{i}", t, null) for i, (t, null) in enumerate(parts)])),
        st.builds(
            lambda t, null, make: make(pa.field("element", t, null)),
            inner,
            st.booleans(),
            st.sampled_from([pa.list_, pa.list_, pa.large_list]),
        ),
        st.builds(
            lambda k, t, null: pa.map_(k, pa.field("value", t, null)),
            st.sampled_from([pa.string(), pa.int64()]),
            inner,
            st.booleans(),
        ),
    )


NESTED = _nested(st.recursive(FLAT, _nested, max_leaves=4))


def value(random: random.Random, t: pa.DataType, null: bool, nulls: float) -> Any:
    """Return a value of a type, None with a probability if that may be."""
    if null and random.random() < nulls:
        return None
    if pa.types.is_struct(t):
        return {f.name: value(random, f.type, f.nullable, nulls) for f in t}
    if pa.types.is_map(t):
        keys = range(random.choice([0, 1, 2, 30]))
        ends = t.key_type, False, t.item_type, t.item_field.nullable
        return [(value(random, *ends[:2], nulls), value(random, *ends[2:], nulls)) for _ in keys]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        length = random.choice([0, 1, 1, 2, 3, 40])
        return [value(random, t.value_type, t.value_field.nullable, nulls) for _ in range(length)]
    if pa.types.is_decimal(t):
        with localcontext(prec=40):
            return Decimal(random.choice([0, 1, -1, 7, 10**t.precision - 1, 1 - 10**t.precision])).scaleb(-2)
    if pa.types.is_boolean(t):
        return random.random() < 0.5
    if pa.types.is_int8(t) or pa.types.is_int16(t):
        return random.randint(-128, 127)
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        return random.choice(["", "a", "word", "x" * random.randint(0, 70)])
    if pa.types.is_binary(t):
        return b"q" * random.randint(0, 40)
    return random.random() if pa.types.is_float64(t) else random.randint(0, 1_000)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A nested column ``c`` and rows' numbers."""
    t, null = draw(NESTED), draw(st.booleans())
    source, nulls = random.Random(draw(st.integers(0, 1 << 32))), draw(st.sampled_from([0.0, 0.1, 0.5, 0.95]))
    rows = draw(st.sampled_from([1, 2, 7, 63, 200]))
    column = pa.array([value(source, t, null, nulls) for _ in range(rows)], t)
    schema = pa.schema([pa.field("c", t, null), pa.field("id", pa.int64())])
    return pa.table([column, pa.array(range(rows))], schema=schema)


def read(file: DataFile, leaves: list[int], picks: SelectionVector | None = None) -> pa.Array | None:
    """Read a part of the first column by our own decoder."""
    reader = GroupReader(file, leaves)
    ((column, chunks),) = reader._own(0, leaves).nested.values()
    return reader._read_nested(0, column, chunks, picks, reader.pages)


@given(table=tables(), form=FORMS, seed=st.integers(0, 1 << 32), share=st.sampled_from([0.0, 0.03, 0.5, 1.0]))
def test_nested_column_is_what_pyarrow_reads(table: pa.Table, form: dict[str, Any], seed: int, share: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "x.parquet")
        pq.write_table(table, path, **form)
        with closing(DataFile(path)) as file:
            leaves = list(range(len(file.layout.leaves) - 1))
            expected = table["c"].combine_chunks()
            found = read(file, leaves)
            assert found is not None
            found.validate(full=True)
            assert found.type == pq.read_schema(path).field("c").type
            assert found.to_pylist() == expected.to_pylist()
            assert found.null_count == expected.null_count
            flags = np.random.default_rng(seed).random(len(expected)) < share
            picked = read(file, leaves, SelectionVector.of_flags(flags))
            assert picked is not None
            picked.validate(full=True)
            assert picked.to_pylist() == expected.filter(pa.array(flags)).to_pylist()
            # a part of the column: as PyArrow reads it, or undone where that is a map without its key
            some = [leaf for leaf in leaves if (seed >> leaf % 32) & 1] or leaves[:1]
            part = read(file, some)
            if part is not None:
                part.validate(full=True)
                assert part.to_pylist() == file.arrow.read_leaves(0, some)["c"].to_pylist()
            else:
                assert len(some) < len(leaves)


@given(table=tables(), form=FORMS, seed=st.integers(0, 1 << 32))
def test_damaged_column_is_read_or_rejected(table: pa.Table, form: dict[str, Any], seed: int) -> None:
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        pq.write_table(table, path, **form)
        with closing(DataFile(str(path))) as file:
            leaves = list(range(len(file.layout.leaves) - 1))
            ((column, chunks),) = GroupReader(file, leaves)._own(0, leaves).nested.values()
        data = bytearray(path.read_bytes())
        stop = max(c.chunk.offset + c.chunk.num_bytes for c in chunks.values())
        for _ in range(source.randint(1, 4)):
            data[source.randrange(4, stop)] = source.choice([0, 1, 255, source.randrange(256)])
        try:
            found = read_nested_column(bytes(data), column, chunks, table.num_rows)
        except pa.ArrowInvalid:  # it has more rows or values than the footer specifies
            return
        if found is not None:
            assert len(found) == table.num_rows
            found.validate()


TESTS: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("s.x < 3", lambda r: bool(r["s"]) and r["s"]["x"] is not None and r["s"]["x"] < 3),
    ("s.x is null", lambda r: not r["s"] or r["s"]["x"] is None),
    ("s is null", lambda r: r["s"] is None),
    ("s.b", lambda r: bool(r["s"]) and r["s"]["b"] is True),
    ("s.d > 1.5", lambda r: bool(r["s"]) and r["s"]["d"] is not None and r["s"]["d"] > Decimal("1.5")),
    ("s.k = 3", lambda r: bool(r["s"]) and r["s"]["k"] == 3),
    ("s.n = 'n2'", lambda r: bool(r["s"]) and r["s"]["n"] == "n2"),
    ("tags is not null", lambda r: r["tags"] is not None),
    ("id >= 100", lambda r: r["id"] >= 100),
    ("id = 41", lambda r: r["id"] == 41),
    ("id in (3, 77, 140)", lambda r: r["id"] in (3, 77, 140)),
]
FIXED = pa.list_(pa.int16(), 2)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "s": pa.struct(
            {
                "x": pa.int32(),
                "n": pa.string(),
                "in": pa.struct({"y": pa.int64()}),
                "b": pa.bool_(),
                "d": pa.decimal128(7, 2),
                "k": pa.int16(),
            }
        ),
        "tags": pa.list_(pa.string()),
        "bits": pa.list_(pa.bool_()),
        "counts": pa.map_(pa.string(), pa.list_(pa.int64())),
    }
)


@pytest.mark.parametrize("decoder", ["own", "pyarrow"])
@given(
    seed=st.integers(0, 1 << 32),
    tests=st.lists(st.sampled_from(range(len(TESTS))), min_size=1, max_size=3),
    word=st.sampled_from(["and", "or"]),
    vectors=st.booleans(),
)
def test_filtered_rows_have_their_nested_values(
    decoder: str, seed: int, tests: list[int], word: str, vectors: bool
) -> None:
    source = random.Random(seed)
    rows = []
    for i in range(200):
        s = {"x": source.choice([None, *range(7)]), "n": f"n{source.randrange(4)}", "in": {"y": i}}
        s["b"], s["k"] = source.choice([None, True, False]), source.choice([None, *range(-2, 5)])
        s["d"] = source.choice([None, Decimal(source.randrange(-300, 300)).scaleb(-2)])
        bits = source.choice([None, [source.choice([None, True, False]) for _ in range(source.randrange(12))]])
        tags = [f"t{k}" for k in range(source.randrange(4))]
        counts = [(f"k{k}", source.choice([None, [], [k, None]])) for k in range(source.randrange(3))]
        row = {"id": i, "s": source.choice([None, s, s]), "tags": source.choice([None, tags])}
        rows.append(row | {"bits": bits, "counts": counts})
    every = all if word == "and" else any
    where = f" {word} ".join(TESTS[t][0] for t in tests)
    expected = [r for r in rows if every(TESTS[t][1](r) for t in tests) and not (vectors and r["id"] % 3 == 0)]
    configuration = {"delta.enableDeletionVectors": str(vectors).lower()}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("delta_core.parquet.columns.USES_OWN_DECODER", decoder == "own")
        write_deltalake(folder, pa.Table.from_pylist(rows, SCHEMA), configuration=configuration)
        table = DeltaTable(folder)
        if vectors:
            table.delete("id % 3 = 0")
        assert table.scan(predicate=where).to_table().to_pylist() == expected
        parts = table.scan(["s.in", "counts"], where).to_table().to_pylist()
        assert parts == [{"s": r["s"] and {"in": r["s"]["in"]}, "counts": r["counts"]} for r in expected]


def test_other_nested_types_are_left_to_pyarrow() -> None:
    for t in (
        pa.list_view(pa.int32()),
        pa.struct([]),
        pa.list_(pa.struct([])),
        pa.struct({"a": pa.list_view(pa.int8())}),
    ):
        assert nested_column(pa.field("x", t), 0) is None
    assert nested_column(pa.field("x", pa.int32()), 0) is not None


@pytest.mark.parametrize("nulls", [False, True])
def test_lists_of_a_fixed_length_are_what_pyarrow_reads(tmp_path: Path, nulls: bool) -> None:
    values = [[i, None if i % 3 else -i] for i in range(50)]
    table = pa.table({"c": pa.array([None if nulls and i % 7 == 2 else v for i, v in enumerate(values)], FIXED)})
    pq.write_table(table, tmp_path / "x.parquet")
    with closing(DataFile(str(tmp_path / "x.parquet"))) as file:
        found = read(file, [0])
        assert found is not None
        found.validate(full=True)
        assert found.type == FIXED
        assert found.to_pylist() == file.arrow.read_leaves(0, [0])["c"].to_pylist() == table["c"].to_pylist()


def test_of_a_page_without_a_requested_row_only_the_levels_are_decompressed(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([[i, i + 1, i + 2] for i in range(5_000)])})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, use_dictionary=False, data_page_size=4_096, data_page_version="1.0")
    with closing(DataFile(str(path))) as file:
        ((column, chunks),) = GroupReader(file, [0])._own(0, [0]).nested.values()
    plain, picks = path.read_bytes(), SelectionVector.of_flags(np.arange(5_000) == 17)
    found = []
    for at in range(20_000, 22_000, 100):
        data = plain[:at] + b"\xff" * 40 + plain[at + 40 :]  # no Snappy
        assert read_nested_column(data, column, chunks, 5_000) is None
        array = read_nested_column(data, column, chunks, 5_000, picks.mask, 1)
        found.append(None if array is None else array.to_pylist())
    # the damage of some of them is in a page's header or levels
    assert found.count([[17, 18, 19]]) > 10
    assert found.count(None) + found.count([[17, 18, 19]]) == len(found)


def test_small_integer_out_of_range_is_left_to_pyarrow(tmp_path: Path) -> None:
    pq.write_table(pa.table({"c": pa.array([[1], [200]], pa.list_(pa.int32()))}), tmp_path / "x.parquet")
    with closing(DataFile(str(tmp_path / "x.parquet"))) as file:
        ((column, chunks),) = GroupReader(file, [0])._own(0, [0]).nested.values()
        small = nested_column(pa.field("c", pa.list_(pa.int8())), 0)
        assert small is not None
        data = (tmp_path / "x.parquet").read_bytes()
        assert read_nested_column(data, column, chunks, 2) is not None
        assert read_nested_column(data, small, chunks, 2) is None


def test_levels_beyond_a_byte_are_left_to_pyarrow() -> None:
    t: pa.DataType = pa.int32()
    for _ in range(130):
        t = pa.list_(t)
    assert nested_column(pa.field("x", t), 0) is None


def test_arguments_that_lead_outside_of_buffers_are_rejected() -> None:
    chunk = (0, 8, 0, 8, 0, 1, 1, 0, 4, 0, None)
    with pytest.raises(InvalidArgumentError, match="longer than 1 words"):
        read_nested(Workspace(), b"x" * 8, [chunk], 65, np.zeros(1, np.uint64))
    for place, wrong in ((3, 7), (3, 16), (5, 256), (6, -1), (7, 2), (8, -1)):
        with pytest.raises(DeltaError):
            read_nested(Workspace(), b"x" * 8, [(*chunk[:place], wrong, *chunk[place + 1 :])], 1)
