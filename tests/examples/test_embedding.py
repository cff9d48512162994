"""The programs of examples/embedding: other readers return the rows of a scan, and commit actions."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, Field, write_deltalake
from delta_core.api import Snapshot, open_snapshot, removed_files
from delta_core.errors import CommitConflictError
from delta_core.testing.table_builder import TableBuilder

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "embedding"


@pytest.fixture(autouse=True)
def importable() -> Iterator[None]:
    """Let the tests import the examples."""
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


def read_by_duckdb(plan: Any, where: str | None = None) -> pa.Table:
    pytest.importorskip("duckdb")
    return import_module("duckdb_reader").read(plan, where)


def read_by_polars(plan: Any, where: str | None = None) -> pa.Table:
    polars = pytest.importorskip("polars")
    frame = import_module("polars_reader").scan(plan, None if where is None else polars.sql_expr(where))
    return frame.collect().to_arrow().cast(plan.schema)


READERS = [read_by_duckdb, read_by_polars]


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by("id").combine_chunks()


def typed_rows(count: int) -> pa.Table:
    made = range(count)
    return pa.table(
        {
            "id": list(made),
            "kind it": pa.array([None if i % 5 == 0 else f"k'{i % 3}" for i in made]),
            "day": pa.array([date(2024, 5, 1 + i % 2) for i in made]),
            "amount": pa.array([Decimal(i) / 4 for i in made], pa.decimal128(10, 2)),
            "at": pa.array([datetime(2024, 5, 1, i % 24, tzinfo=UTC) for i in made], pa.timestamp("us", "UTC")),
            "flag": [i % 2 == 0 for i in made],
        }
    )


@pytest.fixture
def mapped(tmp_path: Path) -> Snapshot:
    """A table with two partition columns, deletion vectors, renamed and added columns, in several files."""
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path, typed_rows(40), partition_by=["day", "kind it"], configuration=properties)
    table = DeltaTable(tmp_path)
    table.alter.rename_column("amount", "net amount")
    table.alter.add_columns([Field("note", "string")])
    table.delete("id IN (3, 4, 17)")
    more = pa.table(
        {"id": [100, 101], "note": ["x", None], "day": [date(2024, 5, 1)] * 2, "net amount": [Decimal(1)] * 2}
    )
    write_deltalake(table, more, mode="append")
    return open_snapshot(tmp_path)


@pytest.mark.parametrize("read", READERS)
def test_vectors_partition_columns_and_mapped_names_are_applied(mapped: Snapshot, read: Any) -> None:
    scan = mapped.scan()
    plan = scan.plan_files()
    assert plan.steps == ("deleted_rows", "partition_values", "column_names")
    assert scan.count() == 39
    assert in_order(read(plan)).equals(in_order(scan.to_table()))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("condition", ["id > 20", "day = '2024-05-01' AND flag", "note IS NULL AND id < 9"])
def test_filters_choose_files_and_rows(mapped: Snapshot, read: Any, condition: str) -> None:
    scan = mapped.scan(columns=["id", "day", "net amount"], predicate=condition)
    where = condition.replace("'2024-05-01'", "CAST('2024-05-01' AS DATE)")
    found = read(scan.plan_files(), where)
    assert found.num_rows
    assert in_order(found).equals(in_order(scan.to_table()))
    with pytest.raises(ValueError, match="leaves a filter"):
        read(scan.plan_files())


@pytest.mark.parametrize("read", READERS)
def test_a_plan_without_files_has_no_rows(mapped: Snapshot, read: Any) -> None:
    scan = mapped.scan(predicate="id > 1000")
    assert len(scan.plan_files()) == 0
    assert read(scan.plan_files(), "id > 1000").equals(scan.to_table())


@pytest.mark.parametrize("read", READERS)
def test_steps_that_a_reader_does_not_do_are_rejected(mapped: Snapshot, tmp_path: Path, read: Any) -> None:
    with pytest.raises(NotImplementedError, match="computed_columns"):
        read(mapped.scan(metadata=["_file_row_index"]).plan_files())
    TableBuilder(tmp_path / "by_id").create({"id": "long"}, column_mapping="id").append([{"id": 1}])
    with pytest.raises(NotImplementedError, match="matching by field ids"):
        read(open_snapshot(tmp_path / "by_id").scan().plan_files())


@pytest.fixture
def plain(tmp_path: Path) -> Snapshot:
    rows = pa.table({"id": range(10), "text": [f"t{i}" for i in range(10)]})
    write_deltalake(tmp_path / "plain", rows, configuration={"delta.enableDeletionVectors": "true"})
    return open_snapshot(tmp_path / "plain")


def ids(snapshot: Snapshot) -> list[int]:
    return sorted(DeltaTable(snapshot.uri).to_pyarrow_table()["id"].to_pylist())


def test_duckdb_deletes_rows_and_appends_a_file_with_statistics(plain: Snapshot) -> None:
    pytest.importorskip("duckdb")
    duckdb_reader: Any = import_module("duckdb_reader")
    assert duckdb_reader.delete(plain, "id % 4 = 1") == 1
    rows = pa.table({"id": [70, 71], "text": ["a", None]})
    assert duckdb_reader.append(plain.update(), rows) == 2
    assert ids(plain) == [0, 2, 3, 4, 6, 7, 8, 70, 71]
    latest = plain.update()
    assert latest.scan(predicate="id > 50").plan_files().files["num_rows"].to_pylist() == [2], "statistics prune"
    assert DeltaTable(latest.uri).verify(deep="rows").ok
    # the second delete of the file joins its vector with the first
    assert duckdb_reader.delete(latest, "id IN (1, 2)") == 3
    assert ids(plain) == [0, 3, 4, 6, 7, 8, 70, 71]


def test_polars_deletes_rows(plain: Snapshot) -> None:
    polars = pytest.importorskip("polars")
    assert import_module("polars_reader").delete(plain, polars.col("text").is_in(["t3", "t9"])) == 1
    assert ids(plain) == [0, 1, 2, 4, 5, 6, 7, 8]


def test_deletes_of_other_rows_of_one_file_are_joined_and_rows_that_landed_are_a_conflict(plain: Snapshot) -> None:
    pytest.importorskip("duckdb")
    duckdb_reader: Any = import_module("duckdb_reader")
    late = plain.begin("DELETE")
    late.remove_rows(plain.files.columns(["path"]), pa.array([[8]]))
    duckdb_reader.delete(plain, "id = 1")
    assert late.commit().attempts == 2
    assert ids(plain) == [0, 2, 3, 4, 5, 6, 7, 9]
    removal, other = (plain.update().begin("DELETE") for _ in range(2))
    for transaction in (removal, other):
        transaction.remove_files(removed_files(plain.update().scan().files()))
    removal.commit()
    with pytest.raises(CommitConflictError):
        other.commit()
    assert ids(plain) == []


def test_two_engines_read_one_table_in_one_process(mapped: Snapshot) -> None:
    pytest.importorskip("duckdb")
    engine = import_module("tests.engines.duckdb_engine").engine(mapped.uri)
    by_name = ["id", "day", "net amount"]
    own, other = (
        open_snapshot(mapped.uri, engine=e).scan(columns=by_name, predicate="id > 5") for e in ("arrow", engine)
    )
    expected = in_order(own.to_table())
    assert in_order(other.to_table()).equals(expected)
    assert in_order(read_by_polars(other.plan_files(), "id > 5")).equals(expected)
    rows = [other.plan_files().read_file(n, pq.ParquetFile(p).iter_batches()).read_all()
            for n, p in enumerate(other.plan_files().files["local_path"].to_pylist())]  # fmt: skip
    assert in_order(pa.concat_tables(rows)).equals(expected)


# --- C++ -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cpp(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Build the engine in C++, and import it."""
    compiler = next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)
    include = Path(sysconfig.get_paths()["include"])
    if compiler is None:
        pytest.skip("there is no C++ compiler: c++, g++ or clang++ builds examples/embedding/cpp")
    if not (include / "Python.h").exists():
        pytest.skip(f"there is no Python.h in {include}: install the headers of this Python")
    target = tmp_path_factory.mktemp("cpp") / "cpp_engine.so"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-shared", "-fPIC"]
    flags += ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    source = EXAMPLES / "cpp" / "engine.cpp"
    subprocess.run([compiler, *flags, f"-I{include}", str(source), "-o", str(target)], check=True)
    spec = spec_from_file_location("cpp_engine", target)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Exported:
    """Capsules that C++ made."""

    def __init__(self, capsules: tuple[Any, Any]) -> None:
        self._capsules = capsules

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self._capsules


def stored(file: Any) -> pa.RecordBatchReader:
    """The rows of a data file, as the Parquet reader of an engine hands them out."""
    data = pq.ParquetFile(file.files["local_path"][0].as_py())
    return pa.RecordBatchReader.from_batches(data.schema_arrow, data.iter_batches(batch_size=3))


@pytest.fixture
def numbers(tmp_path: Path) -> Snapshot:
    """A partitioned table with column mapping and deletion vectors."""
    rows = pa.table({"id": range(40), "kind": ["a", "b"] * 20})
    properties = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "n", rows, partition_by=["kind"], configuration=properties)
    DeltaTable(tmp_path / "n").delete("id IN (3, 4, 17, 38)")
    return open_snapshot(tmp_path / "n")


def test_cpp_lists_files_and_skips_deleted_rows(cpp: Any, numbers: Snapshot) -> None:
    plan = numbers.scan(predicate="kind = 'a'").plan_files()
    assert cpp.list_files(plan) == list(zip(*(plan.files[n].to_pylist() for n in ("path", "size")), strict=True))
    whole = numbers.scan().plan_files()
    deleted = whole.deleted_rows()
    for n, file in enumerate(whole):
        left = numbers.scan(predicate=f"kind = '{file.files['partition_values'][0].as_py()['kind']}'").to_table()["id"]
        assert cpp.total(stored(file), "id", deleted, n) == (len(left), sum(left.to_pylist()))
        assert cpp.total(stored(file), "id", deleted.slice(n), 0) == (len(left), sum(left.to_pylist()))


def test_cpp_reads_rows_that_the_kernel_made(cpp: Any, mapped: Snapshot) -> None:
    plan = mapped.scan(columns=["id"], predicate="id > 9").plan_files()
    nothing = pa.array([[]], pa.large_list(pa.int64()))
    found = [cpp.total(file.read_file(0, stored(file)), "id", nothing, 0) for file in plan]
    expected = mapped.scan(columns=["id"], predicate="id > 9").to_table()["id"].to_pylist()
    assert (sum(c for c, _ in found), sum(s for _, s in found)) == (len(expected), sum(expected))


def test_cpp_deletes_rows_and_adds_a_file_with_statistics(cpp: Any, numbers: Snapshot) -> None:
    transaction = numbers.begin("CPP")
    for file in numbers.scan().plan_files():
        positions = Exported(cpp.positions_below(stored(file), "id", 10))
        transaction.remove_rows(file.files["path"][0].as_py(), positions)
    rows = pa.table({"id": [100, 90, 95]})
    place = Path(numbers.uri) / "from-cpp.parquet"
    pq.write_table(rows, place)
    action = cpp.add_action(place.name, place.stat().st_size, 1_700_000_000_000, "kind", "c", rows, "id")
    transaction.add_files(Exported(action))
    latest = transaction.commit().snapshot
    assert ids(latest) == [*sorted({*range(10, 40)} - {17, 38}), 90, 95, 100]
    assert DeltaTable(latest.uri).verify(deep="rows").ok
    (added,) = latest.scan(predicate="kind = 'c'").plan_files().files.to_pylist()
    assert (added["num_rows"], added["partition_values"]) == (3, {"kind": "c"})
    assert len(latest.scan(predicate="id > 95").plan_files()) == 1, "its statistics prune the others"
    assert len(latest.scan(predicate="id > 100").plan_files()) == 0


def test_cpp_gets_conflicts_and_repeats(cpp: Any, numbers: Snapshot) -> None:
    def delete(snapshot: Snapshot, limit: int) -> Any:
        transaction = snapshot.begin("CPP")
        for file in snapshot.scan().plan_files():
            positions = Exported(cpp.positions_below(stored(file), "id", limit))
            transaction.remove_rows(file.files["path"][0].as_py(), positions)
        return transaction

    late = delete(numbers, 20)
    removal = numbers.begin("DELETE")
    removal.remove_files(removed_files(numbers.scan(predicate="kind = 'a'").files()))
    removal.commit()
    with pytest.raises(CommitConflictError):
        late.commit()
    assert delete(numbers.update(), 20).commit().attempts == 1
    assert ids(numbers) == list(range(21, 40, 2))


def test_cpp_rejects_what_it_can_not_read(cpp: Any, numbers: Snapshot) -> None:
    plan = numbers.scan().plan_files()
    with pytest.raises(ValueError, match="there is no column missing"):
        cpp.total(stored(plan[0]), "missing", plan.deleted_rows(), 0)
    with pytest.raises(ValueError, match="there is no such file"):
        cpp.total(stored(plan[0]), "id", plan.deleted_rows(), 7)
    with pytest.raises(AttributeError):
        cpp.list_files([1])
    with pytest.raises(ValueError, match="without nulls"):
        cpp.add_action("x", 1, 1, "kind", "c", pa.table({"id": [1, 2, None]}), "id")
