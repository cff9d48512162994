"""Every Python and shell block of README.md and docs/*.md runs as it is on the page.

The blocks of a page run in order and share names and folder, as somebody who follows the page would type them. Buckets
are on a server of this machine; what a page takes for granted (a table, a frame) is made here. Pages about Spark are
run by tests/spark/test_pages.py.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
import tomllib
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_core
from delta_core import DeltaTable, Field, PrimitiveType, Schema, write_deltalake
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernel.write import files, plan
from delta_core.storage.dynamodb import DynamoAccess, DynamoTable, known_dynamo_options
from delta_core.testing.feature_contract import FeatureContract
from delta_core.testing.table_builder import TableBuilder
from delta_core.testing.variant_bytes import variants
from tests.docs.blocks import PAGES, ROOT, Block, blocks, run_python, run_shell
from tests.stores.servers import ServerMissingError, moto
from tests.unity_catalog.fake import FakeCatalog, running

BLOCKS = [block for page in PAGES for block in blocks(page)]
#: Run by tests/spark/test_pages.py.
SPARK_PAGES = (
    "docs/spark.md",
    "docs/spark-row-changes.md",
    "docs/spark-sql.md",
    "docs/spark-write.md",
    "docs/spark-streams.md",
    "docs/spark-drop-in.md",
    "docs/spark-settings.md",
    "docs/spark-lance.md",
    "docs/start/delta-spark.md",
    "docs/start/spark-administrators.md",
)
#: Pages that take nothing for granted, and state with `assert` what they show.
PROGRAMS = sorted(
    {
        b.page
        for b in BLOCKS
        if b.page.startswith(("docs/cookbook/", "docs/start/", "docs/dask", "docs/kernel", "docs/perf"))
    }
    - {*SPARK_PAGES}
)
#: How many blocks may be marked as not run. A block that needs something unusual gets a stand-in first.
NOT_RUN = 4
DAY = date(2024, 5, 6)


def _of(page: str, language: str) -> list[Block]:
    found = [b for b in BLOCKS if (b.page, b.language) == (page, language) and not b.not_run]
    assert found, f"{page} has no {language} block: take the test away"
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Serve s3:// and DynamoDB from this machine, under the names that the pages use."""
    with pytest.MonkeyPatch.context() as environment:
        try:
            with moto(tmp_path_factory.mktemp("moto")) as server:
                for name, value in server.options.items():
                    environment.setenv(name, value)
                yield
        except ServerMissingError as e:
            pytest.skip(str(e))


@pytest.fixture
def s3(server: None) -> Iterator[None]:
    """Serve buckets that are empty when a test begins."""
    yield
    store = fsspec.filesystem("s3")
    if store.exists("bucket/events"):
        store.rm("bucket/events", recursive=True)


def _events(rows: int = 1) -> pa.Table:
    made = range(rows)
    return pa.table(
        {
            "id": list(made),
            "name": ["a"] * rows,
            "kind": ["x"] * rows,
            "amount": [100.0 + i for i in made],
            "day": [DAY] * rows,
            "s": [{"x": i} for i in made],
        }
    )


def _write_versions(uri: str, first: pa.Table | None = None) -> DeltaTable:
    """Append versions of one row each to a table, which is made if it is not there, until there is version 12."""
    write_deltalake(uri, _events() if first is None else first, mode="append", partition_by=["day"])
    table = DeltaTable(uri)
    for i in range(table.version() + 1, 13):
        write_deltalake(table, _events(i + 1).slice(i), mode="append")
    return table


# --- the pages as a whole ------------------------------------------------------------------


def test_blocks_have_a_language_that_a_test_reads() -> None:
    assert [str(b) for b in BLOCKS if b.language not in ("python", "sh", "toml", "text", "mermaid", "output")] == []


def test_blocks_that_do_not_run_are_few_and_have_a_reason() -> None:
    marked = [b for b in BLOCKS if b.not_run]
    assert len(marked) == NOT_RUN, [str(b) for b in marked]
    assert [str(b) for b in marked if len(b.not_run.split()) < 5] == []


def test_markers_are_before_a_block() -> None:
    for page in PAGES:
        marks = page.read_text(encoding="utf-8").count("<!-- not run")
        assert marks == len([b for b in blocks(page) if b.not_run]), page


def test_every_block_that_runs_is_on_a_page_that_a_test_runs() -> None:
    running = {(b.page, b.language) for b in BLOCKS if b.language in ("python", "sh") and not b.not_run}
    pages = {*PYTHON, *((page, "sh") for page in SHELL), *((page, "python") for page in SPARK_PAGES)}
    assert {(page, language) for page, language in running if page not in PROGRAMS} == pages


# --- Python --------------------------------------------------------------------------------


def _readme(folder: Path) -> dict[str, Any]:
    _write_versions("s3://bucket/events")
    return {}


def _check_readme(names: dict[str, Any]) -> None:
    assert names["scan"].to_table().num_rows == 12
    assert names["scan"].to_table().column_names == ["id", "name", "_file_path"]
    assert names["table"].to_pyarrow_table().num_rows == 13, "appended, then replaced"
    kept = names["people"].to_pyarrow_table()
    assert kept.num_rows
    assert DeltaTable("people").to_pyarrow_table().sort_by("id").equals(kept.sort_by("id"))


def _api(folder: Path) -> dict[str, Any]:
    rows = _events()
    with_variant = Schema([*Schema.from_arrow(rows.schema).fields, Field("v", PrimitiveType("variant"))])
    DeltaTable.create("s3://bucket/events", with_variant, partition_by=["day"])
    spoken = rows.append_column("v", pa.array(variants([{"a": [1, "x"]}])))
    table = _write_versions("s3://bucket/events", spoken)
    managed = TableBuilder(folder / "managed").create(
        {"id": "long"},
        features=["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"],
        properties={"delta.enableInCommitTimestamps": "true"},
    )
    managed.append({"id": [1]}, commit={"publish": "staged"}).append({"id": [2]}, commit={"publish": "no"})
    (staged,) = (folder / "managed" / "_delta_log" / "_staged_commits").iterdir()
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    (name,) = re.findall(r'"(0{19}1\.[-0-9a-f]+\.json)"', page)
    staged.rename(staged.with_name(name))
    return {"rows": rows, "table": table, "uri": managed.uri, "body": managed.bodies[2]}


def _check_api(names: dict[str, Any]) -> None:
    assert names["managed"].version() == 2, "the catalog's latest version"
    assert sorted(names["managed"].to_pyarrow_table().column("id").to_pylist()) == [1, 2]
    shown = names["snapshot"].scan(columns=["id"], constants=names["text"], predicate="v IS NOT NULL").to_table()
    assert shown.to_pylist() == [{"id": 0, "v_json": '{"a":[1,"x"]}'}]


def _expressions(folder: Path) -> dict[str, Any]:
    made = TableBuilder(folder / "t").create({"a": "long", "b": "long", "amount": "double", "city": "string"})
    made.append([{"a": 1, "b": 2, "amount": 11.0, "city": "Oslo"}])
    return {"snapshot": open_snapshot(made.uri)}


def _moving(folder: Path) -> dict[str, Any]:
    pytest.importorskip("deltalake")
    table = _write_versions(str(folder / "t"))
    return {"table": table, "uri": str(folder / "t"), "pa": pa}


def _check_moving(names: dict[str, Any]) -> None:
    assert names["DeltaTable"] is DeltaTable


def _plugins(folder: Path) -> dict[str, Any]:
    return {}


def _check_plugins(names: dict[str, Any]) -> None:
    plugin = types.ModuleType("acme_origin")
    vars(plugin).update(names)
    folder = names["folder"]
    made = TableBuilder(folder / "t").create({"id": "long"}, features=["acme.origin"])
    made.append([{"id": 1}], origin="mars")
    assert issubclass(names["TestOrigin"], FeatureContract)
    read = open_snapshot(made.uri, plugins=PluginRegistry([plugin])).scan(metadata=["_origin"]).to_table()
    assert read.to_pylist() == [{"id": 1, "_origin": "mars"}]


def _row_changes(folder: Path) -> dict[str, Any]:
    rows = pa.table({"id": [7, 8], "amount": [50.0, 5.0], "day": [DAY, DAY]})
    write_deltalake(folder / "t", rows, configuration={"delta.enableRowTracking": "true"})
    return {"table": DeltaTable(folder / "t")}


def _changes(folder: Path) -> dict[str, Any]:
    write_deltalake(folder / "t", _events(), configuration={"delta.enableChangeDataFeed": "true"})
    for _ in range(3):
        write_deltalake(folder / "t", _events(), mode="append")
    return {"table": DeltaTable(folder / "t")}


def _check_changes(names: dict[str, Any]) -> None:
    assert names["feed"].versions == range(1, 3)
    assert names["step"].is_complete
    assert json.loads(names["stored"])["reservoirVersion"] == 4


def _check_row_changes(names: dict[str, Any]) -> None:
    rows = sorted(names["table"].to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 7, "amount": 1.5, "day": None}, {"id": 9, "amount": 41.0, "day": None}]


def _administration(folder: Path) -> dict[str, Any]:
    rows = pa.table({"day": [DAY], "amount": [1.5], "address": [{"street": "a"}]})
    write_deltalake(folder / "sales", rows)
    return {}


def _check_administration(names: dict[str, Any]) -> None:
    assert names["table"].version() > 5, "restored in a new commit"
    found = DeltaTable("sales", version=3).schema()
    assert found.names == ["sale day", "amount", "address"]
    assert found.get("address").type.names == ["street", "city"]


def _stores(folder: Path) -> dict[str, Any]:
    return {"write_deltalake": write_deltalake, "rows": _events()}


def _check_stores(names: dict[str, Any]) -> None:
    table = DeltaTable("s3a://bucket/events", storage_options=names["options"])
    assert table.to_pyarrow_table().num_rows == 1


def _catalogs(folder: Path) -> dict[str, Any]:
    rows = pa.table({"id": [1, 2], "day": ["a", "b"]})
    stack = ExitStack()
    (folder / "managed").mkdir()
    catalog = FakeCatalog(token="dapi", staging_root=(folder / "managed").as_uri())
    stack.enter_context(running(catalog))
    for name in ("cities", "events"):
        write_deltalake(folder / "data" / name, rows)
    catalog.add("main.sales.cities", (folder / "data" / "cities").as_uri())
    return {"server": catalog.url, "token": "dapi", "rows": rows, "schema": rows.schema, "stack": stack}


def _check_catalogs(names: dict[str, Any]) -> None:
    names["stack"].close()
    assert names["cities"].count() == 4
    assert names["total"].to_pylist() == names["found"].to_pylist() == [{"n": 4}]
    assert names["orders"].metadata().configuration["delta.checkpointPolicy"] == "v2"


#: What a page takes for granted, and what must be true after its blocks have run.
def _lance(folder: Path) -> dict[str, Any]:
    shutil.copytree(ROOT / "tests" / "lance" / "fixtures" / "plain", folder / "people.lance")
    keys = {"base_uri": ("HASH", "S"), "version": ("RANGE", "N")}
    DynamoTable("manifests", DynamoAccess.of(known_dynamo_options({"AWS_REGION": "eu-north-1"}))).call(
        "create_table",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, (_, t) in keys.items()],
        KeySchema=[{"AttributeName": n, "KeyType": k} for n, (k, _) in keys.items()],
        BillingMode="PAY_PER_REQUEST",
    )
    return {}


def _check_lance(names: dict[str, Any]) -> None:
    assert names["some"].to_pydict() == {"id": [8, 4, 8]}
    assert names["again"].select(["id"]).equals(names["row_ids"].select(["id"]))
    assert names["tagged"].version == names["before"].version == 3
    assert min(names["adults"]["id"].to_pylist()) == 18
    assert (names["shared"].version, names["shared"].count()) == (2, 2)


def _check_convert(names: dict[str, Any]) -> None:
    assert names["done"].num_rows == 2
    assert {f.name: f.outcome for f in names["done"].facets}["stableRowIds"] == "kept"
    assert DeltaTable("visits-2").metadata().partition_columns == ["city"]


def _check_optimize(names: dict[str, Any]) -> None:
    assert len(names["table"].file_uris()) == 2
    assert names["table"].to_pyarrow_table().num_rows == 10


def _check_engines(names: dict[str, Any]) -> None:
    uri = str(names["folder"] / "t")
    write_deltalake(uri, _events(3))
    engine = names["engine"](uri)
    assert engine.name == "mine"
    assert DeltaTable(uri, engine=engine).to_pyarrow_table().num_rows == 3


PYTHON: dict[tuple[str, str], tuple[Callable[[Path], dict[str, Any]], Callable[[dict[str, Any]], None]]] = {
    ("README.md", "python"): (_readme, _check_readme),
    ("docs/administration.md", "python"): (_administration, _check_administration),
    ("docs/api.md", "python"): (_api, _check_api),
    ("docs/convert.md", "python"): (lambda folder: {}, _check_convert),
    ("docs/engines.md", "python"): (lambda folder: {}, _check_engines),
    ("docs/expressions.md", "python"): (_expressions, lambda names: None),
    ("docs/moving-from-deltalake.md", "python"): (_moving, _check_moving),
    ("docs/lance.md", "python"): (_lance, _check_lance),
    ("docs/optimize.md", "python"): (lambda folder: {}, _check_optimize),
    ("docs/plugins.md", "python"): (_plugins, _check_plugins),
    ("docs/changes.md", "python"): (_changes, _check_changes),
    ("docs/row-changes.md", "python"): (_row_changes, _check_row_changes),
    ("docs/stores.md", "python"): (_stores, _check_stores),
    ("docs/catalogs.md", "python"): (_catalogs, _check_catalogs),
}


@pytest.mark.parametrize("page", [page for page, _ in PYTHON])
def test_python_blocks_run_in_order(page: str, s3: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made, check = PYTHON[page, "python"]
    names = made(tmp_path)
    for block in _of(page, "python"):
        run_python(block, names)
    check({**names, "folder": tmp_path})


# --- shell ---------------------------------------------------------------------------------


def _shell_readme(folder: Path) -> Callable[[str], str]:
    def replaced(code: str) -> str:
        # what installs is run by .ci/run; the demo's folder is the test's
        code = re.sub(r"^python3 -m venv .*pip install [^&]*&& ", "", code).replace("/tmp/demo", str(folder / "demo"))
        return code.replace("examples/quickstart.py", str(ROOT / "examples" / "quickstart.py"))

    run_shell(f"python {ROOT}/examples/quickstart.py {folder / 'demo'}", folder, {})
    return replaced


def _shell_cli(folder: Path) -> Callable[[str], str]:
    days = [date(2024, 4, 30), date(2024, 5, 1)]
    rows = pa.table({"id": [1, 2], "amount": [10.0, 20.0], "day": days})
    properties = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(folder / "sales", rows, partition_by=["day"], configuration=properties)
    for i in range(3, 8):
        write_deltalake(folder / "sales", pa.table({"id": [i], "amount": [1.0], "day": days[:1]}), mode="append")
    write_deltalake(folder / "other", rows)
    for name in ("first.parquet", "day1.parquet", "day2.parquet"):
        pq.write_table(rows, folder / name)
    (folder / "new.csv").write_text("id,amount,day\n9,1.5,2024-05-01\n", encoding="utf-8")
    if not (Path("/usr/bin/jq").exists() or Path("/usr/local/bin/jq").exists()):
        (folder / "bin").mkdir()
        jq = folder / "bin" / "jq"
        jq.write_text(
            f"#!{sys.executable}\nimport json, sys\nfor line in sys.stdin: print(json.loads(line)[sys.argv[1][1:]])\n"
        )
        jq.chmod(0o755)
    for place in (".local/share/bash-completion/completions", ".config/fish/completions", "zsh"):
        (folder / place).mkdir(parents=True)

    def replaced(code: str) -> str:
        if "create sales" in code:  # the page's second table of this name
            code = "rm -r sales\n" + code
        return f'fpath=(first "{folder}/zsh")\n' + code

    return replaced


def _shell_administration(folder: Path) -> Callable[[str], str]:
    write_deltalake(folder / "sales", pa.table({"id": [1]}))
    return str


SHELL: dict[str, Callable[[Path], Callable[[str], str]]] = {
    "README.md": _shell_readme,
    "docs/administration.md": _shell_administration,
    "docs/cli.md": _shell_cli,
}


@pytest.mark.parametrize("page", SHELL)
def test_shell_blocks_run_in_order(page: str, tmp_path: Path) -> None:
    replaced = SHELL[page](tmp_path)
    for block in _of(page, "sh"):
        run_shell(replaced(block.code), tmp_path, {})


# --- programs ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_run_as_they_are(
    page: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [b for b in BLOCKS if b.page == page and b.language in ("python", "sh") and not b.not_run]
    assert any("assert " in b.code for b in found)
    if any("s3://bucket" in b.code for b in found):
        request.getfixturevalue("s3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    names: dict[str, Any] = {}
    for block in found:
        if block.language == "python":
            run_python(block, names)
        else:
            run_shell(block.code, tmp_path, {})
    sys.modules.pop("acme_origin", None)


# --- the others ----------------------------------------------------------------------------


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "toml"], ids=str)
def test_toml_block_can_be_parsed(block: Block) -> None:
    assert tomllib.loads(block.code)


def test_package_of_a_plugin_has_the_module_that_its_entry_point_names() -> None:
    (block,) = _of("docs/plugins.md", "toml")
    found = tomllib.loads(block.code)
    assert found["tool"]["setuptools"]["packages"] == list(
        found["project"]["entry-points"]["delta_core.features"].values()
    )


#: If the names of a block of signatures are found.
SIGNATURES = {"docs/api.md": delta_core, "delta_core/kernel/write/README.md": (plan, files)}


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "text"], ids=str)
def test_signatures_are_those_of_the_code(block: Block) -> None:
    holders = SIGNATURES[block.page]
    text = " ".join(line.partition("#")[0].strip() for line in block.code.splitlines())
    found = re.findall(r"(\w+)\(((?:[^()]|\(\))+)\)", text)
    assert found
    for name, written in found:
        (made,) = [
            getattr(h, name) for h in (holders if isinstance(holders, tuple) else (holders,)) if hasattr(h, name)
        ]
        parameters = inspect.signature(made).parameters.values()
        bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
        expected = str(inspect.Signature(bare)).strip("()").replace("'", '"')
        assert " ".join(written.split()) == expected
