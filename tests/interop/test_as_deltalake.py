"""The name ``deltalake`` for this library: programs of users and libraries run unchanged."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector, PyFileSystem

from delta_core import DeltaTable, write_deltalake
from delta_core.deltalake_names.fs import DeltaStorageHandler
from delta_core.deltalake_names.transaction import AddAction, create_table_with_add_actions
from delta_core.errors import InvalidArgumentError, TableExistsError
from tests.docs.blocks import ROOT

PROGRAMS = ROOT / "tests" / "interop" / "deltalake_programs"
#: Programs as users of deltalake write them, which need nothing else.
SCRIPTS = ROOT / "tests" / "interop" / "deltalake_scripts"
#: What each program needs beside this library.
NEEDS = {
    "polars_tables": ["polars"],
    "dask_tables": ["dask_deltatable"],
    "daft_tables": ["daft", "pyiceberg"],
    "dlt_pipeline": ["dlt"],
    "dagster_assets": ["dagster_deltalake_pandas", "dagster_deltalake_polars"],
    "ibis_tables": ["ibis", "polars"],
    "pandas_frames": ["pandas"],
}


def run(*arguments: str | Path, code: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(["-c", textwrap.dedent(code)] if code else []), *map(str, arguments)]
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=env, cwd=ROOT.parent)


def test_each_program_is_run() -> None:
    assert {p.stem for p in PROGRAMS.glob("*.py")} - {"__init__"} == set(NEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_program_runs_unchanged(name: str, tmp_path: Path) -> None:
    missing = [n for n in NEEDS[name] if importlib.util.find_spec(n) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed: pip install -e '.[test-deltalake-programs]'")
    done = run("-m", "delta_core.as_deltalake", PROGRAMS / f"{name}.py", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(p.stem for p in SCRIPTS.glob("*.py")))
def test_script_runs_unchanged(name: str, tmp_path: Path) -> None:
    done = run("-m", "delta_core.as_deltalake", SCRIPTS / f"{name}.py", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.parametrize("name", sorted(p.stem for p in SCRIPTS.glob("*.py")))
def test_script_runs_on_deltalake_itself(name: str, tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="runs the scripts as they are")
    # its process may abort afterwards, while its threads end
    script = f"{SCRIPTS / name}.py"
    done = run(
        tmp_path, code=f"import runpy; runpy.run_path({script!r}, run_name='__main__'); print('ended', flush=True)"
    )
    assert done.stdout.endswith("ended\n"), done.stderr[-3000:]


@pytest.mark.parametrize("start", ["--arro3", "in the program"])
def test_results_are_those_of_arro3_on_request(start: str, tmp_path: Path) -> None:
    pytest.importorskip("arro3", reason="its objects are returned")
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import sys, arro3.core, pyarrow as pa
            if sys.argv[2] == "in the program":
                import delta_core
                delta_core.install_as_deltalake(arro3=True)
                delta_core.install_as_deltalake(arro3=True)
            from deltalake import DeltaTable, QueryBuilder, write_deltalake
            write_deltalake(sys.argv[1], pa.table({"a": [1, 2]}), configuration={"delta.enableChangeDataFeed": "true"})
            table = DeltaTable(sys.argv[1])
            actions = table.get_add_actions(flatten=True)
            changes = table.load_cdf()
            found = QueryBuilder().register("t", table).execute("SELECT max(a) AS a FROM t")
            assert isinstance(actions, arro3.core.Table), type(actions)
            assert isinstance(changes, arro3.core.RecordBatchReader), type(changes)
            assert isinstance(found, arro3.core.RecordBatchReader), type(found)
            assert actions.shape[0] == 1 and changes.read_all().num_rows == 2
            assert found.read_all().column("a").to_pylist() == [2]
            """
        )
    )
    module = ["-m", "delta_core.as_deltalake", *([start] if start == "--arro3" else [])]
    done = run(*(module if start == "--arro3" else []), program, tmp_path / "t", start)
    assert done.returncode == 0, done.stderr


def test_names_are_those_of_this_library() -> None:
    done = run(
        code="""
        import delta_core.as_deltalake, delta_core, importlib.metadata, pickle
        import deltalake
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import TableNotFoundError
        from deltalake.fs import DeltaStorageHandler
        from deltalake.table import MAX_SUPPORTED_PYARROW_WRITER_VERSION
        from deltalake.transaction import AddAction, create_table_with_add_actions
        from deltalake.writer.writer import try_get_table_and_table_uri
        assert DeltaTable is delta_core.DeltaTable and pickle.loads(pickle.dumps(Schema)) is delta_core.Schema
        assert deltalake.__version__ == importlib.metadata.version("deltalake") == "1.6.6"
        delta_core.install_as_deltalake()  # again
        for name in ("missing", "data_catalog"):
            try:
                getattr(deltalake, name)
            except AttributeError as e:
                assert "which is delta_core in this process" in str(e), e
            else:
                raise AssertionError(name)
        try:
            import deltalake.data_catalog
        except ModuleNotFoundError:
            pass
        """
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_of_deltalake_is_here() -> None:
    pytest.importorskip("deltalake", reason="compares with deltalake")
    done = run(
        code="""
        import importlib, inspect, json
        found = {}
        for name in ("", ".exceptions", ".fs", ".query", ".schema", ".table", ".transaction", ".warnings", ".writer",
                     ".writer.properties", ".writer.convert_to", ".writer.writer"):
            module = importlib.import_module("deltalake" + name)
            listed = getattr(module, "__all__", None) or [
                n for n, value in vars(module).items()
                if not n.startswith("_") and str(getattr(value, "__module__", "")).startswith(("deltalake", "builtins"))
                and not inspect.ismodule(value)
            ]
            found[name] = sorted(listed)
        print(json.dumps(found))
        """
    )
    assert done.returncode == 0, done.stderr
    code = f"""
        import delta_core.as_deltalake, importlib, json
        wanted = json.loads({done.stdout!r})
        print(json.dumps(sorted(
            f"deltalake{{module}}.{{n}}" for module, names in wanted.items() for n in names
            if not hasattr(importlib.import_module("deltalake" + module), n)
        )))
        """
    ours = run(code=code)
    assert ours.returncode == 0, ours.stderr
    # what they import for themselves, and labels of their own code
    internal = {"write_deltalake_rust", "deprecate_positional_commit_args", "encode_partition_value", "PyMergeBuilder"}
    internal |= {"PyQueryBuilder", "FSCK_METRICS_FILES_REMOVED_LABEL", "Compression", "Encoding"}
    # for libraries that write files without a look at the features of the table, which create_write_transaction takes
    internal |= {"SUPPORTED_READER_FEATURES", "SUPPORTED_WRITER_FEATURES"}
    assert [n for n in json.loads(ours.stdout) if n.rpartition(".")[2] not in internal] == []


def test_package_that_was_imported_first_is_reported(tmp_path: Path) -> None:
    (tmp_path / "deltalake.py").write_text("__version__ = '9.9'\n")
    done = run(
        code=f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import deltalake; import delta_core.as_deltalake"
    )
    assert "UnsupportedOperationError: Found the deltalake package 9.9 imported already" in done.stderr
    assert "python -m delta_core.as_deltalake" in done.stderr


def test_program_has_its_arguments_and_folder(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("from deltalake import DeltaTable\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, helper\nprint(sys.argv[1:], helper.DeltaTable.__module__, __name__)\n")
    done = run("-m", "delta_core.as_deltalake", script, "a", "-b")
    assert done.stdout == "['a', '-b'] delta_core.table.delta_table __main__\n", done.stderr
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(
        "import deltalake, sys\nprint(deltalake.__version__, sys.argv[1:])"
    )
    command = [sys.executable, "-m", "delta_core.as_deltalake", "-m", "package", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == "1.6.6 ['x']\n", done.stderr
    done = run("-m", "delta_core.as_deltalake", tmp_path / "none.py")
    assert (done.returncode, "there is no file" in done.stderr) == (2, True)


# --- what libraries call -------------------------------------------------------------------


def test_inner_object_has_what_libraries_call(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"id": [1, 2, 3], "city": ["a b", "c", "a b"]})
    write_deltalake(uri, rows, partition_by="city")
    table = DeltaTable(uri)
    sizes = table._table.get_add_file_sizes()
    root = table.table_uri.removeprefix("file://").rstrip("/") + "/"
    assert {u.removeprefix(root): Path(u).stat().st_size for u in table.file_uris()} == sizes
    assert table._storage_options is None
    assert DeltaTable(uri, storage_options={"x": "y"})._storage_options == {"x": "y"}
    with pytest.raises(AttributeError, match="get_add_file_sizes"):
        table._table.no_such_method  # noqa: B018  # the access itself
    pq.write_table(rows.select(["id"]), tmp_path / "t" / "new.parquet")
    size = (tmp_path / "t" / "new.parquet").stat().st_size
    added = AddAction("new.parquet", size, {"city": "d"}, 0, True, "")
    table._table.create_write_transaction([added], "append", ["city"], rows.schema)
    table._table.update_incremental()
    assert (table._table.version(), table.to_pyarrow_table().num_rows) == (1, 6)


@pytest.mark.parametrize("mode", ["error", "append", "ignore", "overwrite"])
def test_table_of_files_is_created_in_one_commit(mode: str, tmp_path: Path) -> None:
    uri, rows = str(tmp_path / "t"), pa.table({"id": [1, 2]})
    (tmp_path / "t").mkdir()

    def add(name: str) -> AddAction:
        pq.write_table(rows, tmp_path / "t" / name)
        return AddAction(name, (tmp_path / "t" / name).stat().st_size, {}, 0, True, "")

    arguments = {"name": "people", "configuration": {"delta.appendOnly": "false"}}
    create_table_with_add_actions(uri, rows.schema, [add("one.parquet")], mode, **arguments)  # type: ignore[arg-type]
    table = DeltaTable(uri)
    assert (table.version(), table.metadata().name, table.to_pyarrow_table().num_rows) == (0, "people", 2)
    second = [add("two.parquet"), add("three.parquet")]
    if mode in ("error", "append"):
        with pytest.raises(TableExistsError):
            create_table_with_add_actions(uri, rows.schema, second, mode)  # type: ignore[arg-type]
    else:
        create_table_with_add_actions(uri, rows.schema, second, mode)  # type: ignore[arg-type]
    assert DeltaTable(uri).to_pyarrow_table().num_rows == (4 if mode == "overwrite" else 2)
    with pytest.raises(InvalidArgumentError, match="nope"):
        create_table_with_add_actions(uri, rows.schema, [], "nope")  # type: ignore[arg-type]


@pytest.mark.parametrize("uri", ["{folder}", "memory://tables/handler"])
def test_folder_is_a_file_system_of_pyarrow(uri: str, tmp_path: Path) -> None:
    handler = DeltaStorageHandler(uri.format(folder=tmp_path))
    for found in (handler, pickle.loads(pickle.dumps(handler))):
        system = PyFileSystem(found)
        system.create_dir("city=Oslo")
        with system.open_output_stream("city=Oslo/part.parquet") as out:
            pq.write_table(pa.table({"id": [1]}), out)
        names = [i.path.lstrip("/") for i in system.get_file_info(FileSelector("", recursive=True)) if i.is_file]
        assert names == ["city=Oslo/part.parquet"]
        assert pq.read_table(system.open_input_file("city=Oslo/part.parquet")).num_rows == 1
        system.delete_file("city=Oslo/part.parquet")


@pytest.mark.parametrize("uri", ["", "s3://user:hidden@bucket/t", "s3://"])
def test_place_that_no_table_has_is_rejected(uri: str) -> None:
    with pytest.raises(InvalidArgumentError) as e:
        DeltaStorageHandler(uri)
    assert "hidden" not in str(e.value)


def test_folder_in_a_chain_of_file_systems_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "tables.zip", "w") as archive:
        archive.writestr("t/part.txt", "rows")
    system = PyFileSystem(DeltaStorageHandler(f"zip://t::{tmp_path}/tables.zip"))
    assert system.open_input_file("part.txt").read() == b"rows"
