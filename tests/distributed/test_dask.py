"""Tables as frames of Dask, and frames as one version, by threads, processes and a cluster that loses a worker."""

from __future__ import annotations

import datetime as dt
import decimal
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.dask as delta_dask
from delta_core import AppTransaction, CommitProperties, DeltaTable, Field, Schema, write_deltalake
from delta_core.errors import (
    CommitConflictError,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableExistsError,
)

dask = pytest.importorskip("dask", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

THREADS = {"scheduler": "threads"}


def frame(rows: int = 100, npartitions: int = 4) -> Any:
    made = pd.DataFrame({"id": range(rows), "name": [f"n{i % 5}" for i in range(rows)]})
    return dd.from_pandas(made.astype({"name": "string[pyarrow]"}), npartitions=npartitions)


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def ids(folder: Path) -> list[int]:
    found: list[int] = sorted(DeltaTable(folder).to_pyarrow_table(columns=["id"])["id"].to_pylist())
    return found


# --- reads ---------------------------------------------------------------------------------


def test_a_frame_has_the_rows_and_the_same_types_in_each_partition(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, None, 3], pa.int32()),
            "x": pa.array([None, 1.5, None], pa.float64()),
            "ok": [True, None, False],
            "name": ["a", None, "c"],
            "day": pa.array([dt.date(2026, 1, 1), None, None]),
            "at": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None], pa.timestamp("us", "UTC")),
            "price": pa.array([decimal.Decimal("1.25"), None, None], pa.decimal128(9, 2)),
            "tags": pa.array([["a"], None, []], pa.list_(pa.string())),
        }
    )
    for n in range(3):  # a file for each row: partitions with nulls and without
        write_deltalake(tmp_path / "t", rows.slice(n, 1), mode="append")
    found = delta_dask.read(tmp_path / "t", partition_bytes=1)
    assert found.npartitions == 3
    for n in range(3):
        assert found.partitions[n].compute(**THREADS).dtypes.to_dict() == found.dtypes.to_dict()
    table = pa.Table.from_pandas(found.compute(**THREADS), preserve_index=False)
    assert table["id"].combine_chunks().drop_null().to_pylist() == [1, 3]
    assert str(found.dtypes["id"]), str(found.dtypes["x"]) == ("Int32", "Float64")
    assert sorted(map(str, table["price"].to_pylist())) == ["1.25", "None", "None"]


def test_features_columns_predicate_and_metadata_are_those_of_a_scan(tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    delta_dask.write(frame(), tmp_path / "t", configuration=properties, compute_options=THREADS)
    table = DeltaTable(tmp_path / "t")
    table.delete("id < 10")
    table.alter.rename_column("name", "full name")
    found = delta_dask.read(table, ["id", "full name"], "id < 20", metadata=["_file_path"])
    assert list(found.columns) == ["id", "full name", "_file_path"]
    assert sorted(found.compute(**THREADS)["id"]) == list(range(10, 20))
    assert len(delta_dask.read(tmp_path / "t", version=0)) == 100
    assert delta_dask.read(table, predicate="id < 0").compute(**THREADS).empty


def test_an_empty_table_is_an_empty_frame(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "t", Schema([Field("id", "long")]))
    found = delta_dask.read(tmp_path / "t")
    assert (list(found.columns), len(found)) == (["id"], 0)


# --- writes --------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["threads", "processes", "synchronous"])
def test_a_write_is_one_version_by_any_scheduler(tmp_path: Path, scheduler: str) -> None:
    version = delta_dask.write(frame(), tmp_path / "t", partition_by=["name"], compute_options={"scheduler": scheduler})
    assert version == 0
    table = DeltaTable(tmp_path / "t")
    assert ids(tmp_path / "t") == list(range(100))
    assert table.metadata().partition_columns == ["name"]
    assert len(table.history()) == 1
    assert table.history()[0]["operationMetrics"]["numOutputRows"] == "100"
    assert delta_dask.write(frame(10), table, "append", compute_options=THREADS) == 1
    assert (table.version(), table.count()) == (1, 110), "the table that was passed is at the new version"


def test_rows_that_were_added_since_a_table_was_loaded_are_not_overwritten(tmp_path: Path) -> None:
    place = tmp_path / "t"
    delta_dask.write(frame(4), place, compute_options=THREADS)
    table = DeltaTable(place)
    write_deltalake(place, pa.table({"id": [9], "name": ["n"]}), mode="append")
    before = files(place)
    with pytest.raises(CommitConflictError, match="Version 1"):
        delta_dask.write(frame(2), table, "overwrite", compute_options=THREADS)
    assert (ids(place), files(place)) == ([0, 1, 2, 3, 9], before)
    table.update_incremental()
    delta_dask.write(frame(2), table, "overwrite", compute_options=THREADS)
    assert ids(place) == [0, 1]


def test_modes_are_those_of_other_writes(tmp_path: Path) -> None:
    place = tmp_path / "t"
    delta_dask.write(frame(), place, compute_options=THREADS)
    with pytest.raises(TableExistsError):
        delta_dask.write(frame(), place, compute_options=THREADS)
    assert delta_dask.write(frame(), place, "ignore", compute_options=THREADS) is None
    delta_dask.write(frame(5), place, "overwrite", predicate="id < 5", compute_options=THREADS)
    assert ids(place) == list(range(100))
    delta_dask.write(frame(3), place, "overwrite", compute_options=THREADS)
    assert ids(place) == [0, 1, 2]
    more = frame(3).assign(extra=1.5)
    with pytest.raises(SchemaMismatchError, match="extra"):
        delta_dask.write(more, place, "append", compute_options=THREADS)
    delta_dask.write(more, place, "append", schema_mode="merge", compute_options=THREADS)
    assert DeltaTable(place).schema().names == ["id", "name", "extra"]


def test_identity_columns_differ_in_all_partitions(tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    schema = Schema([Field("key", "long", metadata=identity), Field("id", "long"), Field("name", "string")])
    DeltaTable.create(tmp_path / "t", schema)
    for _ in range(2):
        delta_dask.write(frame(), tmp_path / "t", "append", compute_options=THREADS)
    keys = DeltaTable(tmp_path / "t").to_pyarrow_table(columns=["key"])["key"].to_pylist()
    assert len(set(keys)) == 200
    assert min(keys) >= 1


def test_rejected_rows_of_one_partition_leave_nothing(tmp_path: Path) -> None:
    place = tmp_path / "t"
    delta_dask.write(frame(), place, compute_options=THREADS)
    table = DeltaTable(place)
    table.alter.add_constraint({"small": "id < 150"})
    before = files(place)
    with pytest.raises(ConstraintViolationError, match="small"):
        delta_dask.write(frame(200), place, "append", compute_options={"scheduler": "processes"})
    assert files(place) == before
    assert DeltaTable(place).version() == 1


def test_a_repeated_job_is_written_once(tmp_path: Path) -> None:
    once = CommitProperties(app_transactions=[AppTransaction("job", 7)])
    assert delta_dask.write(frame(), tmp_path / "t", "append", commit_properties=once, compute_options=THREADS) == 0
    assert delta_dask.write(frame(), tmp_path / "t", "append", commit_properties=once, compute_options=THREADS) is None
    assert ids(tmp_path / "t") == list(range(100))


def test_a_commit_that_loses_a_race_does_not_write_rows_again(tmp_path: Path) -> None:
    place = tmp_path / "t"
    delta_dask.write(frame(), place, compute_options=THREADS)
    before = len(files(place))

    def racing(part: Any) -> Any:
        if len(part) and part["id"].min() == 0:  # in the time between the begin of the write and its commit
            write_deltalake(place, pa.table({"id": [1000], "name": ["x"]}), mode="append")
        return part

    rows = frame().map_partitions(racing, meta=frame()._meta)
    assert delta_dask.write(rows, place, "append", compute_options={"scheduler": "synchronous"}) == 2
    assert ids(place) == sorted([*range(100), *range(100), 1000])
    assert len(files(place)) == before + 4 + 1


def test_a_schema_is_needed_for_columns_of_objects(tmp_path: Path) -> None:
    with dask.config.set({"dataframe.convert-string": False}):
        made = dd.from_pandas(pd.DataFrame({"id": [1, 2], "tags": [["a"], None]}), npartitions=1)
    with pytest.raises(InvalidArgumentError, match=r"type object of column tags .*pass schema="):
        delta_dask.write(made, tmp_path / "t")
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    delta_dask.write(made, tmp_path / "t", schema=schema, compute_options=THREADS)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table()["tags"].to_pylist() == [["a"], None]
    wrong = pa.schema([("id", pa.date32()), ("tags", pa.list_(pa.string()))])
    with pytest.raises(InvalidArgumentError, match="do not fit the schema of the write"):
        delta_dask.write(made, tmp_path / "u", schema=wrong, compute_options=THREADS)
    assert not files(tmp_path / "u")


def test_a_column_that_the_schema_lacks_is_rejected_by_name(tmp_path: Path) -> None:
    for schema in (pa.schema([("id", pa.int64())]), pa.schema([])):
        with pytest.raises(InvalidArgumentError, match=r"have the column .*name, which the schema of the write lacks"):
            delta_dask.write(frame(), tmp_path / "t", schema=schema, compute_options=THREADS)
    assert not files(tmp_path / "t")


def test_options_of_the_opening_are_rejected_with_a_table(tmp_path: Path) -> None:
    delta_dask.write(frame(), tmp_path / "t", compute_options=THREADS)
    table = DeltaTable(tmp_path / "t")
    for option in ({"storage_options": {}}, {"pickle_secrets": True}):
        with pytest.raises(
            InvalidArgumentError, match="storage_options and pickle_secrets are those of the DeltaTable"
        ):
            delta_dask.write(frame(), table, "append", **option)  # type: ignore[arg-type]
    assert table.version() == 0


def test_a_new_schema_does_not_take_types_of_the_old_one(tmp_path: Path) -> None:
    delta_dask.write(frame(4), tmp_path / "t", compute_options=THREADS)
    named = frame(2).assign(name="same")
    with pytest.raises(InvalidArgumentError, match="type object of column name"):
        delta_dask.write(named, tmp_path / "t", "overwrite", schema_mode="overwrite", compute_options=THREADS)


def test_columns_of_objects_have_the_type_of_the_table(tmp_path: Path) -> None:
    delta_dask.write(frame(4), tmp_path / "t", compute_options=THREADS)
    named = frame(2).assign(name="same")
    assert str(named.dtypes["name"]) == "object"
    delta_dask.write(named, tmp_path / "t", "append", compute_options=THREADS)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table()["name"].to_pylist().count("same") == 2


@pytest.mark.parametrize("rows", [pd.DataFrame({"id": [1]}), [1], None])
def test_rows_that_are_no_frame_of_dask_are_rejected(tmp_path: Path, rows: object) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a data frame of Dask"):
        delta_dask.write(rows, tmp_path / "t")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the cluster's own threads and sockets
def test_a_worker_that_dies_loses_and_doubles_no_row(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    marker = tmp_path / "died"

    def dying(part: Any) -> Any:
        if len(part) and part["id"].min() == 0 and not marker.exists():
            marker.touch()
            os._exit(1)
        return part

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        rows = frame().map_partitions(dying, meta=frame()._meta)
        delta_dask.write(rows, tmp_path / "t")
        assert marker.exists()
        assert len(delta_dask.read(tmp_path / "t")) == 100
    assert ids(tmp_path / "t") == list(range(100))
