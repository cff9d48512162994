"""What may be in a table's definition, and what of it may change while rows stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.engine import Engine
from delta_core.errors import ColumnNotFoundError, InvalidArgumentError, SchemaError, SchemaMismatchError
from delta_core.kernel.commit.options import AddAction, CommitProperties
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import NOT_IN_NAMES, Schema
from delta_core.schema.types import ArrayType, Field, MapType, StructType
from delta_core.testing.table_builder import TableBuilder

NAME = {"delta.columnMapping.mode": "name"}
LONG = Field("a", "long")


def create(path: Path, fields: Sequence[Field], **options: Any) -> str:
    DeltaTable.create(str(path), StructType(fields), **options)
    return str(path)


def alter(uri: str, fields: Sequence[Field], **options: Any) -> None:
    """Change the schema of a table whose rows stay."""
    snapshot = open_snapshot(uri)
    transaction = Transaction(snapshot.context, snapshot, "CHANGE COLUMNS")
    transaction.set_metadata(replace(snapshot.metadata, schema_string=StructType(fields).to_json(), **options))
    transaction.commit()


# --- names ---------------------------------------------------------------------------------


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let engines reject names as that of Spark does."""
    monkeypatch.setattr(Engine, "rejected_in_names", property(lambda self: NOT_IN_NAMES))


@pytest.mark.parametrize("name", [f"a{c}b" for c in " ,;{}()\n\t="])
def test_name_that_spark_rejects_is_taken_by_other_engines(tmp_path: Path, name: str) -> None:
    """deltalake makes such tables, and delta-spark reads them, appends and changes their rows."""
    uri = create(tmp_path / "t", [LONG, Field("s", StructType([Field(name, "long")])), Field(name, "string")])
    rows = pa.table({"a": [1], "s": [{name: 2}], name: ["x"]})
    write_deltalake(uri, rows, mode="append")
    DeltaTable(uri).alter.add_columns(Field(f"{name}2", "long"))
    table = DeltaTable(uri)
    table.update({f"`{name}`": "'y'"}, predicate=f"`{name}` = 'x'")
    assert table.to_pyarrow_table().to_pylist() == [{"a": 1, "s": {name: 2}, name: "y", f"{name}2": None}]
    assert (table.protocol().min_reader_version, table.metadata().configuration) == (1, {})


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", ["", *(f"a{c}b" for c in " ,;{}()\n\t=")])
@pytest.mark.parametrize("wrapped", ["column", "struct", "list", "map", "partition"])
def test_name_that_spark_rejects_is_rejected_without_column_mapping(tmp_path: Path, name: str, wrapped: str) -> None:
    """delta-spark, SchemaUtils.checkSchemaFieldNames: at every depth, partition columns too, if the mode is none."""
    inner = StructType([Field(name, "long")])
    kind = {"struct": inner, "list": ArrayType(inner), "map": MapType("string", inner)}.get(wrapped)
    fields = [LONG, Field(name, "long") if kind is None else Field("s", kind)]
    options = {"partition_by": [name]} if wrapped == "partition" else {}
    with pytest.raises(SchemaError, match=r"in its name|an empty name") as caught:
        create(tmp_path / "n", fields, **options)
    assert name in caught.value.column
    assert not (tmp_path / "n").exists()
    uri = create(tmp_path / "t", [LONG])
    with pytest.raises(SchemaError, match=r"in its name|an empty name"):
        alter(uri, fields)
    mapped = create(tmp_path / "m", fields, configuration=NAME, **options)
    assert open_snapshot(mapped).scan().to_table().schema.names == [f.name for f in fields]


@pytest.mark.usefixtures("strict")
def test_rows_provide_no_such_name_by_merging(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [LONG])
    with pytest.raises(SchemaError, match="in its name"):
        write_deltalake(uri, pa.table({"a": [1], "b c": [2]}), mode="append", schema_mode="merge")
    assert not list(Path(uri).glob("*.parquet"))


def test_mapped_table_takes_such_names(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [LONG], configuration=NAME)
    write_deltalake(uri, pa.table({"a": [1], "b c,;{}()\n\t=": [2]}), mode="append", schema_mode="merge")
    assert DeltaTable(uri).to_pyarrow_table().to_pylist() == [{"a": 1, "b c,;{}()\n\t=": 2}]


@pytest.mark.usefixtures("strict")
def test_table_that_has_such_names_is_written_and_altered_on(tmp_path: Path) -> None:
    """Other writers make them: what is there stays usable."""
    TableBuilder(tmp_path / "t").create({"a b": "long"}).append({"a b": [1]})
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"a b": [2], "c": [3]}), mode="append", schema_mode="merge")
    assert sorted(DeltaTable(uri).to_pyarrow_table().column("a b").to_pylist()) == [1, 2]
    with pytest.raises(SchemaError, match="in its name"):
        write_deltalake(uri, pa.table({"a b": [2], "c d": [3]}), mode="append", schema_mode="merge")


# --- half characters -----------------------------------------------------------------------

HALF = "\ud800x"
SURROGATES: dict[str, Callable[[Path, DeltaTable], object]] = {
    "column": lambda p, t: create(p, [Field(HALF, "long")]),
    "mapped column": lambda p, t: create(p, [Field(HALF, "long")], configuration=NAME),
    "field of a struct": lambda p, t: create(p, [Field("s", StructType([Field(HALF, "long")]))]),
    "metadata of a column": lambda p, t: create(p, [Field("a", "long", True, {"comment": HALF})]),
    "name": lambda p, t: create(p, [LONG], name=HALF),
    "description": lambda p, t: create(p, [LONG], description=HALF),
    "property": lambda p, t: create(p, [LONG], configuration={"my.own": HALF}),
    "name of a property": lambda p, t: create(p, [LONG], configuration={HALF: "1"}),
    "custom metadata": lambda p, t: write_deltalake(
        t, pa.table({"a": [1]}), mode="append", commit_properties=CommitProperties(custom_metadata={"k": HALF})
    ),
    "predicate in SQL": lambda p, t: t.to_pyarrow_table(filters=f"p = '{HALF}'"),
    "predicate in tuples": lambda p, t: t.to_pyarrow_table(filters=[("p", "in", ["x", HALF])]),
    "files of a partition": lambda p, t: t.file_uris([("p", "=", HALF)]),
    "constraint": lambda p, t: write_deltalake(t, pa.table({"a": [1]}), mode="overwrite", predicate=f"p = '{HALF}'"),
    "path of a file": lambda p, t: register(t, AddAction(HALF, 1, {"p": "x"}, 1, True, '{"numRecords":1}')),
    "partition value": lambda p, t: register(t, AddAction("f", 1, {"p": HALF}, 1, True, '{"numRecords":1}')),
    "statistics": lambda p, t: register(t, AddAction("f", 1, {"p": "x"}, 1, True, f'{{"n":"{HALF}"}}')),
}


def register(table: DeltaTable, add: AddAction) -> None:
    table.create_write_transaction([add], "append", table.schema())


@pytest.mark.parametrize("make", SURROGATES.values(), ids=SURROGATES)
def test_half_a_surrogate_pair_is_rejected_by_name(tmp_path: Path, make: Callable[[Path, DeltaTable], object]) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1], "p": ["x"]}), partition_by=["p"])
    table = DeltaTable(str(tmp_path / "t"))
    with pytest.raises(InvalidArgumentError, match="half of a surrogate pair"):
        make(tmp_path / "n", table)
    assert DeltaTable(str(tmp_path / "t")).version() == 0
    assert len(list((tmp_path / "t").rglob("*.parquet"))) == 1


# --- partition columns ---------------------------------------------------------------------


@pytest.fixture
def partitioned(tmp_path: Path) -> str:
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1, 2], "p": ["x", "y"]}), partition_by=["p"])
    return str(tmp_path / "t")


def overwrite(uri: str, data: dict[str, Any], partition_by: list[str] | None = None) -> tuple[list[str], list[Any]]:
    options: dict[str, Any] = {} if partition_by is None else {"partition_by": partition_by}
    write_deltalake(uri, pa.table(data), mode="overwrite", schema_mode="overwrite", **options)
    table = DeltaTable(uri)
    return table.metadata().partition_columns, table.to_pyarrow_table().to_pylist()


def test_partition_column_is_dropped_only_where_partitioning_is_reported_again(partitioned: str) -> None:
    with pytest.raises(SchemaMismatchError, match="'p', by which the table is partitioned"):
        overwrite(partitioned, {"a": [3], "q": ["z"]})
    assert overwrite(partitioned, {"a": [3], "q": ["z"]}, ["Q"]) == (["q"], [{"a": 3, "q": "z"}])
    assert overwrite(partitioned, {"a": [3]}, []) == ([], [{"a": 3}])


def test_partition_columns_reported_again_are_checked_as_of_a_new_table(partitioned: str) -> None:
    with pytest.raises(InvalidArgumentError, match="named twice"):
        overwrite(partitioned, {"a": [3], "q": ["z"]}, ["q", "Q"])
    with pytest.raises(InvalidArgumentError, match="Every column partitions"):
        overwrite(partitioned, {"q": ["z"]}, ["q"])
    with pytest.raises(ColumnNotFoundError, match="'z'"):
        overwrite(partitioned, {"a": [3]}, ["z"])
    with pytest.raises(SchemaError, match="no text form"):
        overwrite(partitioned, {"a": [3], "s": [{"x": 1}]}, ["s"])
    assert DeltaTable(partitioned).version() == 0


def test_partition_columns_are_spelled_as_the_new_schema_does(partitioned: str) -> None:
    assert overwrite(partitioned, {"a": [3], "P": ["z"]}) == (["P"], [{"a": 3, "P": "z"}])


def test_altering_drops_no_partition_column(partitioned: str) -> None:
    with pytest.raises(SchemaError, match="'p' partitions the table and would be dropped"):
        alter(partitioned, [LONG])


# --- nullability ---------------------------------------------------------------------------

REQUIRED = Field("b", "long", False)
TIGHTER: dict[str, tuple[Field, Field]] = {
    "column": (Field("b", "long"), REQUIRED),
    "field of a struct": (Field("s", StructType([Field("b", "long")])), Field("s", StructType([REQUIRED]))),
    "element": (Field("l", ArrayType("long")), Field("l", ArrayType("long", False))),
    "value": (Field("m", MapType("string", "long")), Field("m", MapType("string", "long", False))),
    "field within a list": (
        Field("l", ArrayType(StructType([Field("b", "long")]))),
        Field("l", ArrayType(StructType([REQUIRED]))),
    ),
}


@pytest.mark.parametrize(("old", "new"), TIGHTER.values(), ids=TIGHTER)
@pytest.mark.parametrize("properties", [{}, NAME], ids=["plain", "mapped"])
def test_what_may_be_null_does_not_become_required_while_rows_stay(
    tmp_path: Path, old: Field, new: Field, properties: dict[str, str]
) -> None:
    """delta-spark: no ALTER TABLE makes a column NOT NULL that rows may have nulls in."""
    uri = create(tmp_path / "t", [LONG, old], configuration=properties)
    with pytest.raises(SchemaError, match="may be null and would become NOT NULL"):
        alter(uri, [LONG, new])
    looser = create(tmp_path / "l", [LONG, new], configuration=properties)
    alter(looser, [LONG, old])


def test_new_column_is_not_required_while_rows_stay(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [LONG, Field("s", StructType([LONG]))])
    with pytest.raises(SchemaError, match="b is new and would become NOT NULL"):
        alter(uri, [LONG, Field("s", StructType([LONG])), REQUIRED])
    with pytest.raises(SchemaError, match=r"s\.b is new and would become NOT NULL"):
        alter(uri, [LONG, Field("s", StructType([LONG, REQUIRED]))])
    # a part of what is new is absent with it
    alter(
        uri,
        [LONG, Field("s", StructType([LONG])), Field("n", StructType([REQUIRED])), Field("m", MapType("long", "long"))],
    )


def test_rows_that_all_go_may_leave_a_stricter_schema(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"a": pa.array([1, None])}))
    strict = pa.schema([pa.field("a", pa.int64(), False)])
    write_deltalake(uri, pa.table({"a": [1]}, strict), mode="overwrite", schema_mode="overwrite")
    assert open_snapshot(uri).schema == Schema([Field("a", "long", False)])
    write_deltalake(uri, pa.table({"a": [2]}, strict), mode="append", schema_mode="merge")
    assert sorted(DeltaTable(uri).to_pyarrow_table().column("a").to_pylist()) == [1, 2]


def test_merging_stricter_rows_keeps_the_tables_nullability(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"a": pa.array([1, None])}))
    strict = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False)])
    write_deltalake(uri, pa.table({"a": [1], "b": [1]}, strict), mode="append", schema_mode="merge")
    assert all(f.nullable for f in open_snapshot(uri).schema)
