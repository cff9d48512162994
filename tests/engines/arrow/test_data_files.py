"""Parquet as others wrote it becomes the columns that a read wants, exactly, or is rejected by name."""

import datetime as dt
import gc
import threading
import weakref
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
from delta_core.engines.records import FileRead
from delta_core.errors import DataFileError, DataFileNotFoundError
from delta_core.expressions.ast import Call, FileStatistic, Literal
from delta_core.parquet import columns as parquet_columns, data_files
from delta_core.parquet.data_files import ArrowDataFiles
from delta_core.parquet.row_groups import GroupPruner
from delta_core.runtime import ordered
from delta_core.runtime.threads import num_cores, running_threads
from delta_core.schema.fields import FIELD_ID, arrow_schema
from delta_core.schema.types import (
    BASE_TYPES,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
)
from delta_core.storage.stores import LocalStorage

TYPES = {**BASE_TYPES, "timestamp_ntz": TIMESTAMP_NTZ, "variant": VARIANT}


def struct(**fields):
    return StructType([Field(n, t) for n, t in fields.items()])


def with_id(name, type, field_id):
    return Field(name, type, True, {FIELD_ID: field_id})


def read(root, names, columns, match="name", apply=lambda file, first, batch, *_: batch, **options):
    schema = arrow_schema(columns, TYPES)
    sizes = [(root / n).stat().st_size if (root / n).exists() else None for n in names]
    request = FileRead(list(names), sizes, columns, match, schema, **options)
    batches = list(ArrowDataFiles(LocalStorage(str(root)), ArrowEvaluator()).read(request, apply))
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, None if batches else schema)


def write(root, table, name="f.parquet", **options):
    pq.write_table(table, root / name, **options)
    return name


def one(tmp_path, stored, wanted, **options):
    """Store one column and read it back as another type."""
    name = write(tmp_path, pa.table({"x": stored}), **options)
    return read(tmp_path, [name], struct(x=wanted)).column(0)


# --- matching ------------------------------------------------------------------------------


def test_columns_are_matched_by_exact_name_then_ignoring_case(tmp_path):
    name = write(tmp_path, pa.table({"A": [1], "a": [2], "Bb": [3]}))
    assert read(tmp_path, [name], struct(a="long", bB="long")).to_pydict() == {"a": [2], "bB": [3]}


def test_name_that_fits_two_columns_is_rejected(tmp_path):
    name = write(tmp_path, pa.table({"ab": [1], "AB": [2]}))
    with pytest.raises(DataFileError, match=r"f\.parquet.*Ab.*several") as e:
        read(tmp_path, [name], struct(Ab="long"))
    assert (e.value.path, e.value.column) == (name, "Ab")


def test_missing_columns_and_fields_are_null_at_every_level(tmp_path):
    inner = pa.array([{"x": 1}, None, {"x": 3}])
    lists = pa.array([[{"x": 1}], None, []])
    maps = pa.array([[("k", {"x": 1})], None, []], pa.map_(pa.string(), inner.type))
    name = write(tmp_path, pa.table({"s": inner, "l": lists, "m": maps}))
    wanted = struct(y="string", x="long")
    found = read(tmp_path, [name], struct(z="date", s=wanted, l=ArrayType(wanted), m=MapType("string", wanted)))
    assert found.to_pydict() == {
        "z": [None] * 3,
        "s": [{"y": None, "x": 1}, None, {"y": None, "x": 3}],
        "l": [[{"y": None, "x": 1}], None, []],
        "m": [[("k", {"y": None, "x": 1})], None, []],
    }


def test_struct_without_a_requested_field_keeps_its_nulls(tmp_path):
    name = write(tmp_path, pa.table({"s": pa.array([{"x": 1}, None])}))
    assert read(tmp_path, [name], struct(s=struct(new="long"))).to_pydict() == {"s": [{"new": None}, None]}


def test_only_requested_leaves_are_read(tmp_path):
    name = write(tmp_path, pa.table({"s": pa.array([{"a": 1, "b": "x", "c": [1]}]), "t": ["y"]}))
    found = read(tmp_path, [name], struct(s=struct(b="string")))
    assert found.to_pydict() == {"s": [{"b": "x"}]}


def test_void_columns_are_null_and_never_read(tmp_path):
    name = write(tmp_path, pa.table({"v": [1, 2], "s": pa.array([{"v": 1, "a": 2}] * 2)}))
    found = read(tmp_path, [name], struct(v="void", s=struct(v="void", a="long")))
    assert found.to_pydict() == {"v": [None, None], "s": [{"v": None, "a": 2}] * 2}


def test_rows_are_counted_where_no_column_is_read(tmp_path):
    name = write(tmp_path, pa.table({"a": range(10)}))
    assert read(tmp_path, [name], StructType([]), batch_rows=4).num_rows == 10
    assert read(tmp_path, [name], struct(other="long"), batch_rows=4).to_pydict() == {"other": [None] * 10}


def ids(type, field_id, name="x"):
    return pa.field(name, type, metadata={"PARQUET:field_id": str(field_id)})


def test_ids_match_at_every_level_whatever_the_names(tmp_path):
    stored = pa.schema(
        [
            ids(pa.int64(), 2, "a"),
            ids(pa.struct([ids(pa.int64(), 4, "p"), ids(pa.string(), 5, "q")]), 3, "b"),
            ids(pa.list_(pa.field("element", pa.struct([ids(pa.int64(), 7, "r")]))), 6, "c"),
        ]
    )
    rows = {"a": [1], "b": [{"p": 2, "q": "x"}], "c": [[{"r": 3}]]}
    name = write(tmp_path, pa.table(rows, schema=stored))
    wanted = StructType(
        [
            with_id("c", StructType([with_id("a", "string", 5), with_id("q", "long", 4)]), 3),
            with_id("b", "long", 2),
            with_id("a", ArrayType(StructType([with_id("z", "long", 7), with_id("r", "long", 8)])), 6),
        ]
    )
    found = read(tmp_path, [name], wanted, "id").to_pydict()
    assert found == {"c": [{"a": "x", "q": 2}], "b": [1], "a": [[{"z": 3, "r": None}]]}


def test_file_without_ids_is_rejected_in_id_mode(tmp_path):
    name = write(tmp_path, pa.table({"x": [1]}))
    with pytest.raises(DataFileError, match="ids"):
        read(tmp_path, [name], StructType([with_id("x", "long", 1)]), "id")


def test_id_that_the_file_lacks_is_null_even_where_the_name_fits(tmp_path):
    name = write(tmp_path, pa.table({"x": [1]}, schema=pa.schema([ids(pa.int64(), 9)])))
    assert read(tmp_path, [name], StructType([with_id("x", "long", 1)]), "id").to_pydict() == {"x": [None]}


def test_hidden_column_without_an_id_is_found_by_name_in_id_mode(tmp_path):
    stored = pa.schema([ids(pa.int64(), 1), pa.field("hidden", pa.int64())])
    name = write(tmp_path, pa.table({"x": [1], "hidden": [5]}, schema=stored))
    wanted = StructType([with_id("y", "long", 1), Field("hidden", "long")])
    assert read(tmp_path, [name], wanted, "id").to_pydict() == {"y": [1], "hidden": [5]}


# --- types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        (pa.array([1, -1, None], pa.int8()), "short", [1, -1, None]),
        (pa.array([1, None], pa.int16()), "integer", [1, None]),
        (pa.array([2**31 - 1], pa.int32()), "long", [2**31 - 1]),
        (pa.array([2**32 - 1], pa.uint32()), "long", [2**32 - 1]),
        (pa.array([200], pa.uint8()), "short", [200]),
        (pa.array([1.5, None], pa.float32()), "double", [1.5, None]),
        (pa.array([7], pa.int32()), "double", [7.0]),
        (pa.array([7], pa.int32()), "decimal(10,0)", [Decimal(7)]),
        (pa.array([7], pa.int8()), "decimal(5,2)", [Decimal("7.00")]),
        (pa.array([2**63 - 1], pa.int64()), "decimal(22,2)", [Decimal(f"{2**63 - 1}.00")]),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 1)), "decimal(10,3)", [Decimal("1.500")]),
        (pa.array([dt.date(2020, 1, 2)]), "timestamp_ntz", [dt.datetime.fromisoformat("2020-01-02")]),
        (pa.array([b"abc"]), "string", ["abc"]),
        (pa.array(["abc"]), "binary", [b"abc"]),
        (pa.array([b"0123456789abcdef"], pa.binary(16)), "binary", [b"0123456789abcdef"]),
        (pa.array(["a", None], pa.large_string()), "string", ["a", None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), "string", ["a", None, "a"]),
        (pa.array([1000], pa.timestamp("ms")), "timestamp", [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)]),
        (pa.array([1000], pa.timestamp("us")), "timestamp", [dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC)]),
        (pa.array([5000], pa.timestamp("ns")), "timestamp", [dt.datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=dt.UTC)]),
        (pa.array([0], pa.timestamp("us", "America/New_York")), "timestamp", [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]),
    ],
)
def test_stored_type_becomes_the_requested_one(tmp_path, stored, wanted, expected):
    found = one(tmp_path, stored, wanted)
    assert found.type == PrimitiveType(wanted).to_arrow()
    assert found.to_pylist() == expected


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array([2**31], pa.int64()), "integer"),
        (pa.array([2**64 - 1], pa.uint64()), "long"),
        (pa.array([1.5], pa.float64()), "float"),
        (pa.array([1], pa.int64()), "double"),
        (pa.array([1.0]), "long"),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), "decimal(5,1)"),
        (pa.array([12345], pa.int32()), "decimal(4,0)"),
        (pa.array([Decimal(105), Decimal(1)], pa.decimal128(38, 0)), "decimal(38,37)"),
        (pa.array([1], pa.timestamp("ns")), "timestamp"),
        (pa.array([b"\xff"]), "string"),
        (pa.array(["1"]), "long"),
        (pa.array([1]), "string"),
        (pa.array([1]), "timestamp"),
        (pa.array([True]), "integer"),
        (pa.array([dt.date(2020, 1, 2)]), "timestamp"),
        (pa.array([[1]]), "long"),
        (pa.array([{"a": 1}]), "long"),
        (pa.array([1]), ArrayType("long")),
        (pa.array([[1]]), MapType("string", "long")),
    ],
)
def test_type_that_does_not_hold_the_values_is_rejected(tmp_path, stored, wanted):
    with pytest.raises(DataFileError, match=r"f\.parquet") as e:
        one(tmp_path, stored, wanted)
    assert e.value.column == "x"
    assert e.value.found


def test_nested_leaf_that_does_not_fit_is_named_by_its_path(tmp_path):
    with pytest.raises(DataFileError, match=r"x\.element\.a"):
        one(tmp_path, pa.array([[{"a": 1.5}]]), ArrayType(struct(a="long")))


@pytest.mark.parametrize("as_integer", [False, True])
@pytest.mark.parametrize("precision", [5, 15, 30])
def test_decimals_in_every_physical_type(tmp_path, as_integer, precision):
    values = [Decimal("-1.25"), None, Decimal("99.99")]
    array = pa.array(values, pa.decimal128(precision, 2))
    assert one(tmp_path, array, f"decimal({precision},2)", store_decimal_as_integer=as_integer).to_pylist() == values


def test_int96_timestamps_are_instants(tmp_path):
    # pyarrow writes INT96 within its own nanoseconds only; what lies beyond is in the corpus
    stored = pa.array([dt.datetime(2000, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC"))
    found = one(tmp_path, stored, "timestamp", use_deprecated_int96_timestamps=True)
    assert found.to_pylist() == stored.to_pylist()


def test_lists_and_maps_of_legacy_layout(tmp_path):
    table = pa.table(
        {"l": pa.array([[1, 2], None]), "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))}
    )
    name = write(tmp_path, table, use_compliant_nested_type=False)
    assert (
        read(tmp_path, [name], struct(l=ArrayType("long"), m=MapType("string", "long"))).to_pydict()
        == table.to_pydict()
    )


def test_list_of_entries_reads_as_a_map(tmp_path):
    entries = pa.array([[{"key": "a", "value": 1}], None, []])
    assert one(tmp_path, entries, MapType("string", "integer")).to_pylist() == [[("a", 1)], None, []]


def test_large_lists_read_as_lists(tmp_path):
    assert one(tmp_path, pa.array([[1], None], pa.large_list(pa.int64())), ArrayType("integer")).to_pylist() == [
        [1],
        None,
    ]


@given(st.data())
def test_nested_rows_survive_conversion_in_small_batches(tmp_path_factory, data):
    leaf = st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | st.text(max_size=3)})
    rows = data.draw(st.lists(st.none() | st.lists(st.none() | leaf, max_size=3), min_size=1, max_size=20))
    stored = pa.array(rows, pa.list_(pa.struct([("a", pa.int16()), ("b", pa.string())])))
    root = tmp_path_factory.mktemp("nested")
    name = write(root, pa.table({"x": stored}), row_group_size=data.draw(st.integers(1, 20)))
    wanted = ArrayType(struct(b="string", new="date", a="long"))
    found = read(root, [name], struct(x=wanted), batch_rows=data.draw(st.integers(1, 20))).column(0).to_pylist()
    grown = [r and [v and {"b": v["b"], "new": None, "a": v["a"]} for v in r] for r in rows]
    assert found == grown


# --- the hybrid calendar -------------------------------------------------------------------

LEGACY = {"org.apache.spark.version": "3.2.1", "org.apache.spark.legacyDateTime": ""}
JULIAN_1000 = -354_280  # days of 1000-01-01 in the Julian calendar


def days(*values):
    return pa.array(values, pa.int32()).cast(pa.date32())


def with_metadata(array, metadata):
    return pa.table({"x": array}).replace_schema_metadata(metadata)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (LEGACY, "1000-01-01"),
        ({"org.apache.spark.version": "2.4.5"}, "1000-01-01"),
        ({"org.apache.spark.version": "3.2.1"}, "1000-01-06"),
        ({}, "1000-01-06"),
    ],
)
def test_dates_of_the_hybrid_calendar_are_rebased_where_the_file_states_so(tmp_path, metadata, expected):
    table = with_metadata(days(JULIAN_1000, None, 0, -141_427, -141_428), metadata)
    found = read(tmp_path, [write(tmp_path, table)], struct(x="date")).column(0).to_pylist()
    assert found[:4] == [dt.date.fromisoformat(expected), None, dt.date(1970, 1, 1), dt.date(1582, 10, 15)]
    assert found[4] == (dt.date(1582, 10, 4) if expected == "1000-01-01" else dt.date(1582, 10, 14))


def test_leap_day_that_only_the_julian_calendar_has_is_the_next_day(tmp_path):
    table = with_metadata(days(-171_596), LEGACY)
    assert read(tmp_path, [write(tmp_path, table)], struct(x="date")).column(0).to_pylist() == [dt.date(1500, 3, 1)]


def test_old_timestamps_are_rebased_for_utc_and_rejected_for_other_zones(tmp_path):
    moment = JULIAN_1000 * 86_400_000_000 + 3_723_000_000
    array = pa.array([moment, 0], pa.timestamp("us", "UTC"))
    utc = with_metadata(array, LEGACY | {"org.apache.spark.timeZone": "Etc/UTC"})
    found = read(tmp_path, [write(tmp_path, utc)], struct(x="timestamp")).column(0).to_pylist()
    assert found == [dt.datetime(1000, 1, 1, 1, 2, 3, tzinfo=dt.UTC), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]
    for zone in ({}, {"org.apache.spark.timeZone": "Europe/Paris"}):
        with pytest.raises(DataFileError, match="Julian"):
            read(tmp_path, [write(tmp_path, with_metadata(array, LEGACY | zone))], struct(x="timestamp"))
    recent = with_metadata(array.slice(1), LEGACY)
    assert read(tmp_path, [write(tmp_path, recent)], struct(x="timestamp")).num_rows == 1


def test_times_without_a_zone_are_never_rebased(tmp_path):
    table = with_metadata(pa.array([JULIAN_1000 * 86_400_000_000], pa.timestamp("us")), LEGACY)
    found = read(tmp_path, [write(tmp_path, table)], struct(x="timestamp_ntz")).column(0).to_pylist()
    assert found == [dt.datetime.fromisoformat("1000-01-06")]


def test_bounds_of_the_hybrid_calendar_prune_nothing(tmp_path):
    date = PrimitiveType("date")
    name = write(tmp_path, with_metadata(days(JULIAN_1000), LEGACY))
    later = Call(">", (FileStatistic("min", ("x",), date), Literal(dt.date(1000, 1, 3), date)))
    assert read(tmp_path, [name], struct(x="date"), prune=Call("not", (later,))).num_rows == 1


# --- files, order, positions ---------------------------------------------------------------


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DataFileNotFoundError, match=r"gone\.parquet"):
        read(tmp_path, ["gone.parquet"], struct(x="long"))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_file_that_is_not_parquet_is_rejected(tmp_path, content):
    (tmp_path / "bad.parquet").write_bytes(content)
    with pytest.raises(DataFileError, match=r"bad\.parquet") as e:
        read(tmp_path, ["bad.parquet"], struct(x="long"))
    assert not isinstance(e.value, DataFileNotFoundError)


def test_torn_file_is_rejected(tmp_path):
    name = write(tmp_path, pa.table({"x": range(10_000)}))
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) // 2] + data[len(data) // 2 + 100 :])
    with pytest.raises(DataFileError, match=r"f\.parquet"):
        read(tmp_path, [name], struct(x="long"))


@pytest.mark.parametrize(
    "columns", [struct(x=ArrayType(ArrayType("long"))), struct(x=ArrayType(ArrayType("long")), id="long")]
)
def test_rows_that_pyarrow_loses_are_an_error(tmp_path, monkeypatch, columns):
    # PyArrow does not return the last row of a list that an empty page follows
    table = pa.table({"id": [1], "x": pa.array([[[1, 2]]], pa.list_(pa.list_(pa.int64())))})
    name = write(tmp_path, table, data_page_size=1)
    assert read(tmp_path, [name], columns)["x"].to_pylist() == [[[1, 2]]]
    monkeypatch.setattr(parquet_columns, "USES_OWN_DECODER", False)
    with pytest.raises(DataFileError, match=r"f\.parquet.*decodes 0 rows of row groups that have 1"):
        read(tmp_path, [name], columns)


@pytest.mark.parametrize("decoder", ["own", "pyarrow"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("page", [1, 3])
def test_page_of_more_values_than_the_footer_specifies_is_an_error(tmp_path, monkeypatch, decoder, version, page):
    # PyArrow returns a row of null behind the page's last one, and leaves out the last row of the file
    table = pa.table({"x": pa.array([None if i % 3 == 0 else i for i in range(200)], pa.int64())})
    options = {"data_page_size": 1, "write_batch_size": 50, "row_group_size": 100, "write_statistics": False}
    name = write(tmp_path, table, data_page_version=version, compression="none", **options)
    data = bytearray((tmp_path / name).read_bytes())
    header = b"\x2c\x15\x64" if version == "1.0" else b"\x5c\x15\x64"  # 50 values, twice that as a zigzag number
    at = [i for i in range(len(data)) if data[i : i + 3] == header]
    data[at[page] + 2] += 2
    (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(parquet_columns, "USES_OWN_DECODER", decoder == "own")
    with pytest.raises(DataFileError, match=r"f\.parquet.*have 101 values, by the footer 100"):
        read(tmp_path, [name], struct(x="long"))


def test_list_of_more_rows_than_the_footer_specifies_is_an_error(tmp_path):
    # PyArrow returns the first rows
    table = pa.table({"x": pa.array([[1, 2, 3, 4, 5, 6, 7, 8]] * 9, pa.list_(pa.int64()))})
    name = write(tmp_path, table, compression="none", data_page_version="2.0", use_dictionary=False)
    data = bytearray((tmp_path / name).read_bytes())
    levels = b"\xfe" * 9  # the first of 8 entries begins a row
    at = bytes(data).index(levels)
    data[at + 4] = 0xFC
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataFileError, match=r"f\.parquet.*more rows or values than the footer"):
        read(tmp_path, [name], struct(x=ArrayType("long")))


def positions(seen):
    def apply(file, first, batch, *_):
        seen.append((file, first, batch.num_rows))
        return batch

    return apply


@pytest.mark.parametrize("split", [1, 1 << 40])
def test_files_and_rows_come_in_order_with_their_positions(tmp_path, monkeypatch, split):
    monkeypatch.setattr(data_files, "SPLIT_BYTES", split)
    names = [
        write(tmp_path, pa.table({"x": range(k * 1000, k * 1000 + 100)}), f"{k}", row_group_size=30) for k in range(5)
    ]
    seen = []
    found = read(tmp_path, names, struct(x="long"), apply=positions(seen), batch_rows=40)
    assert found.column(0).to_pylist() == [k * 1000 + i for k in range(5) for i in range(100)]
    by_file = {k: sorted((p, n) for f, p, n in seen if f == k) for k in range(5)}
    assert all(sum(n for _, n in by_file[k]) == 100 for k in range(5))
    assert all(p == sum(n for q, n in by_file[k] if q < p) for k in range(5) for p, _ in by_file[k])


def prune(operator, value):
    bound = {">": "max", "<": "min"}[operator]
    long = PrimitiveType("long")
    return Call(operator, (FileStatistic(bound, ("x",), long), Literal(value, long)))


def test_pruned_row_groups_keep_the_positions_of_the_others(tmp_path):
    name = write(tmp_path, pa.table({"x": [*range(30), *range(100, 130), *range(30)]}), row_group_size=30)
    seen = []
    read(tmp_path, [name], struct(x="long"), apply=positions(seen), prune=prune(">", 50))
    assert seen == [(0, 30, 30)]
    seen.clear()
    read(tmp_path, [name], struct(x="long"), apply=positions(seen), prune=prune("<", 50))
    assert seen == [(0, 0, 30), (0, 60, 30)]


def test_row_groups_of_a_split_file_are_not_pruned_once_a_part(tmp_path, monkeypatch):
    name = write(tmp_path, pa.table({"x": range(600)}), row_group_size=10)
    kept, calls = GroupPruner.kept, []
    monkeypatch.setattr(data_files, "SPLIT_BYTES", 1)
    monkeypatch.setattr(data_files, "INLINE_BYTES", 0)
    monkeypatch.setattr(GroupPruner, "kept", lambda *args: [*(calls.append(args) or ()), *kept(*args)])
    found = read(tmp_path, [name], struct(x="long"), prune=prune("<", 50))
    assert found["x"].to_pylist() == list(range(50))
    # the first parts begin at the same time
    assert 1 <= len(calls) <= max(2, num_cores())


def test_row_groups_of_a_single_file_are_read_on_all_threads(tmp_path, monkeypatch):
    """The threads wait for each other: a file that one thread reads to its end would never get there."""
    monkeypatch.setattr(data_files, "INLINE_BYTES", 100)
    monkeypatch.setattr(data_files, "num_cores", lambda: 2)
    monkeypatch.setattr(data_files, "QUICK_BYTES", 0)
    name = write(tmp_path, pa.table({"x": range(4_000)}), row_group_size=500)
    both = threading.Barrier(2, timeout=30)

    def apply(file, first, batch, *_):
        if first in (0, 2_000):
            both.wait()
        return batch

    assert read(tmp_path, [name], struct(x="long"), apply=apply)["x"].to_pylist() == list(range(4_000))


def test_statistics_that_are_not_there_prune_nothing(tmp_path):
    name = write(tmp_path, pa.table({"x": range(30)}), write_statistics=False)
    assert read(tmp_path, [name], struct(x="long"), prune=prune(">", 50)).num_rows == 30
    missing = write(tmp_path, pa.table({"y": range(30)}), "other.parquet")
    assert read(tmp_path, [missing], struct(x="long"), prune=prune(">", 50)).num_rows == 30


def test_apply_may_drop_batches_and_change_their_columns(tmp_path):
    name = write(tmp_path, pa.table({"x": range(10)}), row_group_size=5)

    def apply(file, first, batch, *_):
        return None if first == 0 else pa.RecordBatch.from_arrays([pa.array(["a"] * batch.num_rows)], ["y"])

    assert read(tmp_path, [name], struct(x="long"), apply=apply, batch_rows=5).to_pydict() == {"y": ["a"] * 5}


def test_error_of_apply_is_raised_as_it_is_and_in_its_turn(tmp_path):
    names = [write(tmp_path, pa.table({"x": [k]}), f"{k}") for k in range(4)]
    request = FileRead(names, [None] * 4, struct(x="long"), "name", arrow_schema(struct(x="long"), TYPES))

    def apply(file, first, batch, *_):
        if file == 2:
            raise ZeroDivisionError
        return batch

    stream = ArrowDataFiles(LocalStorage(str(tmp_path))).read(request, apply)
    assert [next(stream).column(0).to_pylist() for _ in range(2)] == [[0], [1]]
    with pytest.raises(ZeroDivisionError):
        next(stream)


def test_files_that_are_read_quickly_need_no_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(ordered, "_QUICK_SECONDS", 60)
    monkeypatch.setattr(ordered, "_QUICK_CPU", 60)
    names = [write(tmp_path, pa.table({"x": [k]}), f"{k}") for k in range(8)]
    seen = []
    found = read(tmp_path, names, struct(x="long"), apply=lambda *a: seen.append(threading.get_ident()) or a[2])
    assert found.column(0).to_pylist() == [*range(8)]
    assert set(seen) == {threading.get_ident()}


def test_files_after_two_slow_ones_are_read_by_threads_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(ordered, "_QUICK_SECONDS", 0)
    names = [write(tmp_path, pa.table({"x": [k]}), f"{k}") for k in range(8)]
    seen = []
    found = read(tmp_path, names, struct(x="long"), apply=lambda *a: seen.append(threading.get_ident()) or a[2])
    assert found.column(0).to_pylist() == [*range(8)]
    assert seen.count(threading.get_ident()) == 2


def test_files_of_many_bytes_are_read_by_threads_from_the_first_one_on(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "QUICK_BYTES", 10)
    names = [write(tmp_path, pa.table({"x": [k]}), f"{k}") for k in range(4)]
    seen = []
    read(tmp_path, names, struct(x="long"), apply=lambda *a: seen.append(threading.get_ident()) or a[2])
    assert threading.get_ident() not in seen


def test_few_rows_are_read_by_threads_only_if_the_first_file_has_not_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "QUICK_BYTES", 10)
    names = [write(tmp_path, pa.table({"x": [k, -1]}), f"{k}") for k in range(4)]
    seen = {}
    found = read(
        tmp_path,
        names,
        struct(x="long"),
        most_rows=1,
        apply=lambda *a: seen.update({a[0]: threading.get_ident()}) or a[2],
    )
    assert found.column(0).to_pylist() == [*range(4)]
    assert [file for file, thread in seen.items() if thread == threading.get_ident()] == [0]


def test_closing_stops_the_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "BUDGET_BYTES", 1)
    names = [write(tmp_path, pa.table({"x": range(1000)}), f"{k}", row_group_size=10) for k in range(20)]
    request = FileRead(
        names, [None] * 20, struct(x="long"), "name", arrow_schema(struct(x="long"), TYPES), batch_rows=10
    )
    seen = []
    stream = ArrowDataFiles(LocalStorage(str(tmp_path))).read(request, positions(seen))
    assert next(stream).num_rows == 10
    stream.close()
    assert "delta-read" not in running_threads()
    assert len({file for file, _, _ in seen}) < 20


def test_read_is_freed_when_it_ends(tmp_path):
    """Not when the collector of cycles runs: a test of many keys has megabytes."""

    names = [write(tmp_path, pa.table({"a": [i]}), f"{i}.parquet") for i in range(3)]

    def apply(file, first, batch, *_):
        return batch

    gc.disable()
    try:
        assert read(tmp_path, names, struct(a=PrimitiveType("long")), apply=apply).num_rows == 3
        applied = weakref.ref(apply)
        del apply
        assert applied() is None
    finally:
        gc.enable()


def test_slow_consumer_bounds_what_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "BUDGET_BYTES", 2000)
    names = [write(tmp_path, pa.table({"x": range(1000)}), f"{k}", row_group_size=10) for k in range(6)]
    request = FileRead(
        names, [None] * 6, struct(x="long"), "name", arrow_schema(struct(x="long"), TYPES), batch_rows=10
    )
    seen = []
    stream = ArrowDataFiles(LocalStorage(str(tmp_path))).read(request, positions(seen))
    taken = 0
    for batch in stream:
        taken += batch.num_rows
        # 25 batches of 80 bytes, those of the first file, and one in each thread's hands
        assert len(seen) * 10 - taken <= 400
    assert taken == 6000


def test_few_distinct_strings_stay_encoded_where_the_caller_decodes(tmp_path):
    few = pa.array(["one", "two", None] * 3000)
    many = pa.array([f"value {i}" for i in range(9000)])
    names = [write(tmp_path, pa.table({"few": few, "many": many}), f"{k}") for k in range(2)]
    found = read(tmp_path, names, struct(few="string", many="string"), encoded=True)
    assert found.schema.types == [pa.dictionary(pa.int32(), pa.string()), pa.string()]
    assert found.column("few").combine_chunks().cast(pa.string()).to_pylist() == few.to_pylist() * 2
    assert read(tmp_path, names, struct(few="string", many="string")).schema.types == [pa.string()] * 2


def test_file_without_a_column_that_the_one_before_kept_encoded(tmp_path):
    few = pa.array(["one", "two", None] * 3000)
    tables = [pa.table({"id": range(9000), "few": few}), pa.table({"id": range(9000)})] * 2
    names = [write(tmp_path, t, f"{k}") for k, t in enumerate(tables)]
    seen = []
    read(tmp_path, names, struct(few="string"), encoded=True, apply=lambda *batch: seen.append(batch[:3]))
    # files are read on several threads
    ordered = [batch for _, _, batch in sorted(seen, key=lambda s: s[:2])]
    found = [v for batch in ordered for v in batch.column(0).to_pylist()]
    same = found == (few.to_pylist() + [None] * 9000) * 2
    assert same


def test_variant_layouts_are_left_to_the_type(tmp_path):
    plain = pa.array([{"value": b"v", "metadata": b"m"}, None])
    name = write(tmp_path, pa.table({"x": plain}))
    found = read(tmp_path, [name], struct(x="variant"), types=TYPES).column(0).to_pylist()
    assert found == [{"metadata": b"m", "value": b"v"}, None]


def test_row_counts_come_from_footers(tmp_path):
    names = [write(tmp_path, pa.table({"x": range(k)}), f"{k}") for k in range(3)]
    assert ArrowDataFiles(LocalStorage(str(tmp_path))).row_counts(names, [None] * 3) == [0, 1, 2]
    with pytest.raises(DataFileNotFoundError, match="gone"):
        ArrowDataFiles(LocalStorage(str(tmp_path))).row_counts(["gone"], [None])


def test_opened_is_reported_the_physical_rows(tmp_path):
    names = [write(tmp_path, pa.table({"x": range(k + 1)}), f"{k}") for k in range(3)]
    told = []
    read(tmp_path, names, struct(x="long"), opened=lambda file, rows: told.append((file, rows)))
    assert sorted(told) == [(0, 1), (1, 2), (2, 3)]
