"""Opening a table loads no more than it needs."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.testing.table_builder import TableBuilder
from tests.architecture.source import ROOT

HEAVY = (
    "pyspark",
    "numba",
    "pandas",
    "sqlglot",
    "polars",
    "rich",
    "click",
    "duckdb",
    "datafusion",
    "delta_core.testing",
)
# PyArrow's modules that take longer to import than a small read takes, and what only writes need
SLOW_TO_IMPORT = (
    *HEAVY,
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyarrow.fs",
    "pyarrow.dataset",
    "ssl",
    "fsspec",
    "delta_core.engines.arrow.storage.remote",
    "delta_core.write",
    "delta_core.commit.transaction",
    "delta_core.engines.arrow.parquet.data_writer",
)
LOADED = f"print(*sorted(m for m in {HEAVY!r} if m in sys.modules))"


@pytest.fixture
def table(tmp_path: Path) -> str:
    builder = TableBuilder(tmp_path / "t").create({"id": "long", "kind": "string"}, partition_by=["kind"])
    builder.append([{"id": 1, "kind": "a"}]).append([{"id": 2, "kind": "b"}])
    return str(tmp_path / "t")


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", f"import sys\n{code}\n{LOADED}", *arguments]
    # a width of the caller's terminal would make tables be cut as there
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy_and_no_arrow() -> None:
    assert _run("import delta_core\nassert 'pyarrow' not in sys.modules") == ""


@pytest.mark.parametrize("argument", ["--help", "--version", "completion"])
def test_help_of_the_program_loads_no_arrow_and_no_table(argument: str) -> None:
    code = (
        "from delta_core.cli import main\nassert main([sys.argv[1], *['bash'] * (sys.argv[1] == 'completion')]) == 0\n"
        "assert not {'pyarrow', 'numpy', 'delta_core.table'} & set(sys.modules)\nsys.stdout.flush()\nprint('\\f', "
        "end='')"
    )
    assert _run(code, argument).rpartition("\f")[2].split() == ["click"]


def test_open_loads_nothing_heavy(table: str) -> None:
    code = "from delta_core import DeltaTable\nt = DeltaTable(sys.argv[1])\nassert t.version() == 2\nt.metadata()"
    assert _run(code, table) == ""


def test_listing_files_loads_nothing_heavy(table: str) -> None:
    code = "from delta_core import DeltaTable\nassert DeltaTable(sys.argv[1]).snapshot().files.count == 2"
    assert _run(code, table) == ""


@pytest.fixture(params=["json", "struct"])
def checkpointed(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A checkpoint with commits above it, partitions, statistics and vectors."""
    schema = {"id": "long", "x": "double", "day": "date", "at": "timestamp", "name": "string", "kind": "string"}
    rows = [
        {
            "id": i,
            "x": i / 2,
            "day": dt.date(2024, 1, i),
            "at": dt.datetime(2024, 1, i, tzinfo=dt.UTC),
            "name": f"n{i}",
            "kind": "ab"[i % 2],
        }
        for i in range(1, 9)
    ]
    builder = TableBuilder(tmp_path / "t").create(schema, partition_by=["kind"], features=["deletionVectors"])
    builder.append(rows[:2]).append(rows[2:5]).delete_rows(lambda row: row["id"] == 2)
    builder.checkpoint(statistics=request.param).append(rows[5:])
    return str(tmp_path / "t")


PLAIN = "id > 1 and x < 3 and kind <> 'b' and at is not null"
IN_A_RANGE = "id > 3 and x <= 2.5 and day < date '2024-01-05' and name in ('n4', 'n5')"
IN_A_TIME = "at between timestamp '2024-01-02' and timestamp '2024-01-05' or id is null"
OF_ROWS = "id > 1 and x < 3 and kind <> 'b' and not isnull(at)"


@pytest.mark.parametrize(
    "work",
    [
        "table.snapshot().files.columns(['path', 'size'])",
        "table.get_add_actions(flatten=True)",
        "table.file_uris([('kind', '=', 'a')])",
        f'table.file_uris(file_pruning_predicate="{IN_A_RANGE}")',
        f'table.file_uris(file_pruning_predicate="{IN_A_TIME}")',
        "table.snapshot().scan().files()",
        "table.snapshot().scan().to_table()",
        "table.snapshot().scan().count()",
        f'table.snapshot().scan(["name"], ["_file_row_index"], "{OF_ROWS}").to_table()',
        "table.snapshot().scan(limit=3).to_table()",
    ],
)
def test_planning_and_scanning_load_no_pandas(checkpointed: str, work: str) -> None:
    # pyarrow.array, pyarrow.scalar and to_numpy import it: kernels.arrow_buffers has what replaces them
    loaded = _run(f"from delta_core import DeltaTable\ntable = DeltaTable(sys.argv[1])\n{work}", checkpointed)
    assert loaded in ("", "sqlglot")


@pytest.mark.parametrize("predicate", ["id = 1", "kind = 'a'"], ids=["vector", "whole files"])
def test_delete_that_writes_no_rows_loads_no_pandas(tmp_path: Path, predicate: str) -> None:
    rows = pa.table({"id": list(range(10)), "kind": ["a", "b"] * 5})
    configuration = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "t", rows, partition_by=["kind"], configuration=configuration)
    code = "from delta_core import DeltaTable\nassert DeltaTable(sys.argv[1]).delete(sys.argv[2])['num_deleted_rows']"
    assert "pandas" not in _run(code, str(tmp_path / "t"), predicate)


_SOURCE = """
import numpy as np, pyarrow as pa
ids = pa.Array.from_buffers(pa.int64(), 10, [None, pa.py_buffer(np.arange(5, 15))])
source = pa.Table.from_arrays([ids, pa.nulls(10, pa.string())], ["id", "kind"])
"""
_MERGE = """
merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
merge.when_matched_update_all().when_not_matched_insert_all().execute()
"""


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.enableDeletionVectors": "true"},
        {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"},
    ],
    ids=["copies", "vectors", "feed and row ids"],
)
def test_writes_of_arrow_rows_load_no_pandas(tmp_path: Path, properties: dict[str, str]) -> None:
    rows = pa.table({"id": list(range(10)), "kind": ["a", "b"] * 5})
    write_deltalake(tmp_path / "t", rows, configuration=properties)
    code = f"""
from delta_core import DeltaTable, write_deltalake
{_SOURCE}
table = DeltaTable(sys.argv[1])
write_deltalake(table, source, mode="append")
table.delete("id = 1")
table.update({{"kind": "'c'"}}, predicate="id = 2")
table.delete("id >= 10")
{_MERGE}
assert table.version() == 5, table.version()"""
    assert "pandas" not in _run(code, str(tmp_path / "t"))


UPKEEP = {
    "vacuum": "table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)",
    "vacuum lite": "table.vacuum(0, dry_run=False, enforce_retention_duration=False)",
    "restore": "table.restore(1)",
    "compact log": "table.compact_logs(0, 2)",
    "clean log": "table.cleanup_metadata()",
    "checkpoint": "table.create_checkpoint()",
    "verify": "table.verify()",
    "verify deep": "table.verify(deep=True)",
    "repair": "table.repair()",
    "statistics": "table.compute_statistics()",
    "clone": "table.clone(sys.argv[1] + '-clone')",
    "deep clone": "table.clone(sys.argv[1] + '-clone', deep=True)",
    "add a feature": "table.alter.add_feature('timestampNtz')",
    "drop a feature": "table.alter.drop_feature('deletionVectors', truncate_history=False)",
    "compact": "table.optimize.compact()",
    "change feed": "table.load_cdf(0).read_all()",
    "diff": "table.diff(1, 2)",
}


@pytest.mark.parametrize("work", UPKEEP.values(), ids=UPKEEP)
def test_upkeep_loads_no_pandas(tmp_path: Path, work: str) -> None:
    path, rows = tmp_path / "t", pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})
    properties = ("enableChangeDataFeed", "enableDeletionVectors", "enableRowTracking")
    write_deltalake(path, rows, configuration={f"delta.{p}": "true" for p in properties})
    write_deltalake(path, rows, mode="append")
    DeltaTable(path).delete("id = 2")
    code = f"from delta_core import DeltaTable\ntable = DeltaTable(sys.argv[1])\n{work}"
    assert "pandas" not in _run(code, str(path))


@pytest.mark.parametrize(
    "work",
    [
        f'table.snapshot().scan(["name"], predicate="{PLAIN}").to_table()',
        "table.to_pyarrow_table(columns=['name', 'name'], filters=[('id', '<', 4)])",
        "table.to_pyarrow_table(partitions=[('kind', '=', 'a')], filters='id < 4')",
        "table.to_pyarrow_table()",
    ],
)
def test_first_read_loads_only_what_it_needs(checkpointed: str, work: str) -> None:
    code = f"""
from delta_core import DeltaTable
table = DeltaTable(sys.argv[1])
{work}
print(*sorted(m for m in {SLOW_TO_IMPORT!r} if m in sys.modules), end="\\f")"""
    assert _run(code, checkpointed).partition("\f")[0] == ""


def test_read_of_one_file_without_times_starts_no_threads_and_loads_no_zones(table: str) -> None:
    code = """
from delta_core import DeltaTable
assert DeltaTable(sys.argv[1]).scan(predicate="kind = 'a' and id < 5").to_table().num_rows == 1
print(*sorted({"zoneinfo", "concurrent.futures"} & set(sys.modules)), end="\\f")"""
    assert _run(code, table).partition("\f")[0] == ""


@pytest.mark.parametrize("arguments", [["head"], ["head", "--json"], ["info"]])
def test_reading_by_the_command_line_loads_only_what_it_needs(checkpointed: str, arguments: list[str]) -> None:
    allowed = {"click"} if arguments[0] == "head" else {"click", "rich"}
    code = f"""
from delta_core.cli import main
assert main([sys.argv[1], sys.argv[-1], *sys.argv[2:-1]]) == 0
print("\\f", *sorted(m for m in {SLOW_TO_IMPORT!r} if m in sys.modules and m not in {allowed!r}), end="\\f")"""
    assert _run(code, *arguments, checkpointed).split("\f")[1].split() == []


def test_open_imports_plugins_of_the_table_only(table: str) -> None:
    code = (
        "from delta_core import DeltaTable\nDeltaTable(sys.argv[1]).version()\n"
        "assert not [m for m in sys.modules if m.startswith('delta_plugins.deletion')]"
    )
    assert _run(code, table) == ""
