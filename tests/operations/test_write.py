"""Writes end to end: modes, what they replace, what is left when they fail. deltalake reads every result."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Barrier
from typing import Any
from urllib.parse import unquote

import deltalake
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from delta_core import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from delta_core.errors import (
    ColumnNotFoundError,
    ConcurrentAppendError,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableExistsError,
)
from delta_core.kernel.log import parts as log_parts
from delta_core.table.transaction import AddAction, RemoveAction

ROWS = pa.table(
    {"id": pa.array(range(6), pa.int64()), "kind": ["a", "b", "c"] * 2, "x": [0.5, None, 2.5, 3.5, 4.5, 5.5]}
)


def rows(uri: Any) -> list[tuple[Any, ...]]:
    """The table's rows, by us and by the peer."""
    ours = DeltaTable(uri).to_pyarrow_table()
    theirs = deltalake.DeltaTable(str(uri)).to_pyarrow_table().select(ours.column_names)
    found = sorted((tuple(r.values()) for r in ours.to_pylist()), key=str)
    assert found == sorted((tuple(r.values()) for r in theirs.to_pylist()), key=str)
    return found


def expected(*tables: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for t in tables for r in t.to_pylist()), key=str)


def data_files(uri: Path) -> set[Path]:
    return {p for p in uri.rglob("*.parquet") if "_delta_log" not in p.parts}


def test_decimal_that_gains_a_digit_by_rounding_is_found_and_generated(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("x", pa.decimal128(10, 2)),
            pa.field("y", pa.decimal128(12, 1), metadata={"delta.generationExpression": "CAST(x AS DECIMAL(12,1))"}),
        ]
    )
    DeltaTable.create(tmp_path / "g", schema)
    numbers = [Decimal("99999999.99"), Decimal("-99999999.95"), Decimal(1)]
    write_deltalake(tmp_path / "g", pa.table({"x": pa.array(numbers, pa.decimal128(10, 2))}), mode="append")
    expected = [Decimal("100000000.0"), Decimal("-100000000.0"), Decimal("1.0")]
    assert DeltaTable(tmp_path / "g").to_pyarrow_table()["y"].to_pylist() == expected
    for number, rounded in zip(numbers, expected, strict=True):
        found = DeltaTable(tmp_path / "g").snapshot().scan(predicate=f"CAST(x AS DECIMAL(12,1)) = {rounded}").to_table()
        assert found["x"].to_pylist() == [number]


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "t", ROWS, partition_by=["kind"])
    return tmp_path / "t"


def test_write_creates_a_table(uri: Path) -> None:
    table = DeltaTable(uri)
    assert (table.version(), table.metadata().partition_columns) == (0, ["kind"])
    assert rows(uri) == expected(ROWS)


def test_write_that_creates_a_table_does_not_list_its_neighbours(uri: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise AssertionError("only an error states what is at a place without a table")

    monkeypatch.setattr(log_parts, "why_no_table", fail)
    write_deltalake(uri.parent / "new", pa.table({"id": [1]}))
    with pytest.raises(AssertionError):
        DeltaTable(uri.parent / "other")


def test_mode_error_rejects_a_table_that_exists(uri: Path) -> None:
    with pytest.raises(TableExistsError, match="already"):
        write_deltalake(uri, ROWS)


def test_mode_ignore_leaves_a_table_alone(uri: Path) -> None:
    write_deltalake(uri, ROWS, mode="ignore")
    assert DeltaTable(uri).version() == 0


def test_append_adds_rows_and_moves_the_table_that_was_given(uri: Path) -> None:
    table = DeltaTable(uri)
    write_deltalake(table, ROWS, mode="append")
    assert table.version() == 1
    assert rows(uri) == expected(ROWS, ROWS)


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches(),
        pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches()),
        ROWS.to_pandas(),
        pl.from_arrow(ROWS),
        duckdb.sql("SELECT * FROM ROWS"),
    ],
    ids=["table", "batches", "reader", "pandas", "polars", "duckdb"],
)
def test_rows_come_from_any_arrow_source(tmp_path: Path, data: Any) -> None:
    write_deltalake(tmp_path / "t", data)
    found = rows(tmp_path / "t")
    assert [r[:2] for r in found] == [r[:2] for r in expected(ROWS)]


def test_overwrite_replaces_every_row(uri: Path) -> None:
    write_deltalake(uri, ROWS.slice(0, 1), mode="overwrite")
    assert rows(uri) == expected(ROWS.slice(0, 1))
    assert DeltaTable(uri).snapshot(version=0).scan().count() == 6


def test_overwrite_with_schema_takes_the_rows_schema(uri: Path) -> None:
    other = pa.table({"name": ["n"], "day": [dt.date(2024, 1, 1)]})
    write_deltalake(uri, other, mode="overwrite", schema_mode="overwrite", partition_by=["day"])
    assert rows(uri) == expected(other)
    assert DeltaTable(uri).metadata().partition_columns == ["day"]


def test_overwrite_with_schema_takes_properties_and_texts_and_keeps_what_is_not_given(tmp_path: Path) -> None:
    uri, new = str(tmp_path / "t"), pa.table({"name": ["n"]})
    first = {"delta.logRetentionDuration": "interval 8 days", "delta.checkpointInterval": "5"}
    write_deltalake(uri, ROWS, name="first", description="kept", configuration=first)
    write_deltalake(
        uri,
        new,
        mode="overwrite",
        schema_mode="overwrite",
        name="second",
        configuration={
            "delta.CheckpointInterval": "7",
            "delta.appendOnly": "false",
            "delta.logRetentionDuration": None,
        },
    )
    found = DeltaTable(uri).metadata()
    assert (found.name, found.description) == ("second", "kept")
    assert found.configuration == {
        "delta.logRetentionDuration": "interval 8 days",
        "delta.checkpointInterval": "7",
        "delta.appendOnly": "false",
    }
    with pytest.raises(InvalidArgumentError, match="checkpointInterval"):
        write_deltalake(
            uri, new, mode="overwrite", schema_mode="overwrite", configuration={"delta.checkpointInterval": "no"}
        )
    assert DeltaTable(uri).version() == 1


@pytest.mark.parametrize(
    "options", [{"mode": "append"}, {"mode": "overwrite"}, {"mode": "append", "schema_mode": "merge"}]
)
@pytest.mark.parametrize(
    "definition", [{"name": "n"}, {"description": "d"}, {"configuration": {"delta.appendOnly": "true"}}]
)
def test_other_writes_warn_of_properties_and_texts_that_they_do_not_change(
    uri: Path, options: dict[str, Any], definition: dict[str, Any]
) -> None:
    before = DeltaTable(uri).metadata(), DeltaTable(uri).protocol()
    with pytest.warns(UserWarning, match=f"does not change the table's {next(iter(definition))[:4]}|property delta"):
        write_deltalake(uri, ROWS, **definition, **options)
    assert (DeltaTable(uri).metadata(), DeltaTable(uri).protocol()) == before
    assert DeltaTable(uri).version() == 1


def test_replace_where_on_a_partition_rewrites_no_file(uri: Path) -> None:
    before = data_files(uri)
    new = pa.table({"id": pa.array([9], pa.int64()), "kind": ["a"], "x": [9.0]})
    write_deltalake(uri, new, mode="overwrite", predicate="kind = 'a'")
    assert len(data_files(uri) - before) == 1
    assert rows(uri) == expected(ROWS.filter(pa.array([k != "a" for k in ROWS["kind"].to_pylist()])), new)


def test_replace_where_on_data_keeps_the_other_rows_of_a_file(uri: Path) -> None:
    new = pa.table({"id": pa.array([2], pa.int64()), "kind": ["c"], "x": [None]}, schema=ROWS.schema)
    write_deltalake(uri, new, mode="overwrite", predicate="id < 3")
    assert rows(uri) == expected(ROWS.slice(3), new)


@pytest.mark.parametrize("predicate", ["null", "coalesce(null, null)", "cast(null as boolean)", "null = 1"])
def test_replace_where_that_is_always_null_accepts_no_rows(uri: Path, predicate: str) -> None:
    with pytest.raises(ConstraintViolationError, match="replaceWhere"):
        write_deltalake(uri, ROWS, mode="overwrite", predicate=predicate)
    write_deltalake(uri, ROWS.slice(0, 0), mode="overwrite", predicate=predicate)
    assert DeltaTable(uri).to_pyarrow_table().num_rows == ROWS.num_rows


def test_replace_where_keeps_rows_for_which_it_is_null(uri: Path) -> None:
    write_deltalake(uri, ROWS.slice(0, 0), mode="overwrite", predicate="x > 0")
    assert rows(uri) == expected(ROWS.slice(1, 1))


def test_rows_outside_the_predicate_are_rejected_and_nothing_is_left(uri: Path) -> None:
    before = data_files(uri)
    with pytest.raises(ConstraintViolationError, match="replaceWhere"):
        write_deltalake(uri, ROWS, mode="overwrite", predicate="kind = 'a'")
    assert data_files(uri) == before
    assert DeltaTable(uri).version() == 0


def test_dynamic_overwrite_replaces_the_partitions_that_are_written(uri: Path) -> None:
    new = pa.table({"id": pa.array([7, 8], pa.int64()), "kind": ["b", "z"], "x": [1.0, 2.0]})
    write_deltalake(uri, new, mode="overwrite", partition_overwrite="dynamic")
    assert rows(uri) == expected(ROWS.filter(pa.array([k != "b" for k in ROWS["kind"].to_pylist()])), new)


def test_dynamic_overwrite_reports_the_null_partition_from_others(tmp_path: Path) -> None:
    first = pa.table({"id": [1, 2], "p": pa.array([None, 5], pa.int32())})
    write_deltalake(tmp_path / "t", first, partition_by=["p"])
    new = pa.table({"id": [3], "p": pa.array([None], pa.int32())})
    write_deltalake(tmp_path / "t", new, mode="overwrite", partition_overwrite="dynamic")
    assert rows(tmp_path / "t") == expected(first.slice(1), new)


def test_schema_merge_adds_columns_behind(uri: Path) -> None:
    new = ROWS.slice(0, 1).append_column("extra", pa.array([{"a": 1}]))
    write_deltalake(uri, new, mode="append", schema_mode="merge")
    assert DeltaTable(uri).schema().names == ["id", "kind", "x", "extra"]
    assert sum(r[3] is None for r in rows(uri)) == 6


@pytest.mark.parametrize("given", [{"name": ""}, {"description": ""}, {"properties": {"own.key": ""}}])
def test_empty_text_is_another_definition_too(tmp_path: Path, given: dict[str, Any]) -> None:
    from delta_core.kernel.snapshot import open_context
    from delta_core.operations.write import WriteOptions, write_table

    rows = pa.table({"id": [1]})
    write_deltalake(tmp_path, rows, name="a", description="b", configuration={"own.key": "c"})
    with pytest.raises(InvalidArgumentError, match="the write requests ''"):
        write_table(open_context(str(tmp_path)), rows, WriteOptions(mode="append", **given))
    assert DeltaTable(tmp_path).version() == 0


def test_unknown_column_without_merge_is_rejected_by_name(uri: Path) -> None:
    with pytest.raises(SchemaMismatchError, match="extra"):
        write_deltalake(uri, ROWS.append_column("extra", ROWS["id"]), mode="append")


def test_wrong_type_is_rejected_by_name(uri: Path) -> None:
    with pytest.raises(SchemaMismatchError, match="Column x comes as string"):
        write_deltalake(uri, ROWS.set_column(2, "x", pa.array(["text"] * 6)), mode="append")


def test_other_partitioning_is_rejected(uri: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="partitioned by"):
        write_deltalake(uri, ROWS, mode="append", partition_by=["id"])


def test_partition_column_that_is_not_there_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ColumnNotFoundError, match="nope"):
        write_deltalake(tmp_path / "t", ROWS, partition_by=["nope"])
    assert not data_files(tmp_path)


def test_application_version_is_written_once(uri: Path) -> None:
    for _ in range(2):
        write_deltalake(
            uri, ROWS, mode="append", commit_properties=CommitProperties(app_transactions=[Transaction("job", 4)])
        )
    assert (DeltaTable(uri).version(), DeltaTable(uri).transaction_version("job")) == (1, 4)


def test_lost_race_to_create_a_table_states_so(tmp_path: Path) -> None:
    from delta_core.kernel.snapshot import open_context
    from delta_core.operations.write import WriteOptions, write_table

    with pytest.raises(ConcurrentAppendError, match="meanwhile"):
        write_table(
            open_context(str(tmp_path / "t")), Late(lambda: write_deltalake(tmp_path / "t", ROWS)), WriteOptions()
        )
    assert rows(tmp_path / "t") == expected(ROWS)
    assert len(data_files(tmp_path / "t")) == 1


class Late:
    """A stream of rows that arrive after somebody else did something; it can be read once."""

    def __init__(self, before: Callable[[], object], given: pa.Table = ROWS) -> None:
        self._before = before
        self._rows = given

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(self._rows.schema, self._batches()).__arrow_c_stream__()

    def _batches(self) -> Any:
        self._before()
        yield from self._rows.to_batches()


@pytest.mark.parametrize(
    "options",
    [{}, {"partition_by": ["kind"]}, {"configuration": {"delta.columnMapping.mode": "name"}, "partition_by": ["kind"]}],
    ids=["plain", "partitioned", "mapped"],
)
def test_stream_that_lost_the_race_to_create_a_table_is_appended(tmp_path: Path, options: dict[str, Any]) -> None:
    def create() -> None:
        write_deltalake(tmp_path / "t", ROWS, **options)

    write_deltalake(tmp_path / "t", Late(create), mode="append", **options)
    table = DeltaTable(tmp_path / "t")
    assert table.version() == 1
    assert sorted(map(str, table.to_pyarrow_table().to_pylist())) == sorted(map(str, 2 * ROWS.to_pylist()))
    # what was written for the table that was not created is gone
    assert {p.relative_to(tmp_path / "t").as_posix() for p in data_files(tmp_path / "t")} == {
        unquote(path) for path in table.snapshot().files.columns(["path"]).column(0).to_pylist()
    }


def test_overwrite_that_lost_the_race_to_create_a_table_replaces_its_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", Late(lambda: write_deltalake(tmp_path / "t", ROWS)), mode="overwrite")
    assert (DeltaTable(tmp_path / "t").version(), rows(tmp_path / "t")) == (1, expected(ROWS))


def test_ignore_that_lost_the_race_to_create_a_table_leaves_it(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", Late(lambda: write_deltalake(tmp_path / "t", ROWS)), mode="ignore")
    assert (DeltaTable(tmp_path / "t").version(), len(data_files(tmp_path / "t"))) == (0, 1)


def test_append_that_does_not_fit_the_table_created_meanwhile_is_rejected(tmp_path: Path) -> None:
    other = pa.table({"something": ["else"]})
    with pytest.raises(SchemaMismatchError):
        write_deltalake(tmp_path / "t", Late(lambda: write_deltalake(tmp_path / "t", other)), mode="append")
    assert (DeltaTable(tmp_path / "t").version(), len(data_files(tmp_path / "t"))) == (0, 1)


@pytest.mark.parametrize("store", ["disk", "memory"])
def test_appends_at_once_to_a_table_that_does_not_exist_all_land(tmp_path: Path, store: str) -> None:
    for turn in range(3):
        uri = f"memory://{tmp_path}/{turn}" if store == "memory" else str(tmp_path / str(turn))
        barrier = Barrier(8)

        def append(number: int, uri: str = uri, barrier: Barrier = barrier) -> None:
            barrier.wait()
            write_deltalake(
                uri, pa.table({"id": [number], "kind": [str(number)]}), mode="append", partition_by=["kind"]
            )

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(append, range(8))) == [None] * 8
        table = DeltaTable(uri)
        assert (table.version(), sorted(table.to_pyarrow_table()["id"].to_pylist())) == (7, list(range(8)))


def test_table_that_is_created_at_once_is_ignored_by_all_but_one(tmp_path: Path) -> None:
    barrier = Barrier(6)

    def create(_: int) -> int:
        barrier.wait()
        return DeltaTable.create(tmp_path / "t", ROWS.schema, mode="ignore").version()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(create, range(6))) == [0] * 6


def test_checkpoints_come_at_the_interval_and_may_be_switched_off(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, configuration={"delta.checkpointInterval": "2"})
    write_deltalake(tmp_path / "t", ROWS, mode="append")
    write_deltalake(tmp_path / "t", ROWS, mode="append")
    off = PostCommitHookProperties(create_checkpoint=False)
    for _ in range(2):
        write_deltalake(tmp_path / "t", ROWS, mode="append", post_commithook_properties=off)
    names = sorted(p.name for p in (tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet"))
    assert names == [f"{2:020d}.checkpoint.parquet"]
    assert len(rows(tmp_path / "t")) == 30


def test_writer_properties_reach_the_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, writer_properties=WriterProperties(compression="ZSTD"))
    (file,) = data_files(tmp_path / "t")
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


def test_pandas_frame_goes_in_and_comes_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2], "when": pd.to_datetime(["2024-01-01", "2024-01-02"]).as_unit("us")})
    write_deltalake(tmp_path / "t", frame)
    pd.testing.assert_frame_equal(DeltaTable(tmp_path / "t").to_pandas(), frame)


def test_files_written_outside_the_table_are_registered_with_statistics(uri: Path) -> None:
    (uri / "kind=z").mkdir()
    pq.write_table(pa.table({"id": pa.array([70, 71], pa.int64()), "x": [1.0, 2.0]}), uri / "kind=z" / "f.parquet")
    table = DeltaTable(uri)
    size = (uri / "kind=z" / "f.parquet").stat().st_size
    table.create_write_transaction([AddAction("kind=z/f.parquet", size, {"kind": "z"})], "append", table.schema())
    stats = {r["path"]: r for r in table.get_add_actions(flatten=True).to_pylist()}["kind=z/f.parquet"]
    assert (stats["num_records"], stats["min.id"], stats["max.id"]) == (2, 70, 71)
    assert len(rows(uri)) == 8


def test_registered_removal_takes_a_file_out(uri: Path) -> None:
    table = DeltaTable(uri)
    path = next(p for p in table.get_add_actions()["path"].to_pylist() if p.startswith("kind=a"))
    table.create_write_transaction([RemoveAction(path)], "append", table.schema())
    assert {r[1] for r in rows(uri)} == {"b", "c"}
    with pytest.raises(InvalidArgumentError, match="not a live file"):
        table.create_write_transaction([RemoveAction(path)], "append", table.schema())


@pytest.mark.parametrize("filters", [3, [("kind", "=", "a")], [("nope", "=", 1)]], ids=str)
def test_filters_of_registered_files_need_an_overwrite(uri: Path, filters: Any) -> None:
    table = DeltaTable(uri)
    with pytest.raises(InvalidArgumentError, match="they need mode 'overwrite'"):
        table.create_write_transaction([], "append", table.schema(), partition_filters=filters)
    assert DeltaTable(uri).version() == table.version()


def test_change_feed_of_a_partial_overwrite_holds_what_changed_alone(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    new = pa.table({"id": pa.array([2], pa.int64()), "kind": ["n"], "x": [7.0]})
    write_deltalake(uri, new, mode="overwrite", predicate="id < 3")
    feed = DeltaTable(uri).load_cdf(1).read_all().select(["id", "kind", "_change_type"]).to_pylist()
    assert sorted(tuple(r.values()) for r in feed) == [
        (0, "a", "delete"),
        (1, "b", "delete"),
        (2, "c", "delete"),
        (2, "n", "insert"),
    ]
    assert rows(uri) == expected(ROWS.slice(3), new)


@pytest.mark.parametrize(
    "metadata", [{"delta.generationExpression": "id * 3"}, {"delta.columnMapping.physicalName": "col-of-a-dropped-one"}]
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_merged_column_with_metadata_that_features_set_is_rejected(
    tmp_path: Path, metadata: dict[str, str], is_nested: bool
) -> None:
    table = pa.schema([("id", "int64"), pa.field("g", "int64", metadata={"delta.generationExpression": "id * 2"})])
    DeltaTable.create(tmp_path, table)
    write_deltalake(tmp_path, pa.table({"id": [1]}), mode="append")
    added = pa.field("h", pa.int64(), metadata=metadata)
    field, value = (pa.field("s", pa.struct([added])), {"h": 15}) if is_nested else (added, 15)
    rows = pa.table([[5], [value]], pa.schema([("id", "int64"), field]))
    with pytest.raises(SchemaMismatchError, match="which features set"):
        write_deltalake(tmp_path, rows, mode="append", schema_mode="merge")
    assert DeltaTable(tmp_path).version() == 1


@pytest.mark.parametrize(
    "predicate", ["id = 1", [("id", "=", 1)], pc.field("id") == 1], ids=["text", "filters", "arrow"]
)
def test_history_has_the_predicate_of_an_overwrite_as_sql(predicate: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}))
    write_deltalake(tmp_path, pa.table({"id": [1]}), mode="overwrite", predicate=predicate)
    assert DeltaTable(tmp_path).history(1)[0]["operationParameters"]["predicate"] in ("id = 1", "id = 1L")
