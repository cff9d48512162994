"""The hook column_encodings: what it may return, what files and log have then, and what is rejected by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from delta_core import DeltaTable
from delta_core.api import (
    Call,
    Column,
    ColumnEncoding,
    Expression,
    Function,
    Literal,
    PhysicalColumn,
    PrimitiveType,
    ReadCheck,
    RowFilter,
    Schema,
    TableFeature,
    WriteOptions,
    create_table,
    hookimpl,
    open_context,
    write_table,
)
from delta_core.errors import (
    CommitConflictError,
    HookContractError,
    InvalidArgumentError,
    PluginConflictError,
    PluginError,
    SchemaError,
    TypeChangeError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.options import AddAction
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.operations.register import register_files
from tests.hooks.encoded_tables import BOUNDS, COLUMNS, NAME, PLUGINS, append, encoded, opened

ROWS = pa.table(
    {
        "n": pa.array([1, 2, None, 40], pa.int64()),
        "text": ["az", "bb", None, "ca"],
        "plain": pa.array([1, 2, 3, 4], pa.int64()),
    }
)
STRING, LONG, BINARY = (PrimitiveType(t) for t in ("string", "long", "binary"))
TEXT = Column(("text",))
REVERSED = Call("reverse", (TEXT,))


def test_hook_column_encodings_changes_what_files_store_and_not_what_tables_have(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n,text")
    (path,) = (tmp_path / "t").glob("*.parquet")
    stored = pq.read_table(path)
    assert stored["n"].to_pylist() == [-1, -2, None, -40]
    assert stored["text"].to_pylist() == ["za", "bb", None, "ac"]
    assert opened(uri).scan().to_table().equals(ROWS)
    assert opened(uri).schema.to_arrow().types == ROWS.schema.types


def test_log_has_the_number_of_nulls_and_no_bounds(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n,text")
    (text,) = opened(uri).files.columns(["stats"]).column(0).to_pylist()
    found = json.loads(text)
    assert found["nullCount"] == {"n": 1, "text": 1, "plain": 0}
    assert found["minValues"] == {"plain": 1}
    assert found["maxValues"] == {"plain": 4}


def test_log_has_bounds_of_values_if_the_encoding_allows_it(tmp_path: Path) -> None:
    types = {"d": pa.date32(), "t": pa.timestamp("us", "UTC"), "x": pa.decimal128(30, 2), "i": pa.int32()}
    more = {n: pa.array([None, 1, -5, 3], pa.int32()).cast(pa.int64()) for n in "dtxi"}
    rows = ROWS
    for name, t in types.items():
        values = more[name].cast(pa.int32()).cast(t) if name == "d" else more[name].cast(t)
        rows = rows.append_column(name, values)
    uri = encoded(tmp_path / "t", rows, "n,text,d,t,x,i", {BOUNDS: "true"})
    plain = encoded(tmp_path / "plain", rows, "")
    append(uri, rows.slice(0, 2))
    append(plain, rows.slice(0, 2))
    found, expected = (sorted(opened(u).files.columns(["stats"]).column(0).to_pylist()) for u in (uri, plain))
    assert [json.loads(t) for t in found] == [json.loads(t) for t in expected]
    snapshot = opened(uri)
    assert snapshot.scan(predicate="n > 2").files().num_rows == 1
    assert snapshot.scan(predicate="n > 2").count() == 1
    assert snapshot.scan(predicate="text = 'bb' and x <= 1").count() == 2
    assert DeltaTable(uri, plugins=PLUGINS).verify(deep="rows").ok


PREDICATES = [
    "n = 40", "n > 1", "n < 2", "n in (1, 40)", "n is null", "n is not null", "text = 'az'", "text >= 'bb'",
    "text like 'a%'", "text in ('ca', 'x')", "text <=> null", "n = 2 and text = 'bb'", "n = 2 or text = 'ca'",
    "upper(text) = 'AZ'", "n + plain = 44", "plain = 4", "not (n = 40)",
]  # fmt: skip


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("columns", [None, ["plain"], ["text"], ["n", "text"]])
def test_predicate_selects_rows_by_their_values(tmp_path: Path, predicate: str, columns: list[str] | None) -> None:
    (coded, plain) = (encoded(tmp_path / c, ROWS, c) for c in ("n,text", ""))
    for uri in (coded, plain):
        append(uri, ROWS.slice(0, 2))
    options: dict[str, Any] = {"columns": columns, "predicate": predicate}
    expected = opened(plain).scan(**options).to_table()
    assert expected.equals(opened(coded).scan(**options).to_table())
    assert opened(coded).scan(**options).count() == expected.num_rows


def test_bounds_that_another_writer_logged_are_not_used(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n")
    (log,) = (tmp_path / "t" / "_delta_log").glob("*1.json")
    text = log.read_text().replace('\\"minValues\\":{', '\\"minValues\\":{\\"n\\":-40,')
    log.write_text(text.replace('\\"maxValues\\":{', '\\"maxValues\\":{\\"n\\":-1,'))
    assert opened(uri).scan(predicate="n = 40").count() == 1
    assert opened(uri).scan(predicate="n = 40").explain().files[-1].files == 1


def test_files_without_nulls_are_skipped_for_nulls(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS.slice(0, 2), "n")
    append(uri, ROWS.slice(2, 2))
    assert opened(uri).scan(predicate="n is null").files().num_rows == 1


def test_file_without_the_column_has_nulls(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS.select(["plain"]), "n")
    write_table(open_context(uri, plugins=PLUGINS), ROWS, WriteOptions(mode="append", schema_mode="merge"))
    snapshot = opened(uri)
    assert list(snapshot.state.encodings) == ["n"]
    assert snapshot.scan(predicate="n = 40").count() == 1
    assert snapshot.scan(predicate="n is null").count() == 5


def test_row_group_bounds_of_stored_values_skip_nothing(tmp_path: Path) -> None:
    rows = pa.table({"n": pa.array(range(50_000), pa.int64()), "text": [f"{i:05}" for i in range(50_000)]})
    uri = encoded(tmp_path / "t", rows, "n,text", {"parquet.block.size": "10000"})
    for predicate in ("n = 49999", "text = '00090'", "n between 20 and 21 and text < '1'"):
        assert opened(uri).scan(predicate=predicate).count() == (2 if "between" in predicate else 1)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_encoded_columns_have_physical_names(tmp_path: Path, mode: str) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n,text", {"delta.columnMapping.mode": mode})
    assert opened(uri).scan().to_table().equals(ROWS)
    assert opened(uri).scan(["plain"], predicate="n = 40 and text = 'ca'").to_table().to_pylist() == [{"plain": 4}]


# --- rules of other features ---


@dataclass(eq=False)
class Coder:
    """A feature of the column ``text``, with expressions of its own."""

    encode: Expression = REVERSED
    decode: Expression = REVERSED
    stored: Any = STRING
    column: Any = ("text",)
    kind: Any = "reader+writer"
    name: str = "probe.coder"
    functions: tuple[Function, ...] = ()
    statistics: bool = False

    def __post_init__(self) -> None:
        self.FEATURE = TableFeature(self.name, self.kind, "Encodes text.")
        found = ColumnEncoding(self.name, self.column, self.stored, self.encode, self.decode, self.statistics)
        own = self.functions
        self.column_encodings = hookimpl(lambda table: [found])
        if own:
            self.functions_hook = hookimpl(lambda features: own, specname="functions")


def made(tmp_path: Path, *plugins: Any, rows: pa.Table = ROWS, **options: Any) -> DeltaTable:
    registry = PluginRegistry(plugins)
    context = open_context(str(tmp_path), plugins=registry)
    names = [p.FEATURE.name for p in plugins]
    create_table(context, Schema.from_arrow(rows.schema), features=names, **options)
    write_table(context, rows, WriteOptions(mode="append"))
    return DeltaTable(str(tmp_path), plugins=registry)


class Rules:
    """A feature with rules over an encoded column, by its logical and by its physical name."""

    FEATURE = TableFeature("probe.rules", "reader+writer", "Hides and checks rows.")

    @staticmethod
    @hookimpl
    def read_rules() -> Any:
        physical = PhysicalColumn("text", STRING)
        return [
            RowFilter("probe.rules", Call("!=", (physical, Literal("bb", STRING)))),
            ReadCheck("probe.rules", "text", Call("!=", (TEXT, Literal("za", STRING))), "is stored"),
        ]


def test_rules_of_other_features_see_values(tmp_path: Path) -> None:
    table = made(tmp_path, Coder(), Rules)
    assert table.scan(["plain"]).to_table()["plain"].to_pylist() == [1, 4]


# --- what is rejected ---


def test_two_encodings_of_a_column_conflict(tmp_path: Path) -> None:
    with pytest.raises(PluginConflictError, match=r"'text' is encoded by probe\.\w+ and by probe\.\w+"):
        made(tmp_path, Coder(), Coder(name="probe.second"))


def test_partition_column_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"'text' partitions the table, and probe\.coder encodes it"):
        made(tmp_path, Coder(), partition_by=["text"])


def test_clustering_column_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"clustering requires statistics of column 'text'"):
        made(tmp_path, Coder(), cluster_by=["text"])
    table = made(tmp_path / "t", Coder())
    with pytest.raises(InvalidArgumentError, match=r"clustering requires statistics of column 'text'"):
        table.alter.cluster_by(["text"])


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"kind": "writer"}, r"readers may ignore the feature; expected FEATURE\.kind 'reader\+writer'"),
        ({"stored": PrimitiveType("void")}, r"ColumnEncoding\.stored.*expected a primitive type"),
        ({"stored": PrimitiveType("gone")}, r"ColumnEncoding\.stored.*expected a primitive type"),
        ({"column": ("gone",)}, r"encodes a column that is not there"),
        ({"stored": LONG}, "Encode of column 'text'.*expression of type STRING; expected BIGINT"),
        ({"decode": Call("length", (TEXT,))}, "Decode of column 'text'.*expression of type INT; expected STRING"),
        ({"encode": Column(("plain",))}, r"ColumnEncoding\.encode.*another column than the one it is for"),
        ({"encode": Literal("x", STRING)}, r"ColumnEncoding\.encode.*over the column 'text' alone"),
        ({"decode": PhysicalColumn("text", STRING)}, r"ColumnEncoding\.decode.*over the column 'text' alone"),
        ({"column": "text"}, r"ColumnEncoding\.column='text'; expected a tuple"),
    ],
)
def test_encoding_that_does_not_fit_is_rejected_with_plugin_and_hook(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    with pytest.raises(HookContractError, match=text) as error:
        made(tmp_path, Coder(**wrong))
    assert "probe.coder" in str(error.value)
    assert "column_encodings" in str(error.value)


def test_nested_column_is_rejected(tmp_path: Path) -> None:
    rows = pa.table({"text": [{"a": "x"}]})
    for column in (("text",), ("text", "a")):
        with pytest.raises(HookContractError, match=r"expected a top-level column of a primitive type"):
            made(tmp_path, Coder(column=column), rows=rows)


def result_of(kind: pa.DataType) -> Callable[[list[pa.DataType]], pa.DataType]:
    return lambda types: kind


def coder_of(arrays: Callable[..., Any], stored: str = "binary", **more: Any) -> Coder:
    kind = pa.binary() if stored == "binary" else pa.string()
    encode = Function("probe.coder", "probe_encode", result_of(kind), arrays)
    decode = Function("probe.coder", "probe_decode", result_of(pa.string()), lambda a: a.cast(pa.string()))
    return Coder(
        Call("probe_encode", (TEXT,)),
        Call("probe_decode", (TEXT,)),
        PrimitiveType(stored),
        functions=(encode, decode),
        **more,
    )


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (lambda a: a, "returned 0 values of string; expected an Arrow array of 0 values of binary"),
        (lambda a: a.cast(pa.binary()).slice(1), "returned 3 values of binary"),
        (lambda a: None, "returned NoneType"),
        (lambda a: pc.fill_null(a, "").cast(pa.binary()), "returned 0 nulls for 1 nulls in column 'text'"),
        (lambda a: pa.nulls(len(a), pa.binary()), "returned 4 nulls for 1 nulls in column 'text'"),
    ],
)
def test_wrong_result_of_encode_is_rejected_and_nothing_is_written(
    tmp_path: Path, arrays: Callable[..., Any], text: str
) -> None:
    with pytest.raises(HookContractError, match=text) as error:
        made(tmp_path, coder_of(arrays))
    assert "probe.coder" in str(error.value)
    assert list(tmp_path.glob("*.parquet")) == []


def decoded_by(arrays: Callable[[pa.Array], pa.Array], *, statistics: bool = False) -> Coder:
    """Return a coder whose files hold texts as bytes, and that decodes them by a function."""
    encode = Function("probe.coder", "probe_encode", result_of(pa.binary()), lambda a: a.cast(pa.binary()))
    decode = Function("probe.coder", "probe_decode", result_of(pa.string()), arrays)
    calls = Call("probe_encode", (TEXT,)), Call("probe_decode", (TEXT,))
    return Coder(*calls, BINARY, functions=(encode, decode), statistics=statistics)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (lambda a: pa.nulls(len(a), pa.string()), r"decode of hook .* returned \d nulls for 1 nulls in column 'text'"),
        (lambda a: pc.fill_null(a.cast(pa.string()), "x"), "returned 0 nulls for 1 nulls in column 'text'"),
        (lambda a: pa.concat_arrays([a[1:], a[:1]]).cast(pa.string()), "nulls for the same number of nulls"),
    ],
)
def test_value_that_is_decoded_as_null_is_not_lost(
    tmp_path: Path, arrays: Callable[[pa.Array], pa.Array], text: str
) -> None:
    good, bad = (decoded_by(f) for f in (lambda a: a.cast(pa.string()), arrays))
    made(tmp_path, good, properties={"delta.enableDeletionVectors": "false"})
    table = DeltaTable(str(tmp_path), plugins=PluginRegistry([bad]))
    for change in (
        lambda: table.scan(["text"]).to_table(),
        lambda: table.update({"plain": "plain + 1"}),
        lambda: table.delete("plain = 2"),
        lambda: table.optimize.z_order(["plain"]),
    ):
        with pytest.raises(HookContractError, match=text) as error:
            change()
        assert "probe.coder" in str(error.value)
    assert table.version() == 1
    assert DeltaTable(str(tmp_path), plugins=PluginRegistry([good])).scan().to_table().equals(ROWS)


def test_value_that_is_decoded_as_null_is_not_written_with_bounds(tmp_path: Path) -> None:
    with pytest.raises(HookContractError, match=r"decode of hook .* returned 4 nulls for 1 nulls in column 'text'"):
        made(tmp_path, decoded_by(lambda a: pa.nulls(len(a), pa.string()), statistics=True))
    assert list(tmp_path.glob("*.parquet")) == []


def test_function_encodes_and_decodes_whole_batches(tmp_path: Path) -> None:
    calls: list[int] = []

    def encode(array: pa.Array) -> pa.Array:
        calls.append(len(array))
        return array.cast(pa.binary())

    table = made(tmp_path, coder_of(encode))
    assert [n for n in calls if n] == [4]
    assert table.scan().to_table().equals(ROWS)
    table.delete("plain = 2")
    assert [n for n in calls if n] == [4, 3]


def test_column_that_is_not_read_is_not_decoded(tmp_path: Path) -> None:
    table = made(tmp_path, coder_of(lambda a: a.cast(pa.binary())))

    def fail(array: pa.Array) -> pa.Array:
        raise AssertionError("was called")

    coder = coder_of(fail)
    broken = Function("probe.coder", "probe_decode", result_of(pa.string()), fail)
    coder = Coder(coder.encode, coder.decode, BINARY, functions=(coder.functions[0], broken))
    again = DeltaTable(table.table_uri, plugins=PluginRegistry([coder]))
    assert again.scan(["n", "plain"], predicate="plain > 2").to_table().num_rows == 2
    with pytest.raises(Exception, match="was called"):
        again.scan(["text"]).to_table()


# --- changes of the definition ---


def test_encoding_of_columns_that_files_hold_is_not_changed(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n")
    table = DeltaTable(uri, plugins=PLUGINS)
    for columns in ("text", "n,text"):
        with pytest.raises(SchemaError, match=rf"column \w+ is stored in another form \({NAME}\)"):
            table.alter.set_table_properties({COLUMNS: columns})
    with pytest.raises(SchemaError, match="column n is stored in another form"):
        table.alter.unset_table_properties([COLUMNS])
    assert opened(uri).scan().to_table().equals(ROWS)


def test_table_is_replaced_with_another_encoding(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n")
    context = open_context(uri, plugins=PLUGINS)
    options = WriteOptions(mode="overwrite", schema_mode="overwrite", properties={COLUMNS: "text"})
    write_table(context, ROWS, options)
    assert opened(uri).scan().to_table().equals(ROWS)
    assert list(opened(uri).state.encodings) == ["text"]
    assert context.read(1).scan().to_table().equals(ROWS)


def test_feature_is_dropped_with_its_encoding(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n,text")
    DeltaTable(uri, plugins=PLUGINS).alter.drop_feature(NAME)
    snapshot = opened(uri)
    assert NAME not in snapshot.state.features
    assert DeltaTable(uri).to_pyarrow_table().equals(ROWS)
    assert snapshot.scan(predicate="n = 40").count() == 1


def test_rename_that_the_feature_does_not_follow_is_rejected(tmp_path: Path) -> None:
    table = made(tmp_path, Coder(), properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(HookContractError, match="encodes a column that is not there"):
        table.alter.rename_column("text", "other")


def test_type_of_encoded_column_is_not_widened(tmp_path: Path) -> None:
    rows = pa.table({"n": pa.array([1], pa.int64()), "d": pa.array([1], pa.int32())})
    uri = encoded(tmp_path / "t", rows, "d", {"delta.enableTypeWidening": "true"})
    with pytest.raises((SchemaError, TypeChangeError), match=r"column d|Column d"):
        DeltaTable(uri, plugins=PLUGINS).alter.widen_type("d", "long")
    assert opened(uri).scan().to_table().equals(rows)


def test_without_its_plugin_a_table_is_rejected(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n")
    with pytest.raises(Exception, match=NAME):
        DeltaTable(uri)


def test_external_files_are_not_registered(tmp_path: Path) -> None:
    uri = encoded(tmp_path / "t", ROWS, "n")
    pq.write_table(ROWS, f"{uri}/other.parquet")
    add = AddAction("other.parquet", Path(uri, "other.parquet").stat().st_size, {})
    with pytest.raises(UnsupportedOperationError, match="files store column 'n' in another form"):
        register_files(open_context(uri, plugins=PLUGINS), opened(uri), [add], [])


# --- tables without files ---


@pytest.mark.parametrize("is_emptied", [False, True])
def test_encoding_is_enabled_and_disabled_while_the_table_has_no_file(tmp_path: Path, is_emptied: bool) -> None:
    uri = encoded(tmp_path / "t", ROWS, "") if is_emptied else str(tmp_path / "t")
    if is_emptied:
        DeltaTable(uri, plugins=PLUGINS).delete()
    else:
        create_table(open_context(uri, plugins=PLUGINS), Schema.from_arrow(ROWS.schema))
    last = opened(uri).version
    DeltaTable(uri, plugins=PLUGINS).alter.set_table_properties({COLUMNS: "n,text"})
    append(uri, ROWS)
    assert opened(uri).scan().to_table().equals(ROWS)
    stored = [pq.read_table(tmp_path / "t" / p) for p in opened(uri).files.columns(["path"]).column(0).to_pylist()]
    assert [t["text"].to_pylist() for t in stored] == [["za", "bb", None, "ac"]]
    if is_emptied:
        table = DeltaTable(uri, plugins=PLUGINS)
        table.load_as_version(1)
        assert table.scan().to_table().equals(ROWS)
        DeltaTable(uri, plugins=PLUGINS).restore(1)
        assert opened(uri).state.encodings == {}
        assert opened(uri).scan().to_table().equals(ROWS)
        DeltaTable(uri, plugins=PLUGINS).restore(last + 2)
        assert opened(uri).scan().to_table().equals(ROWS)
        assert list(opened(uri).state.encodings) == ["n", "text"]
    DeltaTable(uri, plugins=PLUGINS).delete()
    DeltaTable(uri, plugins=PLUGINS).alter.unset_table_properties([COLUMNS])
    append(uri, ROWS)
    assert opened(uri).state.encodings == {}
    assert opened(uri).scan().to_table().equals(ROWS)


@pytest.mark.parametrize("isolation", [None, "SnapshotIsolation"])
def test_encoding_that_is_enabled_while_files_are_added_is_rejected(tmp_path: Path, isolation: str | None) -> None:
    context = open_context(str(tmp_path), plugins=PLUGINS)
    create_table(context, Schema.from_arrow(ROWS.schema))
    base = context.read(None)
    level = None if isolation is None else IsolationLevel(isolation)
    transaction = Transaction(context, base, "SET TBLPROPERTIES", {}, isolation=level)
    configuration = {**base.metadata.configuration, COLUMNS: "n"}
    transaction.set_metadata(replace(base.metadata, configuration=configuration))
    append(str(tmp_path), ROWS)
    with pytest.raises(CommitConflictError):
        transaction.commit()
    assert opened(str(tmp_path)).scan().to_table().equals(ROWS)
    assert opened(str(tmp_path)).state.encodings == {}


# --- columns that only a predicate uses ---


def test_column_of_a_predicate_that_is_decoded_as_null_is_rejected(tmp_path: Path) -> None:
    good, bad = (decoded_by(f) for f in (lambda a: a.cast(pa.string()), lambda a: pa.nulls(len(a), pa.string())))
    made(tmp_path, good)
    table = DeltaTable(str(tmp_path), plugins=PluginRegistry([bad]))
    for predicate in ("text = 'az'", "plain > 1 and text <> 'x'", "text <=> null", "coalesce(text, 'x') = 'az'"):
        with pytest.raises(
            HookContractError, match=r"decode of hook .* returned \d nulls for 1 nulls in column 'text'"
        ):
            table.scan(["plain"], predicate=predicate).to_table()
        with pytest.raises(HookContractError, match="in column 'text'"):
            table.delete(predicate)
    assert table.version() == 1


@pytest.mark.parametrize("mapped", [False, True])
def test_null_of_an_encoded_column_is_tested_without_decoding(tmp_path: Path, mapped: bool) -> None:
    def fail(array: pa.Array) -> pa.Array:
        assert not len(array), "was called"
        return pa.nulls(0, pa.string())

    properties = {"delta.columnMapping.mode": "name"} if mapped else {}
    made(tmp_path, decoded_by(lambda a: a.cast(pa.string())), properties=properties)
    table = DeltaTable(str(tmp_path), plugins=PluginRegistry([decoded_by(fail)]))
    for predicate, expected in (
        ("text is null", [3]),
        ("text is not null", [1, 2, 4]),
        ("not (text is null) and plain > 1", [2, 4]),
        ("text is null or plain = 1", [1, 3]),
    ):
        assert table.scan(["plain"], predicate=predicate).to_table()["plain"].to_pylist() == expected
    with pytest.raises(PluginError, match="was called"):
        table.scan(["plain"], predicate="text is null or text = 'az'").to_table()
