"""Arguments and rows that can't be used: one typed error that names them, before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Field,
    Schema,
    WriterProperties,
    open_table,
    write_deltalake,
)
from delta_core.errors import (
    ArgumentTypeError,
    ColumnNotFoundError,
    DataFileNotFoundError,
    InvalidArgumentError,
    SchemaError,
    SchemaMismatchError,
    UnsupportedVersionError,
)
from delta_core.table.transaction import AddAction

ROWS = pa.table({"a": [1, 2], "p": ["x", "y"]})


def files(root: Path) -> set[Path]:
    return {p for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    """A table of two rows in two partitions."""
    write_deltalake(tmp_path / "t", ROWS, partition_by=["p"])
    return tmp_path / "t"


# --- words and numbers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"partition_overwrite": "Dynamic"},
        {"schema_mode": "merged"},
        {"schema_mode": "overwite"},
        {"target_file_size": 0},
        {"target_file_size": -5},
        {"target_file_size": "1mb"},
        {"partition_by": 5},
        {"cluster_by": 5},
        {"writer_properties": deltalake.CommitProperties()},
        {"writer_properties": {"compression": "ZSTD"}},
        {"commit_properties": deltalake.WriterProperties()},
        {"post_commithook_properties": deltalake.CommitProperties()},
    ],
    ids=lambda o: "-".join(f"{k}={v if isinstance(v, (str, int)) else type(v).__module__}" for k, v in o.items()),
)
def test_argument_that_can_not_be_used_is_named_and_nothing_is_written(uri: Path, options: dict[str, Any]) -> None:
    """A misspelt ``partition_overwrite`` replaced the whole table."""
    before = files(uri)
    (name,) = options
    with pytest.raises(InvalidArgumentError, match=name):
        write_deltalake(uri, ROWS, mode="overwrite", **options)
    assert files(uri) == before


@pytest.mark.parametrize("what", ["name", "description"])
def test_name_and_description_are_text(tmp_path: Path, what: str) -> None:
    """A number there is a table that other readers can't open."""
    with pytest.raises(InvalidArgumentError, match=f"{what}=5"):
        DeltaTable.create(tmp_path / "t", ROWS.schema, **{what: 5})  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()


def test_mode_of_creation_is_checked(uri: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="mode 'overwite'"):
        DeltaTable.create(uri, ROWS.schema, mode="overwite")  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [5, None], ids=str)
def test_table_that_is_neither_place_nor_table_is_named(table: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"as {type(table).__name__}"):
        write_deltalake(table, ROWS)


def test_table_of_another_kind_is_rejected_by_its_class(uri: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"Found a table as pandas\..*DataFrame"):
        write_deltalake(pd.DataFrame(), ROWS, mode="append")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda p: setattr(p, "compression", "ZSDT"), "compression"),
        (lambda p: setattr(p, "compression_level", 99), "level"),
        (lambda p: setattr(p.column_properties["a"], "encoding", "PLAN"), "encoding"),
    ],
    ids=["codec", "level", "column"],
)
def test_options_that_were_changed_are_checked_again(uri: Path, change: Callable[[Any], None], why: str) -> None:
    given = WriterProperties(compression="ZSTD", column_properties={"a": ColumnProperties(encoding="PLAIN")})
    given.compression = "GZIP(4)"
    write_deltalake(uri, ROWS, mode="append", writer_properties=given)
    assert (given.compression, given.compression_level) == ("GZIP", 4)
    change(given)
    with pytest.raises(InvalidArgumentError, match=why):
        write_deltalake(uri, ROWS, mode="append", writer_properties=given)
    assert DeltaTable(uri).version() == 1


@pytest.mark.parametrize("options", [{"name": True}, {"configuration": True}, {"mode": np.True_}], ids=str)
def test_truth_value_is_no_text_and_no_mapping(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentTypeError, match=f"Found {next(iter(options))}"):
        DeltaTable.create(tmp_path / "t", Schema([Field("a", "long")]), **options)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("predicate", [[], (), [[]]], ids=str)
@pytest.mark.parametrize("call", ["delete", "update", "replace"])
def test_empty_list_of_filters_does_not_select_all_rows(uri: Path, predicate: Any, call: str) -> None:
    table = DeltaTable(uri)
    calls: dict[str, Callable[[], object]] = {
        "delete": lambda: table.delete(predicate),
        "update": lambda: table.update({"a": "a + 1"}, predicate=predicate),
        "replace": lambda: write_deltalake(table, ROWS, mode="overwrite", predicate=predicate),
    }
    with pytest.raises(InvalidArgumentError, match=r"expected at least one filter\. Pass None to select all rows"):
        calls[call]()
    assert DeltaTable(uri).version() == 0


def test_retries_are_no_fewer_than_none(uri: Path) -> None:
    before = files(uri)
    with pytest.raises(InvalidArgumentError, match="max_commit_retries=-1"):
        write_deltalake(uri, ROWS, mode="append", commit_properties=CommitProperties(max_commit_retries=-1))
    assert files(uri) == before


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}], ids=["nan", "inf", "object", "set"])
def test_metadata_that_json_has_no_text_for_is_rejected(uri: Path, value: Any) -> None:
    """JSON has no NaN: a commit that holds one is one that nobody can read."""
    before = files(uri)
    with pytest.raises(InvalidArgumentError, match="custom_metadata"):
        write_deltalake(uri, ROWS, mode="append", commit_properties=CommitProperties(custom_metadata={"x": value}))
    assert files(uri) == before


# --- properties ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["yes", "", "1"])
@pytest.mark.parametrize("name", ["delta.appendOnly", "delta.rowTrackingSuspended"])
def test_switch_is_true_or_false(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} is {text!r}; expected true or false"):
        DeltaTable.create(tmp_path / "t", ROWS.schema, configuration={name: text})
    assert not (tmp_path / "t").exists()


def test_list_of_statistics_columns_names_columns_that_are_there(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("s", pa.struct([("x y", pa.int64())])), ("p", pa.string())])
    name = "delta.dataSkippingStatsColumns"
    with pytest.raises(ColumnNotFoundError, match=r"names the column s\.z"):
        DeltaTable.create(tmp_path / "t", schema, configuration={name: "A,s.z", "delta.columnMapping.mode": "name"})
    assert not (tmp_path / "t").exists()
    DeltaTable.create(tmp_path / "t", schema, configuration={name: "A,s.`x y`,s", "delta.columnMapping.mode": "name"})
    # a schema that comes later need not have them
    write_deltalake(tmp_path / "t", pa.table({"p": ["x"]}), mode="overwrite", schema_mode="overwrite")
    assert DeltaTable(tmp_path / "t").version() == 1


def test_name_of_a_property_is_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="property 5"):
        DeltaTable.create(tmp_path / "t", ROWS.schema, configuration={5: "x"})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("reader", "writer", "found"),
    [
        ("1", "2", (1, 2)),
        ("1", "4", (1, 4)),
        ("2", "5", (2, 5)),
        ("3", "7", (1, 1)),
        (None, "3", (1, 3)),
        ("1", None, (1, 2)),
    ],
)
def test_least_protocol_that_is_requested_comes_with_its_features(
    tmp_path: Path, reader: str | None, writer: str | None, found: tuple[int, int]
) -> None:
    """Versions with lists of features do not specify which: a table without features has the least versions."""
    asked = {"delta.minReaderVersion": reader, "delta.minWriterVersion": writer}
    table = DeltaTable.create(tmp_path / "t", ROWS.schema, configuration=asked)
    assert table.protocol()[:2] == found
    assert table.metadata().configuration == {}


def test_protocol_that_nobody_has_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedVersionError, match="writer version 9"):
        DeltaTable.create(tmp_path / "t", ROWS.schema, configuration={"delta.minWriterVersion": "9"})
    assert not (tmp_path / "t").exists()


# --- schemas -------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [None, 5, "a long", {"a": "long"}, [("a", "long")]], ids=repr)
def test_what_is_no_schema_is_rejected(tmp_path: Path, schema: Any) -> None:
    with pytest.raises(SchemaError, match="schema"):
        DeltaTable.create(tmp_path / "t", schema)
    assert not (tmp_path / "t").exists()


def test_type_that_delta_lacks_is_rejected_with_its_column(tmp_path: Path) -> None:
    kind = pa.struct([("x", pa.list_(pa.time64("us")))])
    with pytest.raises(SchemaError, match=r"Column s\.x: .*time64"):
        write_deltalake(tmp_path / "t", pa.table({"s": pa.array([None], kind)}))
    assert not (tmp_path / "t").exists()


def test_name_that_spark_has_for_a_type_leads_to_the_protocols(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"'int'.*'integer'"):
        DeltaTable.create(tmp_path / "t", Schema([Field("a", "int")]))  # type: ignore[list-item]


# --- rows ----------------------------------------------------------------------------------


def test_categories_of_polars_are_texts(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "c": pl.Series(["u", None, "v"], dtype=pl.Categorical),
            "e": pl.Series(["k", "k", None], dtype=pl.Enum(["k"])),
            "l": pl.Series([["u"], None, []], dtype=pl.List(pl.Categorical)),
        }
    )
    write_deltalake(tmp_path / "t", frame)
    found = DeltaTable(tmp_path / "t").to_pyarrow_table().to_pydict()
    assert found == {"c": ["u", None, "v"], "e": ["k", "k", None], "l": [["u"], None, []]}


def test_named_index_of_pandas_is_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [7, 8], "v": [1, 2]}).set_index("id")
    write_deltalake(tmp_path / "t", frame)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().to_pydict() == {"v": [1, 2], "id": [7, 8]}
    write_deltalake(tmp_path / "u", frame.reset_index()[1:])
    assert DeltaTable(tmp_path / "u").to_pyarrow_table().to_pydict() == {"id": [8], "v": [2]}


@pytest.mark.parametrize(
    "data",
    [pd.DataFrame({"a": [1, "x"]}), pl.Series("a", [1]), pl.LazyFrame({"a": [1]})],
    ids=lambda d: type(d).__name__,
)
def test_rows_that_are_no_table_are_rejected_by_their_kind(tmp_path: Path, data: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=type(data).__name__):
        write_deltalake(tmp_path / "t", data)
    assert not (tmp_path / "t").exists()


# --- files from elsewhere ------------------------------------------------------------------


def register(uri: Path, *actions: Any) -> None:
    table = DeltaTable(uri)
    table.create_write_transaction(actions, "append", table.schema())


def written(uri: Path, rows: pa.Table, name: str = "f.parquet") -> AddAction:
    pq.write_table(rows, uri / name)
    return AddAction(name, (uri / name).stat().st_size, {"p": "z"})


@pytest.mark.parametrize("action", ["f.parquet", deltalake.Transaction("a", 1)], ids=["text", "deltalake"])
def test_action_of_another_kind_is_rejected_not_passed_over(uri: Path, action: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="AddAction"):
        register(uri, action)
    assert DeltaTable(uri).version() == 0


@pytest.mark.parametrize("stats", ["not json", "[]", '{"numRecords": "many"}'])
def test_statistics_that_can_not_be_read_are_rejected(uri: Path, stats: str) -> None:
    (uri / "f.parquet").write_bytes(b"12345")
    with pytest.raises(InvalidArgumentError, match=r"f\.parquet.*stats is .*expected a JSON object"):
        register(uri, AddAction("f.parquet", 5, {"p": "z"}, stats=stats))
    assert DeltaTable(uri).version() == 0


def test_file_of_another_type_is_rejected_by_column(uri: Path) -> None:
    with pytest.raises(SchemaMismatchError, match=r"f\.parquet.*column a.*string"):
        register(uri, written(uri, pa.table({"a": ["text"]})))
    register(uri, written(uri, pa.table({"a": pa.array([5], pa.int32())})))
    assert sorted(DeltaTable(uri).to_pyarrow_table().column("a").to_pylist()) == [1, 2, 5]


def test_size_that_is_not_the_files_is_rejected(uri: Path) -> None:
    action = written(uri, pa.table({"a": [5]}))
    with pytest.raises(InvalidArgumentError, match=rf"5 bytes.*{action.size}"):
        register(uri, AddAction(action.path, 5, action.partition_values))


def test_file_that_is_not_there_is_rejected(uri: Path) -> None:
    with pytest.raises(DataFileNotFoundError, match=r"f\.parquet"):
        register(uri, AddAction("f.parquet", 5, {"p": "z"}))


def test_partition_value_that_is_none_of_its_type_is_rejected(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, pa.table({"a": [1], "p": [1]}), partition_by=["p"])
    stats = json.dumps({"numRecords": 1})
    (uri / "f.parquet").write_bytes(b"12345")
    with pytest.raises(InvalidArgumentError, match=r"f\.parquet.*'abc'.*p"):
        register(uri, AddAction("f.parquet", 5, {"p": "abc"}, stats=stats))
    register(uri, AddAction("f.parquet", 5, {"p": None}, stats=stats))


@pytest.mark.parametrize("place", [None, 5, b"x"])
def test_place_of_a_table_that_is_no_text_is_rejected(place: Any) -> None:
    for call in (DeltaTable, open_table):
        with pytest.raises(InvalidArgumentError, match="as the place of a table, expected a path or a URI"):
            call(place)
    assert DeltaTable.is_deltatable(place) is False


def test_uri_without_a_bucket_and_options_of_another_type_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="'s3://', expected a bucket"):
        DeltaTable("s3://")
    with pytest.raises(InvalidArgumentError, match="storage_options of type int"):
        DeltaTable("t", storage_options=5)  # type: ignore[arg-type]


def test_column_that_is_no_name_is_rejected(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    with pytest.raises(InvalidArgumentError, match="Found 1 in columns, expected a name"):
        DeltaTable(tmp_path / "t").scan([1])
