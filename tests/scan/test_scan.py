"""Scans end to end over built tables: projection, rules, metadata columns, limits, counts, vectors, streams."""

from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import (
    ColumnNotFoundError,
    DataFileError,
    DataFileNotFoundError,
    ExpressionError,
    HookContractError,
    InvalidArgumentError,
    PluginConflictError,
)
from delta_core.expressions.ast import Call, Column, FileConstant, PhysicalColumn, RowPosition, literal
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.hookspecs import hookimpl
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.rules import MetadataColumn, ReadCheck, RowFilter
from delta_core.kernel.scan import vectors
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernels.row_set import RowSet
from delta_core.runtime.threads import running_threads
from delta_core.schema.types import ArrayType, Field, MapType, PrimitiveType, StructType
from delta_core.testing.table_builder import TableBuilder

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
PERSON = StructType([Field("name", "string"), Field("age", "long")])
NESTED = StructType(
    [Field("id", "long"), Field("Who", PERSON), Field("all", ArrayType(PERSON)), Field("by", MapType("string", PERSON))]
)
ANN, BOB = {"name": "ann", "age": 1}, {"name": "bob", "age": 2}
NESTED_ROWS = [
    {"id": 1, "Who": ANN, "all": [ANN, None], "by": [("x", BOB)]},
    {"id": 2, "Who": None, "all": None, "by": None},
    {"id": 3, "Who": BOB, "all": [], "by": []},
]


def rows(count, start=0):
    return [{"id": i, "kind": "ab"[i % 2], "text": f"row {i}"} for i in range(start, start + count)]


@pytest.fixture
def plain(tmp_path):
    return TableBuilder(tmp_path).create({"id": "long", "kind": "string", "text": "string"}).append(rows(10), files=2)


@pytest.fixture
def with_vectors(tmp_path):
    table = TableBuilder(tmp_path).create(
        {"id": "long", "kind": "string", "text": "string"}, partition_by=["kind"], features=["deletionVectors"]
    )
    return table.append(rows(20)).append(rows(20, 20)).delete_rows(lambda r: r["id"] % 3 == 0)


def scan(table, *args, plugins=None, **options):
    return open_snapshot(table.uri, plugins=plugins).scan(*args, **options)


def found(table, *args, **options):
    result = scan(table, *args, **options).to_table()
    result.validate(full=True)
    return result.to_pydict()


# --- projection ----------------------------------------------------------------------------


def test_columns_come_in_the_order_requested_and_ignore_case(plain):
    assert list(found(plain, ["TEXT", "id"])) == ["text", "id"]


def test_unknown_column_lists_the_known_ones(plain):
    with pytest.raises(ColumnNotFoundError, match="id, kind, text"):
        scan(plain, ["nope"])


def test_column_requested_twice_is_rejected(plain):
    with pytest.raises(InvalidArgumentError, match="twice"):
        scan(plain, ["id", "ID"])


def test_text_in_place_of_a_list_is_rejected(plain):
    for options in ({"columns": "id"}, {"metadata": "_file_path"}):
        with pytest.raises(InvalidArgumentError, match="list"):
            scan(plain, **options)


def test_no_columns_still_count_the_rows(with_vectors):
    assert scan(with_vectors, []).to_table().num_rows == 26


@pytest.mark.parametrize("mapping", [None, "name", "id"])
def test_nested_names_at_every_level(tmp_path, mapping):
    table = TableBuilder(tmp_path).create(NESTED, column_mapping=mapping).append(NESTED_ROWS)
    assert scan(table).to_table().to_pylist() == NESTED_ROWS
    assert scan(table).schema == scan(table).to_table().schema


@pytest.mark.parametrize("mapping", [None, "name", "id"])
def test_dotted_name_returns_the_struct_with_that_field_alone(tmp_path, mapping):
    table = TableBuilder(tmp_path).create(NESTED, column_mapping=mapping).append(NESTED_ROWS)
    assert found(table, ["who.AGE", "id"]) == {"Who": [{"age": 1}, None, {"age": 2}], "id": [1, 2, 3]}
    assert found(table, ["who.age", "who.name"]) == found(table, ["Who"])
    assert found(table, ["all.element.name"]) == {"all": [[{"name": "ann"}, None], None, []]}
    assert found(table, ["by.value.age"]) == {"by": [[("x", {"age": 2})], None, []]}


@pytest.mark.parametrize("mapping", [None, "name", "id"])
def test_predicate_reaches_fields_that_are_not_handed_out(tmp_path, mapping):
    table = TableBuilder(tmp_path).create(NESTED, column_mapping=mapping).append(NESTED_ROWS)
    assert found(table, ["who.name"], predicate="Who.age > 1") == {"Who": [{"name": "bob"}]}
    assert found(table, ["id"], predicate="who.age is null") == {"id": [2]}
    assert found(table, ["id"], predicate="Who is not null and size(`all`) = 0") == {"id": [3]}


def test_name_with_a_dot_is_a_column_of_its_own(tmp_path):
    schema = StructType([Field("a.b", "long"), Field("a", StructType([Field("b", "long")]))])
    table = TableBuilder(tmp_path).create(schema, column_mapping="name").append([{"a.b": 1, "a": {"b": 2}}])
    assert found(table, ["a.b"]) == {"a.b": [1]}
    assert found(table, ["`a.b`", "a"]) == {"a.b": [1], "a": [{"b": 2}]}


def test_void_columns_are_null_in_results_and_predicates(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long", "v": "void"}).append([{"id": 1}])
    assert found(table) == {"id": [1], "v": [None]}
    assert found(table, ["id"], predicate="v is null") == {"id": [1]}


# --- partitions and paths ------------------------------------------------------------------


@pytest.mark.parametrize("mapping", [None, "name", "id"])
@pytest.mark.parametrize("others", [{}, {"gone": "void"}, {"who": PERSON}])
@pytest.mark.parametrize("partitions", [[], ["kind"]])
def test_all_columns_are_planned_as_each_of_them_by_its_name(tmp_path, mapping, others, partitions):
    fields = {"id": "long", "kind": "string", **others, "Text": "string"}
    table = TableBuilder(tmp_path).create(fields, partition_by=partitions, column_mapping=mapping)
    table.append([{"id": 1, "kind": "a", "Text": "x"}, {"id": 2, "kind": "a", "Text": "y"}])
    whole, named = scan(table, predicate="id = 1"), scan(table, list(fields), predicate="id = 1")
    assert whole.plan == named.plan
    assert whole.to_table() == named.to_table() == scan(table).to_table().slice(0, 1)


def test_partition_values_win_over_what_the_file_holds(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long", "p": "integer"}, partition_by=["p"])
    table.append([{"id": 1, "p": 7}], materialize_partitions=True, partitionValues={"p": "8"})
    assert found(table) == {"id": [1], "p": [8]}


def test_timestamp_partitions_without_a_zone_are_read_in_the_given_one(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long", "t": "timestamp"}, partition_by=["t"])
    table.append([{"id": 1, "t": None}], partitionValues={"t": "2020-07-01 00:00:00"})
    tokyo = open_snapshot(table.uri, timezone="Asia/Tokyo").scan(["t"]).to_table().column(0)
    assert tokyo.cast(pa.int64()).to_pylist() == [(1_593_561_600 - 9 * 3600) * 1_000_000]
    assert open_snapshot(table.uri, timezone="Asia/Tokyo").scan(predicate="t < '2020-06-30T16:00:00Z'").count() == 1
    assert open_snapshot(table.uri).scan(predicate="t < '2020-06-30T16:00:00Z'").count() == 0


@pytest.mark.parametrize("name", ["a b+c.parquet", "100%25.parquet", "a%20b.parquet", "ü&[x].parquet", "x=1:2/é #?"])
def test_odd_file_names_are_decoded_once(tmp_path, name):
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}], path=name)
    assert found(table, metadata=["_file_path"]) == {"id": [1], "_file_path": [str(tmp_path / name)]}


def test_absolute_paths_are_used_as_they_are(tmp_path):
    other = TableBuilder(tmp_path / "other place").create({"id": "long"}).append([{"id": 1}])
    action = other.add_actions([{"id": 2}], path="x%y.parquet")[0]["add"]
    clone = TableBuilder(tmp_path / "clone").create({"id": "long"})
    root = (tmp_path / "other place").as_uri()
    clone.commit({"add": {**action, "path": f"{root}/{action['path']}"}})
    assert found(clone) == {"id": [2]}


def test_missing_data_file_is_named(plain):
    plain.drop(plain.paths()[1])
    with pytest.raises(DataFileNotFoundError, match=plain.paths()[1]):
        scan(plain).to_table()


# --- vectors -------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["u", "p", "i"])
@pytest.mark.parametrize("runs", [False, True])
def test_deleted_rows_are_not_read(tmp_path, storage, runs):
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"])
    table.append([{"id": i} for i in range(100)], files=3, parquet={"row_group_size": 7})
    table.delete_rows(lambda r: 20 < r["id"] < 40 or r["id"] % 10 == 0, storage=storage, runs=runs)
    assert found(table) == table.expected().to_pydict()
    assert scan(table).count() == table.expected().num_rows


def test_positions_count_deleted_rows_and_pruned_groups(with_vectors, tmp_path):
    got = found(with_vectors, ["id"], metadata=["_file_row_index"], predicate="id > 30 and kind = 'a'")
    assert got == {"id": [32, 34, 38], "_file_row_index": [6, 7, 9]}


def test_vector_beyond_the_file_is_rejected(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"]).append([{"id": 1}, {"id": 2}])
    table.delete_rows({table.paths()[0]: [5]})
    with pytest.raises(DataFileError, match="row 5") as e:
        scan(table).to_table()
    assert e.value.path == table.paths()[0]


def test_missing_vector_file_is_named(with_vectors, tmp_path):
    vector = next(tmp_path.glob("deletion_vector_*.bin"))
    vector.unlink()
    with pytest.raises(DataFileNotFoundError, match=vector.name):
        scan(with_vectors).to_table()


def test_many_windows_of_vectors(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "WINDOW_VECTORS", 3)
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"])
    table.append([{"id": i} for i in range(80)], files=40).delete_rows(lambda r: r["id"] % 4 == 1)
    assert found(table) == table.expected().to_pydict()


# --- metadata columns and rules ------------------------------------------------------------


def plugin(*rules, name="thirdParty"):
    class Plugin:
        FEATURE = TableFeature(name, "writer")

        @hookimpl
        def read_rules(self):
            return rules

    return Plugin()


def ruled(tmp_path, *rules, features=("thirdParty",)):
    table = TableBuilder(tmp_path).create({"id": "long", "text": "string"}, features=features)
    return table.append([{"id": i, "text": "x"} for i in range(6)]), PluginRegistry([plugin(*rules)])


def test_file_metadata_columns(plain):
    got = found(plain, ["id"], metadata=["_file_row_index", "_file_path"])
    assert got["_file_row_index"] == [0, 1, 2, 3, 4] * 2
    assert got["_file_path"] == [f"{plain.uri}/{p}" for p in plain.paths() for _ in range(5)]


def test_unknown_metadata_column_lists_what_is_offered(plain):
    with pytest.raises(ColumnNotFoundError, match="_file_path, _file_row_index"):
        scan(plain, metadata=["_nope"])


def test_metadata_column_never_shadows_a_column_of_the_table(tmp_path):
    table = TableBuilder(tmp_path).create({"_file_path": "string"}).append([{"_file_path": "mine"}])
    assert found(table) == {"_file_path": ["mine"]}
    with pytest.raises(InvalidArgumentError, match="of its own"):
        scan(table, metadata=["_file_path"])


def test_metadata_column_of_a_feature(tmp_path):
    doubled = MetadataColumn("thirdParty", "_twice", LONG, Call("*", (Column(("id",)), literal(2, LONG))))
    place = MetadataColumn("thirdParty", "_size", LONG, FileConstant("size", LONG))
    at = MetadataColumn("thirdParty", "_at", LONG, RowPosition())
    hidden = MetadataColumn("thirdParty", "_hidden", STRING, PhysicalColumn("text", STRING))
    gone = MetadataColumn("thirdParty", "_gone", STRING, PhysicalColumn("not_there", STRING))
    table, plugins = ruled(tmp_path, doubled, place, at, hidden, gone)
    got = found(table, ["text"], metadata=["_twice", "_at", "_hidden", "_gone"], predicate="id > 3", plugins=plugins)
    assert got == {"text": ["x"] * 2, "_twice": [8, 10], "_at": [4, 5], "_hidden": ["x"] * 2, "_gone": [None] * 2}
    size = (tmp_path / table.paths()[0]).stat().st_size
    assert found(table, [], metadata=["_size"], plugins=plugins)["_size"] == [size] * 6


def test_two_claims_on_one_metadata_column_conflict(tmp_path):
    one = MetadataColumn("thirdParty", "_file_path", STRING, literal("x"))
    table, plugins = ruled(tmp_path, one)
    with pytest.raises(PluginConflictError, match="_file_path"):
        scan(table, plugins=plugins)


def test_row_filter_hides_rows(tmp_path):
    table, plugins = ruled(tmp_path, RowFilter("thirdParty", Call("<", (Column(("id",)), literal(3, LONG)))))
    assert found(table, ["text"], plugins=plugins) == {"text": ["x"] * 3}
    assert found(table, ["id"], predicate="id > 1", plugins=plugins) == {"id": [2]}
    assert scan(table, plugins=plugins).count() == 3


def test_check_reads_its_columns_and_names_file_and_row(tmp_path):
    check = ReadCheck("thirdParty", "small", Call("<", (Column(("id",)), literal(4, LONG))), "ids are below 4")
    table, plugins = ruled(tmp_path, check)
    with pytest.raises(DataFileError, match="ids are below 4") as e:
        scan(table, ["text"], plugins=plugins).to_table()
    assert (e.value.row, e.value.check, e.value.path) == (4, "small", table.paths()[0])


def test_no_filter_hides_rows_from_a_check_but_deleted_ones_are_not_checked(tmp_path):
    check = ReadCheck("thirdParty", "small", Call("<", (Column(("id",)), literal(4, LONG))), "ids are below 4")
    table, plugins = ruled(tmp_path, check, features=("thirdParty", "deletionVectors"))
    with pytest.raises(DataFileError, match="Row 4"):
        scan(table, predicate="id = 0", plugins=plugins).to_table()
    with pytest.raises(DataFileError, match="Row 4"):
        scan(table, plugins=plugins).count()
    table.delete_rows(lambda r: r["id"] > 3)
    assert found(table, ["id"], plugins=plugins) == {"id": [0, 1, 2, 3]}


def test_check_passes_null(tmp_path):
    check = ReadCheck("thirdParty", "n", Call("<", (PhysicalColumn("gone", LONG), literal(0, LONG))), "never")
    table, plugins = ruled(tmp_path, check)
    assert scan(table, plugins=plugins).to_table().num_rows == 6


def test_answer_that_is_no_rule_is_rejected(tmp_path):
    table, plugins = ruled(tmp_path, "a rule")
    with pytest.raises(HookContractError, match="a rule"):
        scan(table, plugins=plugins)


def test_hooks_are_requested_once_however_many_files(tmp_path):
    calls = []

    class Counting:
        FEATURE = TableFeature("thirdParty", "writer")

        @hookimpl
        def read_rules(self):
            calls.append(1)
            return ()

    table = TableBuilder(tmp_path).create({"id": "long"}, features=["thirdParty"])
    table.append([{"id": i} for i in range(30)], files=30)
    scan(table, plugins=PluginRegistry([Counting()])).to_table()
    assert calls == [1]


# --- predicates, limits, counts ------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["id >= 3 and kind = 'a'", "kind = 'b' or id = 0", "not (id < 7)", "id in (1, 2) and kind <> 'a'"]
)
def test_predicates_choose_the_rows_for_which_they_are_true(with_vectors, text):
    expected = duckdb.from_arrow(with_vectors.expected()).filter(text).fetchall()
    got = scan(with_vectors, predicate=text).to_table()
    assert sorted(got.to_pylist(), key=str) == sorted(
        ({"id": i, "kind": k, "text": t} for i, k, t in expected), key=str
    )
    assert scan(with_vectors, predicate=text).count() == len(expected)


def test_names_with_dots_and_backticks_are_requested_in_backticks(tmp_path):
    inner = pa.struct([("x.y", pa.int64()), ("z`", pa.int64())])
    schema = pa.schema([("a.b", pa.int64()), ("`q`", pa.int64()), ("s", inner)])
    table = (
        TableBuilder(tmp_path / "t")
        .create(schema, column_mapping="name")
        .append([{"a.b": 1, "`q`": 2, "s": {"x.y": 3, "z`": 4}}])
    )
    snapshot = open_snapshot(table.uri)
    asked = ["`a.b`", "```q```", "s.`x.y`", "s.`z```"]
    assert snapshot.scan(asked).to_table().to_pylist() == [{"a.b": 1, "`q`": 2, "s": {"x.y": 3, "z`": 4}}]
    for name, value in zip(asked, (1, 2, 3, 4), strict=True):
        assert snapshot.scan(predicate=f"{name} = {value}").count() == 1
        assert snapshot.scan(predicate=[(name, "=", value)]).count() == 1
    for broken in ("`a", "`a`b", "s.`x.y"):
        with pytest.raises(ExpressionError, match="a backtick too many"):
            snapshot.scan([broken])


def test_files_lists_what_is_planned(with_vectors):
    planned = scan(with_vectors, predicate="kind = 'a' and id > 30").files()
    assert planned.num_rows == 1
    assert {"path", "size", "deletionVector", "partitionValues"} <= set(planned.column_names)


def test_files_return_the_columns_that_are_requested(with_vectors):
    planned = scan(with_vectors, predicate="kind = 'a' and id > 30").files(["path", "stats"])
    assert planned.column_names == ["path", "stats"]
    assert '"numRecords"' in planned.column("stats")[0].as_py()
    with pytest.raises(ColumnNotFoundError, match="no column 'sise'; they have: path, "):
        scan(with_vectors).files(["path", "sise"])


def test_partition_predicate_alone_counts_without_reading(with_vectors):
    for path in with_vectors.paths():
        with_vectors.drop(path)
    assert scan(with_vectors, predicate="kind = 'b'").count() == 13


def test_count_reads_footers_where_statistics_are_missing(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}, {"id": 2}], statistics=False)
    table.append([{"id": 3}])
    assert scan(table).count() == 3
    assert scan(table, limit=2).count() == 2


@pytest.mark.parametrize("limit", [0, 1, 5, 6, 25, 26, 100])
def test_limit_returns_the_first_rows(with_vectors, limit):
    everything = found(with_vectors)
    assert found(with_vectors, limit=limit) == {k: v[:limit] for k, v in everything.items()}
    assert scan(with_vectors, limit=limit).count() == min(limit, 26)


def test_limit_opens_no_more_files_than_statistics_request(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": i} for i in range(40)], files=20)
    for path in table.paths()[3:]:
        table.drop(path)
    assert len(found(table, limit=6)["id"]) == 6


def test_limit_does_not_trust_statistics_that_promise_too_much(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long"})
    table.append([{"id": 1}], statistics={"numRecords": 50}).append([{"id": 2}])
    assert sorted(found(table, limit=2)["id"]) == [1, 2]


@pytest.mark.parametrize("limit", [-1, 1.5, True, "3"])
def test_limit_that_is_no_count_is_rejected(plain, limit):
    with pytest.raises(InvalidArgumentError, match="limit"):
        scan(plain, limit=limit)


def test_null_in_a_column_without_nulls_is_rejected(tmp_path):
    schema = StructType([Field("id", "long", False)])
    table = TableBuilder(tmp_path).create(schema).append(pa.table({"id": [1, 2]}))
    assert scan(table).schema == pa.schema([pa.field("id", pa.int64(), False)])
    table.append(pa.table({"id": pa.array([None], pa.int64())}))
    with pytest.raises(DataFileError, match="holds nulls"):
        scan(table).to_table()


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from("abc")), min_size=1, max_size=30), st.data())
def test_any_rows_vectors_predicate_and_limit(tmp_path_factory, values, data):
    root = tmp_path_factory.mktemp("any")
    table = TableBuilder(root).create({"id": "long", "kind": "string"}, features=["deletionVectors"])
    parquet = {"row_group_size": data.draw(st.integers(1, 10))}
    table.append([{"id": i, "kind": k} for i, k in values], files=data.draw(st.integers(1, 4)), parquet=parquet)
    table.delete_rows(lambda r: r["id"] % 2 == 0)
    low = data.draw(st.integers(0, 99))
    expected = [i for i, k in values if i % 2 and i >= low and k != "c"]
    got = found(table, ["id"], predicate=f"id >= {low} and kind <> 'c'")["id"]
    assert sorted(got) == sorted(expected)
    assert scan(table, predicate=f"id >= {low} and kind <> 'c'").count() == len(expected)
    some = found(table, ["id"], predicate=f"id >= {low} and kind <> 'c'", limit=3)["id"]
    assert some == got[:3]


# --- files made elsewhere ------------------------------------------------------------------


def test_given_files_with_constants_and_kept_rows(with_vectors):
    snapshot = open_snapshot(with_vectors.uri)
    files = snapshot.files.columns(["path", "size", "partitionValues", "deletionVector"]).slice(0, 2)
    files = files.append_column("why", pa.array(["one", "two"])).append_column("at", pa.array([5, 6]))
    following = Call("+", (FileConstant("at", LONG), literal(1, LONG)))
    constants = {"_why": ("why", STRING), "_at": ("at", LONG), "_next": (following, LONG)}
    keep = {1: RowSet.from_positions([0, 1, 2, 3])}
    got = snapshot.scan(["id"], files=FileSet.of(files, keep=keep), constants=constants, purpose="changes").to_table()
    whole = snapshot.scan(["id"], files=FileSet.of(files.slice(0, 1))).to_table()
    assert got.column("_why").to_pylist() == ["one"] * whole.num_rows + ["two"] * (got.num_rows - whole.num_rows)
    assert set(got.column("_next").to_pylist()) == {6, 7}
    kept = snapshot.scan(["id"], ["_file_row_index"], files=FileSet.of(files.slice(1))).to_table()
    assert got.column("id").to_pylist()[whole.num_rows :] == [
        i for i, at in zip(kept["id"].to_pylist(), kept["_file_row_index"].to_pylist(), strict=True) if at < 4
    ]


def test_predicate_over_partitions_holds_for_files_with_kept_rows_too(with_vectors):
    snapshot = open_snapshot(with_vectors.uri)
    files = snapshot.files.columns(["path", "size", "partitionValues", "deletionVector"])
    keep = {n: RowSet.from_range(0, 5) for n in range(files.num_rows)}
    got = snapshot.scan(predicate="kind = 'a'", files=FileSet.of(files, keep=keep)).to_table()
    assert set(got.column("kind").to_pylist()) == {"a"}
    assert snapshot.scan(predicate="kind = 'a'", files=FileSet.of(files, keep=keep)).count() == got.num_rows


def test_constant_named_as_a_column_is_rejected(plain):
    snapshot = open_snapshot(plain.uri)
    with pytest.raises(InvalidArgumentError, match="Two columns"):
        snapshot.scan(constants={"id": ("size", LONG)})


# --- streams -------------------------------------------------------------------------------


def test_stream_goes_to_other_libraries_without_a_table(with_vectors):
    expected = with_vectors.expected().num_rows
    assert polars.from_arrow(scan(with_vectors).to_table()).height == expected
    assert polars.DataFrame(scan(with_vectors)).height == expected
    stream = scan(with_vectors)
    assert duckdb.sql("select count(*) from stream").fetchall() == [(expected,)]
    assert stream.schema.names == ["id", "kind", "text"]
    assert pa.table(scan(with_vectors)).num_rows == expected


def test_dropping_a_reader_stops_the_threads(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": i} for i in range(400)], files=40)
    reader = scan(table).to_reader()
    reader.read_next_batch()
    del reader
    assert "delta-read" not in running_threads()


def test_empty_table_has_its_schema(tmp_path):
    table = TableBuilder(tmp_path).create({"id": "long"})
    assert scan(table).to_table() == pa.table({"id": pa.array([], pa.int64())})
    assert scan(table).count() == 0


def test_constant_names_columns_ignoring_case_and_rejects_unknown_ones(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 7}])
    snapshot = open_snapshot(table.uri)
    long = PrimitiveType("long")
    found = snapshot.scan(columns=[], constants={"x": (Column(("ID",)), long)}).to_table()
    assert found.to_pydict() == {"x": [7]}
    with pytest.raises(ColumnNotFoundError, match="Did you mean 'id'"):
        snapshot.scan(constants={"x": (Column(("idd",)), long)})
