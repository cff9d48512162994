"""Files of a scan for readers outside of this library: what they read becomes the rows of the scan."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, Field, write_deltalake
from delta_core.api import ScanFiles, Snapshot, StructType, create_table, format_sql, open_context, open_snapshot
from delta_core.errors import (
    ArgumentTypeError,
    DataFileError,
    DataFileNotFoundError,
    InvalidArgumentError,
    UnsupportedOperationError,
)
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.testing.table_builder import TableBuilder
from tests.testing import honest_plugin

PERSON = {"type": "struct", "fields": [
    {"name": "name", "type": "string", "nullable": True, "metadata": {}},
    {"name": "age", "type": "long", "nullable": True, "metadata": {}},
]}  # fmt: skip
NESTED = {
    "id": "long",
    "who": PERSON,
    "all": {"type": "array", "elementType": PERSON, "containsNull": True},
    "by": {"type": "map", "keyType": "string", "valueType": PERSON, "valueContainsNull": True},
}
NESTED_ROWS = [
    {"id": 1, "who": {"name": "ann", "age": 1}, "all": [{"name": "x", "age": 9}, None], "by": [("k", {"age": 2})]},
    {"id": 2, "who": None, "all": None, "by": None},
    {"id": 3, "who": {"name": None, "age": 2}, "all": [], "by": []},
]  # fmt: skip


class Batches:
    """Rows as another Arrow library hands them out."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._rows.__arrow_c_stream__(requested_schema)


def parquet_rows(path: str, size: int = 2) -> Iterator[pa.RecordBatch]:
    """Yield whole rows of a file, all columns, as any reader would."""
    yield from pq.ParquetFile(path).iter_batches(batch_size=size)


def rows_of(plan: ScanFiles) -> pa.Table:
    """Read the rows of a plan with PyArrow alone."""
    parts = [plan.read_file(n, parquet_rows(p)) for n, p in enumerate(plan.files["local_path"].to_pylist())]
    return _joined([batch for part in parts for batch in part], plan.schema)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(batches, schema)


def check(snapshot: Snapshot, **arguments: Any) -> ScanFiles:
    """Check that a plan has the rows of its scan, before and after it was pickled, whole and file by file."""
    scan = snapshot.scan(**arguments)
    expected, plan = scan.to_table(), scan.plan_files()
    assert expected.num_rows
    assert rows_of(plan).equals(expected)
    assert rows_of(pickle.loads(pickle.dumps(plan))).equals(expected)
    parts = [rows_of(pickle.loads(pickle.dumps(part))) for part in plan]
    assert _joined([batch for part in parts for batch in part.to_batches()], plan.schema).equals(expected)
    return plan


@pytest.fixture
def deleted(tmp_path: Path) -> Snapshot:
    """Two partitions with three files; rows of two of them are deleted."""
    builder = TableBuilder(tmp_path / "t").create(
        {"id": "long", "kind": "string", "amount": "double"}, partition_by=["kind"], features=["deletionVectors"],
        properties={"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    for start in (0, 10):
        builder.append([{"id": i, "kind": "a b" if i % 2 else "b", "amount": i / 2} for i in range(start, start + 10)])
    builder.delete_rows(lambda row: row["id"] in (1, 3, 12, 18))
    return open_snapshot(builder.uri)


def test_files_have_places_counts_and_typed_partition_values(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "day": pa.array([0, 1, 1], pa.date32())})
    write_deltalake(tmp_path, rows, partition_by=["day"])
    plan = open_snapshot(tmp_path).scan(predicate="day = '1970-01-02'").plan_files()
    assert len(plan) == 1
    (file,) = plan.files.to_pylist()
    assert file["num_rows"] == 2
    assert Path(file["local_path"]).stat().st_size == file["size"]
    assert file["partition_values"] == {"day": rows["day"][1].as_py()}
    assert (
        file["uri"]
        == open_snapshot(tmp_path).scan(metadata=["_file_path"], limit=3).to_table()["_file_path"][2].as_py()
    )
    assert pa.table(plan).equals(plan.files)
    assert pa.schema(plan).equals(plan.files.schema)
    assert plan.steps == ("partition_values",)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"columns": ["id"]},
        {"columns": ["kind"]},
        {"columns": []},
        {"columns": ["amount", "id"], "predicate": "id > 2 AND kind = 'b'"},
        {"columns": ["id"], "predicate": "amount + id > 6"},
        {"metadata": ["_file_path", "_file_row_index"], "predicate": "id != 4"},
    ],
)
def test_rows_of_files_are_those_of_the_scan(deleted: Snapshot, arguments: dict[str, Any]) -> None:
    check(deleted, **arguments)


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("columns", [None, ["who"], ["who.age", "id"], ["all.element.name"], ["by.value.age"]])
def test_nested_columns_under_physical_names(tmp_path: Path, mode: str, columns: list[str] | None) -> None:
    builder = TableBuilder(tmp_path).create(pa.schema(_arrow(NESTED)), column_mapping=mode).append(NESTED_ROWS)
    plan = check(open_snapshot(builder.uri), columns=columns)
    assert plan.match == mode
    assert "column_names" in plan.steps
    assert set(plan.physical_schema.names).isdisjoint(NESTED)
    assert set(plan.logical_schema.names) <= set(NESTED)
    assert all(b"PARQUET:field_id" in f.metadata for f in plan.physical_schema)


def _arrow(fields: dict[str, Any]) -> list[tuple[str, pa.DataType]]:
    person = pa.struct([("name", pa.string()), ("age", pa.int64())])
    types = {"who": person, "all": pa.list_(person), "by": pa.map_(pa.string(), person)}
    return [(name, types.get(name, pa.int64())) for name in fields]


def test_files_without_field_ids_are_rejected_if_columns_are_matched_by_id(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"}, column_mapping="id").append([{"id": 1}])
    plan = open_snapshot(tmp_path).scan().plan_files()
    name = plan.physical_schema.names[0]
    with pytest.raises(DataFileError, match="field ids"):
        plan.to_logical(0, pa.record_batch({name: [1]}))
    named = pa.record_batch([pa.array([7])], schema=plan.physical_schema)
    assert plan.to_logical(0, named).to_pydict() == {"id": [7]}


def test_columns_are_found_ignoring_order_and_case_and_converted(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long", "text": "string", "new": "double"}).append(
        [{"id": 1}], statistics=False
    )
    plan = open_snapshot(tmp_path).scan().plan_files()
    batch = pa.record_batch(
        {"other": [0, 0], "TEXT": pa.array(["a", "b"]).dictionary_encode(), "id": pa.array([1, 2], pa.int16())}
    )
    expected = {"id": [1, 2], "text": ["a", "b"], "new": [None, None]}
    found = plan.to_logical(0, batch)
    assert found.to_pydict() == expected
    assert found.schema.equals(plan.schema)
    views = batch.set_column(1, "text", pa.array(["a", "b"], pa.string_view()))
    assert plan.read_file(0, Batches(pa.table(views))).read_all().to_pydict() == expected
    with pytest.raises(DataFileError, match=r"column id holds double, expected int64"):
        plan.to_logical(0, pa.record_batch({"id": [1.5]}))


def test_types_that_widened_since_a_file_was_written(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).create({"x": "integer"}, features=["typeWidening"]).append([{"x": 1}])
    change = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    field = {"name": "x", "type": "long", "nullable": True, "metadata": change}
    builder.alter({"type": "struct", "fields": [field]}).append([{"x": 2**40}])
    plan = check(open_snapshot(builder.uri))
    assert {pq.read_schema(p).field("x").type for p in plan.files["local_path"].to_pylist()} == {pa.int32(), pa.int64()}


def test_row_ids_are_computed(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3]})
    write_deltalake(
        tmp_path, rows, configuration={"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
    )
    DeltaTable(tmp_path).delete("id = 2")
    plan = check(open_snapshot(tmp_path), columns=["id"], metadata=["_row_id"])
    assert plan.steps == ("deleted_rows", "computed_columns")
    assert rows_of(plan)["_row_id"].to_pylist() == [0, 2]


def test_selections_agree(deleted: Snapshot) -> None:
    plan = deleted.scan(metadata=["_file_row_index"]).plan_files()
    left = [sorted(rows_of(part)["_file_row_index"].to_pylist()) for part in plan]
    counts = plan.files["num_rows"].to_pylist()
    assert sum(map(len, left)) == 16
    positions = plan.deleted_rows()
    assert positions.type == pa.large_list(pa.int64())
    for n, (gone, ranges) in enumerate(zip(positions.to_pylist(), plan.selected_ranges().to_pylist(), strict=True)):
        assert sorted(set(range(counts[n])) - set(gone)) == left[n]
        assert [i for r in ranges for i in range(r["start"], r["stop"])] == left[n]
        mask = plan.selection_mask(n, counts[n]).to_numpy(zero_copy_only=False)
        assert np.flatnonzero(mask).tolist() == left[n]
        assert plan.selection_mask(n, 2, first_row=3).to_pylist() == mask[3:5].tolist()


def test_last_range_is_open_if_the_log_does_not_count_rows(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"])
    builder.append([{"id": i} for i in range(4)], statistics=False).append([{"id": 9}], statistics=False)
    builder.delete_rows(lambda row: row["id"] in (0, 2))
    plan = open_snapshot(builder.uri).scan().plan_files()
    assert plan.files["num_rows"].to_pylist() == [None, None]
    found = dict(zip(map(tuple, plan.deleted_rows().to_pylist()), plan.selected_ranges().to_pylist(), strict=True))
    assert found[()] == [{"start": 0, "stop": None}]
    assert found[0, 2] == [{"start": 1, "stop": 2}, {"start": 3, "stop": None}]
    check(open_snapshot(builder.uri))


def test_filter_is_the_rest_of_the_predicate(deleted: Snapshot) -> None:
    assert deleted.scan(predicate="kind = 'b'").plan_files().filter is None
    plan = deleted.scan(predicate="kind = 'b' AND id > 3").plan_files()
    assert format_sql(plan.filter) == "id > 3L"
    assert plan.steps == ("deleted_rows", "filter", "partition_values")
    assert set(plan.files["partition_values"].to_pylist()[0]) == {"kind"}


def test_steps_of_a_file_are_its_own(deleted: Snapshot) -> None:
    plan = deleted.scan(columns=["id"]).plan_files()
    steps = [part.steps for part in plan]
    assert sorted(steps) == [(), (), ("deleted_rows",), ("deleted_rows",)]
    assert [part.steps for part in pickle.loads(pickle.dumps(plan))] == steps


def test_streams_that_are_not_the_whole_file_are_rejected(deleted: Snapshot) -> None:
    plan = deleted.scan().plan_files()
    whole = pq.read_table(plan.files["local_path"][0].as_py(), partitioning=None)
    for rows in (whole.slice(1), pa.concat_tables([whole, whole])):
        with pytest.raises(DataFileError, match="none filtered"):
            plan.read_file(0, rows).read_all()


def test_vector_beyond_the_end_is_rejected(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).create({"id": "long"}, features=["deletionVectors"])
    builder.append([{"id": i} for i in range(4)]).delete_rows(lambda row: row["id"] == 3)
    plan = open_snapshot(builder.uri).scan().plan_files()
    files = plan.files.set_column(4, "num_rows", pa.array([None], pa.int64()))
    damaged = ScanFiles(plan._context, files, plan._constants, plan._paths, plan._dropped)
    with pytest.raises(DataFileError, match="position 3, expected less than its 2 rows"):
        damaged.read_file(0, pa.table({"id": [0, 1]})).read_all()


def test_missing_vector_is_named_when_it_is_needed(deleted: Snapshot, tmp_path: Path) -> None:
    plan = deleted.scan().plan_files()
    for path in (tmp_path / "t").rglob("deletion_vector_*"):
        path.unlink()
    assert "deleted_rows" in plan.steps
    with pytest.raises(DataFileNotFoundError, match="deletion_vector"):
        plan.deleted_rows()
    with pytest.raises(DataFileNotFoundError, match="deletion_vector"):
        pickle.dumps(plan)


def test_what_no_reader_of_files_can_do_is_rejected(deleted: Snapshot) -> None:
    with pytest.raises(UnsupportedOperationError, match="Leave the limit out"):
        deleted.scan(limit=1).plan_files()
    plan = deleted.scan().plan_files()
    with pytest.raises(InvalidArgumentError, match="below 4"):
        plan.to_logical(4, pa.record_batch({"id": [1]}))
    with pytest.raises(InvalidArgumentError, match="step 2"):
        plan[::2]
    with pytest.raises(IndexError):
        plan[9]


def test_slices_are_plans(deleted: Snapshot) -> None:
    plan = deleted.scan().plan_files()
    assert [len(plan[1:3]), len(plan[3:1]), len(plan[-1])] == [2, 0, 1]
    whole = rows_of(plan)
    assert pa.concat_tables([rows_of(plan[:2]), rows_of(plan[2:])]).equals(whole)
    assert rows_of(plan[3:1]).num_rows == 0
    assert rows_of(pickle.loads(pickle.dumps(plan[3:1]))).num_rows == 0


def _read(plan: ScanFiles) -> list[dict[str, Any]]:
    return rows_of(plan).to_pylist()


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_other_processes_read_plans_without_the_log(deleted: Snapshot, tmp_path: Path, method: str) -> None:
    scan = deleted.scan(predicate="id > 2", metadata=["_file_row_index"])
    expected, plan = scan.to_table().to_pylist(), scan.plan_files()
    parts = list(plan)
    sent = [pickle.dumps(part) for part in parts]
    shutil.rmtree(tmp_path / "t" / "_delta_log")
    for path in (tmp_path / "t").rglob("deletion_vector_*"):
        path.unlink()
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(_read, [pickle.loads(data) for data in sent])
    assert [row for rows in found for row in rows] == expected


def test_pickles_are_small_and_have_the_files_of_the_slice_alone(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).create({"id": "long", "kind": "string"}, partition_by=["kind"])
    for start in range(0, 400, 100):
        builder.append([{"id": i, "kind": f"k{i:03}"} for i in range(start, start + 100)])
    snapshot = open_snapshot(builder.uri)
    scan = snapshot.scan()
    plan = scan.plan_files()
    assert len(plan) == 400
    assert len(pickle.dumps(snapshot)) < 1_000
    assert len(pickle.dumps(scan)) < 1_000
    assert len(pickle.dumps(plan[7])) < 5_000
    assert len(pickle.dumps(plan)) < 400 * 500


def test_threads_share_a_plan(deleted: Snapshot) -> None:
    scan = deleted.scan(predicate="id > 2")
    expected, plan = scan.to_table(), scan.plan_files()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: rows_of(plan), range(40)))
    assert all(rows.equals(expected) for rows in found)


def test_live_files_are_a_stream(deleted: Snapshot) -> None:
    found = pa.table(deleted.files)
    assert found.equals(deleted.scan().files())
    assert {"path", "dvId", "partitionValues"} <= set(found.column_names)


def test_coroutines_share_a_snapshot_beside_a_writer(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(10)}), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(tmp_path).delete("id = 9")
    shared = open_snapshot(tmp_path)
    scan = shared.scan(predicate="id >= 0")
    plan = scan.plan_files()

    async def read(number: int) -> tuple[int, int]:
        if number % 3 == 0:
            found = await asyncio.to_thread(rows_of, plan)
            return 1, found.num_rows
        if number % 3 == 1:
            return 1, (await asyncio.to_thread(scan.to_table)).num_rows
        latest = await asyncio.to_thread(shared.update)
        return latest.version, (await asyncio.to_thread(latest.scan(predicate="id >= 0").to_table)).num_rows

    async def write() -> None:
        for _ in range(10):
            rows = pa.table({"id": range(10)})
            await asyncio.to_thread(write_deltalake, tmp_path, rows, mode="append")

    async def main() -> list[tuple[int, int]]:
        writing = asyncio.create_task(write())
        found = await asyncio.gather(*(read(n) for n in range(150)))
        await writing
        return [*found, *(await asyncio.gather(*(read(n) for n in range(30))))]

    found = asyncio.run(main())
    assert all(rows == 9 + 10 * (version - 1) for version, rows in found)
    assert max(found) == (11, 109)


def test_coroutines_that_commit_lose_no_row(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [0]}))
    shared = open_snapshot(tmp_path)

    def append(number: int) -> int:
        transaction = shared.begin("WRITE", {"mode": "Append"})
        name = f"{number}.parquet"
        pq.write_table(pa.table({"id": [number]}), tmp_path / name)
        transaction.add_files(
            pa.table(
                {
                    "path": [name],
                    "partitionValues": pa.array([[]], pa.map_(pa.string(), pa.string())),
                    "size": [(tmp_path / name).stat().st_size],
                    "modificationTime": [1],
                    "dataChange": [True],
                    "stats": ['{"numRecords":1}'],
                }
            )
        )
        return transaction.commit(max_retries=100).version

    async def main() -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(append, n) for n in range(1, 25)))

    assert sorted(asyncio.run(main())) == list(range(1, 25))
    assert sorted(shared.update().scan().to_table()["id"].to_pylist()) == list(range(25))


def test_snapshots_and_scans_pickle_to_other_processes(deleted: Snapshot) -> None:
    expected = deleted.scan(predicate="id > 2").to_table().to_pylist()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(_scan, [pickle.loads(pickle.dumps(s)) for s in (deleted, deleted)])
        other = pool.apply(_table_of, (deleted.scan(predicate="id > 2"),))
    assert found == [expected, expected]
    assert other == expected


def _scan(snapshot: Snapshot) -> list[dict[str, Any]]:
    return snapshot.scan(predicate="id > 2").to_table().to_pylist()


def _table_of(scan: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scan.to_table().to_pylist()
    return found


@pytest.fixture
def stamped(tmp_path: Path) -> Snapshot:
    """A table of a plugin that hides, checks and drops rows, and stores a column of its own."""
    registry = PluginRegistry([honest_plugin.Plugin()])
    properties: dict[str, str | None] = {honest_plugin.ON: "true"}
    schema = StructType([Field("id", "long"), Field("doubled", "long")])
    create_table(open_context(str(tmp_path / "s"), plugins=registry), schema, properties=properties)
    table = DeltaTable(tmp_path / "s", plugins=registry)
    write_deltalake(table, pa.table({"id": [1, 2, 150, 4]}), mode="append")
    table.delete("id = 2")
    return open_snapshot(tmp_path / "s", plugins=registry)


def test_rules_of_plugins_are_applied(stamped: Snapshot) -> None:
    plan = check(stamped, columns=["id", "doubled"], metadata=["_stamp"])
    assert plan.steps == ("deleted_rows", "checks", "filter", "computed_columns")
    assert plan.physical_schema.names == ["id", "doubled", "_acme_stamp"]
    assert plan.filter is not None
    assert format_sql(plan.filter) == "id < 100L"
    assert rows_of(plan)["id"].to_pylist() == [1, 4]


def test_rows_that_a_check_forbids_are_rejected_by_place(stamped: Snapshot) -> None:
    plan = stamped.scan(columns=["id"]).plan_files()
    path = plan.files["local_path"][0].as_py()
    stored = pq.read_table(path)
    changed = stored.set_column(0, "id", pa.array([1, 2, 150, 5]))
    with pytest.raises(DataFileError, match=r"Row 3 of data file .* fails the check 'stamp fits' of acme.stamp"):
        plan.read_file(0, changed).read_all()


def test_batches_with_the_same_names_but_other_field_ids(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).create({"a": "long", "b": "long"}, column_mapping="id")
    plan = open_snapshot(builder.append([{"a": 1, "b": 2}]).uri).scan().plan_files()
    first, second = plan.physical_schema
    for fields, row in (((first, second), [1, 2]), ((second, first), [2, 1])):
        named = pa.schema([f.with_name(name) for f, name in zip(fields, "xy", strict=True)])
        batch = pa.record_batch([pa.array([v]) for v in row], schema=named)
        found = plan.to_logical(0, batch)
        assert found is not None
        assert found.to_pydict() == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    "rows",
    [5, [1, 2], [pa.table({"id": [1]})], pa.chunked_array([[1]])],
    ids=["number", "numbers", "tables", "chunked array"],
)
def test_objects_that_are_no_batches_are_rejected_by_type(tmp_path: Path, rows: Any) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    plan = open_snapshot(tmp_path).scan().plan_files()
    with pytest.raises(ArgumentTypeError, match=r"Found (a batch|batches) as .*, expected a"):
        plan.read_file(0, rows).read_all()


@pytest.mark.parametrize("rows", [5, pa.table({"id": [1]}), pa.array([1])], ids=lambda r: type(r).__name__)
def test_one_batch_is_expected_by_to_logical(tmp_path: Path, rows: Any) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    plan = open_snapshot(tmp_path).scan().plan_files()
    with pytest.raises(ArgumentTypeError, match=r"Found a batch as .*, expected a"):
        plan.to_logical(0, rows)
