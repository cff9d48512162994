"""Opening a table loads no more than it needs."""

from __future__ import annotations

import datetime as dt
import logging
import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.testing.table_builder import TableBuilder
from delta_plugins.lance import write_lance
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
    "delta_core.storage.remote",
    "delta_core.kernel.write",
    "delta_core.kernel.commit.transaction",
    "delta_core.parquet.data_writer",
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
        "assert not {'pyarrow', 'numpy', 'delta_core.table.delta_table'} & set(sys.modules)\nsys.stdout.flush()\n"
        "print('\\f', end='')"
    )
    assert _run(code, argument).rpartition("\f")[2].split() == ["click"]


def test_open_loads_nothing_heavy(table: str) -> None:
    code = "from delta_core import DeltaTable\nt = DeltaTable(sys.argv[1])\nassert t.version() == 2\nt.metadata()"
    assert _run(code, table) == ""


def test_first_filtered_read_loads_no_history_printing_and_log_writer(table: str) -> None:
    parts = (
        "engines.arrow.parquet.statistics",
        "engines.arrow.storage.log_writer",
        "expressions.printing",
        "handles.preview",
        "runtime.html",
        "kernels.folders",
        "log.history",
        "log.timestamps",
    )
    code = (
        "from delta_core import DeltaTable\n"
        "assert DeltaTable(sys.argv[1]).scan(predicate='id < 2').to_table().num_rows == 1\n"
        f"assert not {{'delta_core.' + p for p in {parts!r}}} & set(sys.modules)"
    )
    assert _run(code, table) == ""


def test_first_filtered_read_of_plain_files_loads_no_other_reader(table: str) -> None:
    later = (
        "delta_core.kernel.commit.options",
        "delta_core.parquet.legacy_calendar",
        "delta_core.parquet.reader",
        "delta_core.storage.local_files",
        "delta_core.storage.prefetch",
        "delta_core.engines.interface",
        "delta_core.kernel.log.group_tests",
        "delta_core.kernel.plugins.steps",
        "ipaddress",
        "logging",
        "pyarrow._parquet",
        "urllib.parse",
    )
    code = (
        "import pyarrow, sys\nbefore = set(sys.modules)\nfrom delta_core import DeltaTable\n"
        "assert DeltaTable(sys.argv[1]).scan(predicate='id < 2').to_table().num_rows == 1\n"
        f"print(sorted({set(later)!r} & set(sys.modules) - before))"
    )
    # without the .pth files of an editable installation, which load modules of their own
    path = os.pathsep.join([str(ROOT), *site.getsitepackages()])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, table],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.strip() == "[]"


def test_messages_of_reads_reach_a_log_that_wants_them(table: str, caplog: pytest.LogCaptureFixture) -> None:
    read = DeltaTable(table).scan(predicate="id < 2").to_table
    with caplog.at_level(logging.INFO, "delta_core"):
        read()
    assert caplog.messages == []
    with caplog.at_level(logging.DEBUG, "delta_core"):
        read()
    assert any(text.startswith("Read 1 rows") for text in caplog.messages)


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


PLANNING = [
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
]


def _run_each(works: Iterable[str], tables: list[Path], modules: tuple[str, ...], before: str = "") -> None:
    """Run each piece of work on a table of its own, in one process: none of them may load one of the modules.

    A process for each would prove no more: what a piece of work loads stays loaded.
    """
    code = f"from delta_core import DeltaTable\n{before}\n"
    for work, path in zip(works, tables, strict=True):
        code += f"path = {str(path)!r}\ntable = DeltaTable(path)\n{work}\n"
        code += f"found = [m for m in {modules!r} if m in sys.modules]\nassert not found, ({work!r}, found)\n"
    _run(code)


def _copies(table: str, number: int) -> list[Path]:
    """Return copies of a table: no cache of another one serves them."""
    return [Path(shutil.copytree(table, f"{table}-{i}")) for i in range(number)]


def test_planning_and_scanning_load_no_pandas(checkpointed: str) -> None:
    # pyarrow.array, pyarrow.scalar and to_numpy import it: kernels.arrow_buffers has what replaces them
    modules = tuple(m for m in HEAVY if m != "sqlglot")
    _run_each(PLANNING, _copies(checkpointed, len(PLANNING)), modules)


def test_read_through_polars_loads_no_pandas(table: str) -> None:
    pytest.importorskip("polars")
    work = "assert table.to_polars().sql(\"select id from self where kind = 'a'\").collect().height == 1"
    _run_each([work], [Path(table)], ("pandas", "pyarrow.compute", "pyarrow.dataset"))


@pytest.mark.parametrize("predicate", ["id = 1", "kind = 'a'"], ids=["vector", "whole files"])
def test_delete_that_writes_no_rows_loads_no_pandas(tmp_path: Path, predicate: str) -> None:
    rows = pa.table({"id": list(range(10)), "kind": ["a", "b"] * 5})
    configuration = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "t", rows, partition_by=["kind"], configuration=configuration)
    work = f"assert table.delete({predicate!r})['num_deleted_rows']"
    _run_each([work], [tmp_path / "t"], ("pandas",))


_SOURCE = """
import numpy as np, pyarrow as pa
from delta_core import write_deltalake
ids = pa.Array.from_buffers(pa.int64(), 10, [None, pa.py_buffer(np.arange(5, 15))])
source = pa.Table.from_arrays([ids, pa.nulls(10, pa.string())], ["id", "kind"])
"""
_WRITES = """
write_deltalake(table, source, mode="append")
table.delete("id = 1")
table.update({"kind": "'c'"}, predicate="id = 2")
table.delete("id >= 10")
merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
merge.when_matched_update_all().when_not_matched_insert_all().execute()
assert table.version() == 5, table.version()
"""


def test_writes_of_arrow_rows_load_no_pandas(tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(10)), "kind": ["a", "b"] * 5})
    forms: dict[str, dict[str, str]] = {
        "copies": {},
        "vectors": {"delta.enableDeletionVectors": "true"},
        "feed and row ids": {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"},
    }
    for name, properties in forms.items():
        write_deltalake(tmp_path / name, rows, configuration=properties)
    _run_each([_WRITES] * len(forms), [tmp_path / name for name in forms], ("pandas",), _SOURCE)


UPKEEP = [
    "table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)",
    "table.vacuum(0, dry_run=False, enforce_retention_duration=False)",
    "table.restore(1)",
    "table.compact_logs(0, 2)",
    "table.cleanup_metadata()",
    "table.create_checkpoint()",
    "table.verify()",
    "table.verify(deep=True)",
    "table.repair()",
    "table.compute_statistics()",
    "table.clone(path + '-clone')",
    "table.clone(path + '-clone', deep=True)",
    "table.alter.add_feature('timestampNtz')",
    "table.alter.drop_feature('deletionVectors', truncate_history=False)",
    "table.optimize.compact()",
    "table.load_cdf(0).read_all()",
    "table.diff(1, 2)",
]


@pytest.mark.parametrize("exists", [False, True])
def test_first_append_loads_no_checkpoints_and_no_changes_of_rows(tmp_path: Path, exists: bool) -> None:
    later = (
        "delta_core.kernel.commit.cleanup",
        "delta_core.kernel.commit.manifests",
        "delta_core.kernel.log.checkpoint_writer",
        "delta_core.operations.convert",
        "delta_core.operations.optimize",
        "delta_core.operations.row_changes",
        "delta_core.kernel.scan.scan",
        "difflib",
        "email.message",
        "importlib.metadata",
    )
    if exists:
        write_deltalake(tmp_path / "t", pa.table({"id": [0]}))
    code = (
        "import pyarrow as pa\nrows = pa.table({'id': pa.array([1])})\nbefore = set(sys.modules)\n"
        "from delta_core import write_deltalake\nwrite_deltalake(sys.argv[1], rows, mode='append')\n"
        f"found = sorted({set(later)!r} & (set(sys.modules) - before))\nassert not found, found"
    )
    _run(code, str(tmp_path / "t"))


def test_checkpoint_loads_no_file_systems_of_pyarrow(table: str) -> None:
    code = (
        "from delta_core import DeltaTable\nDeltaTable(sys.argv[1]).create_checkpoint()\n"
        "assert not {'pyarrow.parquet', 'pyarrow.fs'} & set(sys.modules)"
    )
    assert _run(code, table) == ""


def test_upkeep_loads_no_pandas(tmp_path: Path) -> None:
    path, rows = tmp_path / "t", pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})
    properties = ("enableChangeDataFeed", "enableDeletionVectors", "enableRowTracking")
    write_deltalake(path, rows, configuration={f"delta.{p}": "true" for p in properties})
    write_deltalake(path, rows, mode="append")
    DeltaTable(path).delete("id = 2")
    _run_each(UPKEEP, _copies(str(path), len(UPKEEP)), ("pandas",))


FIRST_READS = [
    f'table.snapshot().scan(["name"], predicate="{PLAIN}").to_table()',
    "table.to_pyarrow_table(columns=['name', 'name'], filters=[('id', '<', 4)])",
    "table.to_pyarrow_table(partitions=[('kind', '=', 'a')], filters='id < 4')",
    "table.to_pyarrow_table()",
]


def test_first_read_loads_only_what_it_needs(checkpointed: str) -> None:
    _run_each(FIRST_READS, _copies(checkpointed, len(FIRST_READS)), SLOW_TO_IMPORT)


#: What a filter that the decoder tests does not need, nor any other part of a read.
LATE = (
    "pyarrow._compute",
    "numpy.typing",
    "zlib",
    "delta_core.table.alterer",
    "delta_core.table.optimizer",
    "delta_core.operations.merge.builder",
    "delta_core.kernel.scan.explain",
    "delta_core.engines.arrow.evaluate.evaluator",
    "delta_core.engines.arrow.checkpoint_files",
    "delta_core.expressions.pyarrow_filters",
    "delta_core.expressions.sqlglot_trees",
    "delta_core.kernels.json_lines",
    "delta_core.parquet.nested_pages",
    "delta_core.kernels.row_set",
    "delta_core.kernel.log.checkpoint",
    "delta_core.kernel.log.checksum",
    "delta_core.kernel.scan.vectors",
)


def test_filtered_read_of_one_file_loads_no_compute_functions_and_few_modules(tmp_path: Path) -> None:
    TableBuilder(tmp_path / "t").create({"id": "long", "name": "string"}).append([{"id": 1}, {"id": 2}])
    code = f"""
from delta_core import DeltaTable
assert DeltaTable(sys.argv[1]).scan(predicate="id < 2").to_table().num_rows == 1
assert not set({LATE!r}) & set(sys.modules), sorted(set({LATE!r}) & set(sys.modules))
number = sum(m.startswith(("delta_core", "delta_plugins")) for m in sys.modules)
# each adds a quarter of a millisecond to the start of every process
assert number <= 149, number"""
    assert _run(code, str(tmp_path / "t")) == ""


def test_open_and_plan_for_another_reader_load_no_dataset_and_few_modules(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t").create(
        {"id": "long", "kind": "string"}, partition_by=["kind"], features=["deletionVectors"]
    )
    builder.append([{"id": 1, "kind": "a"}, {"id": 2, "kind": "a"}]).delete_rows(lambda row: row["id"] == 1)
    own = "from delta_core.api import open_snapshot\nsnapshot = open_snapshot(sys.argv[1])\n"
    late = ("hashlib", "delta_core.parquet", "delta_core.table", "delta_core.operations", "delta_core.kernel.write")
    code = f"""
{own}assert snapshot.scan().files().num_rows == 1
found = {{m for m in sys.modules if m.startswith({(*SLOW_TO_IMPORT, *late)!r})}}
assert not found, found
number = sum(m.startswith(("delta_core", "delta_plugins")) for m in sys.modules)
assert number <= 127, number
plan = snapshot.scan(predicate="id > 0").plan_files()
assert (len(plan), plan.deleted_rows().to_pylist()) == (1, [[0]])
found = {{m for m in sys.modules if m.startswith({SLOW_TO_IMPORT!r})}}
assert not found, found"""
    assert _run(code, str(tmp_path / "t")) == ""


def test_read_of_one_file_without_times_starts_no_threads_and_loads_no_zones(table: str) -> None:
    code = """
from delta_core import DeltaTable
assert DeltaTable(sys.argv[1]).scan(predicate="kind = 'a' and id < 5").to_table().num_rows == 1
print(*sorted({"zoneinfo", "concurrent.futures"} & set(sys.modules)), end="\\f")"""
    assert _run(code, table).partition("\f")[0] == ""


def test_reading_by_the_command_line_loads_only_what_it_needs(checkpointed: str) -> None:
    commands = [["head"], ["head", "--json"], ["info"]]
    code = "from delta_core.cli import main\n"
    for (command, *options), path in zip(commands, _copies(checkpointed, len(commands)), strict=True):
        allowed = {"click"} if command == "head" else {"click", "rich"}
        code += f"assert main({[command, str(path), *options]!r}) == 0\n"
        code += f"found = {{m for m in {SLOW_TO_IMPORT!r} if m in sys.modules}} - {allowed!r}\n"
        code += f"assert not found, ({command!r}, found)\n"
    _run(code)


def test_open_imports_plugins_of_the_table_only(table: str) -> None:
    code = (
        "from delta_core import DeltaTable\nDeltaTable(sys.argv[1]).version()\n"
        "assert not [m for m in sys.modules if m.startswith('delta_plugins.deletion')]"
    )
    assert _run(code, table) == ""


def test_first_rows_of_a_lance_dataset_load_nothing_that_writes_or_plans(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_lance(place, pa.table({"id": [1, 2], "text": ["a", None], "list": [[1], []]}))
    slow = (
        *SLOW_TO_IMPORT,
        "delta_plugins.lance.write",
        "delta_plugins.lance.commit",
        "delta_plugins.lance.files.write_file",
        "delta_plugins.lance.index.plan",
    )
    code = (
        "from delta_core import open_table\n"
        "assert open_table(sys.argv[1]).head(1).num_rows == 1\n"
        f"print(*(m for m in {slow!r} if m in sys.modules))"
    )
    assert _run(code, place).split() == []
