"""Tables that lead to other stores: every way to read them is rejected, and no call reaches the other store."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, QueryBuilder, write_deltalake
from delta_core.errors import EngineError, ExternalPathError, InvalidArgumentError, without_passwords
from delta_core.kernel.snapshot import open_snapshot
from delta_core.storage.stores import open_storage
from delta_core.testing.table_builder import TableBuilder
from tests.confinement.hostile import IDS, REFERENCES, STOLEN, Reference, Spies, hostile, parquet
from tests.stores.filesystems import register

#: What a path to another kind of store may be.
PATHS = (
    "http",
    "upper case",
    "other file system",
    "memory",
    "data",
    "cache",
    "archive",
    "chain on the own store",
    "without slashes",
    "github",
    "ftp",
    "s3",
    "other machine",
    "line break",
)


def query(uri: str) -> Any:
    return QueryBuilder().register("t", DeltaTable(uri)).execute("select sum(id) as s from t").read_all()


def overwrite(uri: str) -> None:
    write_deltalake(uri, pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", predicate="id = 2")


READS: dict[str, Callable[[str], Any]] = {
    "to_pyarrow_table": lambda uri: DeltaTable(uri).to_pyarrow_table(),
    "to_pandas": lambda uri: DeltaTable(uri).to_pandas(),
    "to_polars": lambda uri: DeltaTable(uri).to_polars().collect(),
    "scan": lambda uri: open_snapshot(uri).scan().to_table(),
    "stream": lambda uri: list(open_snapshot(uri).scan().to_reader()),
    "file paths": lambda uri: open_snapshot(uri).scan(["id"], ["_file_path"]).to_table(),
    "count": lambda uri: open_snapshot(uri).scan(predicate="id > 0").count(),
    "query": query,
    "dataset": lambda uri: DeltaTable(uri).dataset().to_table(),
    "to_pyarrow_dataset": lambda uri: DeltaTable(uri).to_pyarrow_dataset().to_table(),
    "overwrite": overwrite,
}


def changes(uri: str) -> Any:
    return DeltaTable(uri).load_cdf(starting_version=2).read_all()


def reads_of(reference: Reference) -> dict[str, Callable[[str], Any]]:
    """Return the calls that reach a file of a kind."""
    if reference == "change":
        return {"changes": changes}
    if reference == "vector":  # a plain dataset and URIs of data files have none
        return {name: READS[name] for name in ("to_pyarrow_table", "stream", "count", "query", "overwrite")}
    return READS


CALLS = [(r, name) for r in REFERENCES for name in reads_of(r)]


@pytest.mark.parametrize(("reference", "name"), CALLS, ids=lambda x: x)
def test_other_kinds_of_store_are_rejected_and_not_reached(
    tables: Callable[[str, Reference], TableBuilder], spies: Spies, reference: Reference, name: str
) -> None:
    for what in PATHS:
        uri = tables(what, reference).uri
        # DataFusion's errors have ours in their text
        error = EngineError if name == "query" else ExternalPathError
        with pytest.raises(error, match=r"ies outside the table|lies on the host"):
            reads_of(reference)[name](uri)
    assert list(spies.paths()) == list(PATHS)
    assert spies.seen == []


@pytest.mark.parametrize("what", PATHS)
def test_message_names_table_path_and_option(tmp_path: Path, spies: Spies, what: str) -> None:
    path = spies.paths()[what]
    table = hostile(tmp_path / "t", path)
    with pytest.raises(ExternalPathError) as caught:
        DeltaTable(table.uri).to_pyarrow_table()
    assert repr(without_passwords(path)) in str(caught.value)
    if what not in ("other machine", "chain on the own store"):
        assert table.uri in str(caught.value)
    if what in ("http", "memory", "s3", "github", "data"):
        assert "--allow-external" in str(caught.value)


def test_no_row_is_handed_out_before_a_path_is_rejected(tmp_path: Path, spies: Spies) -> None:
    table = hostile(tmp_path / "t", spies.paths()["http"])
    for i in range(40):
        table.append([{"id": i}])
    batches = open_snapshot(table.uri).scan().batches()
    with pytest.raises(ExternalPathError):
        next(batches)


def test_log_of_a_hostile_table_can_be_looked_at(tmp_path: Path, spies: Spies) -> None:
    path = spies.paths()["http"]
    table = DeltaTable(hostile(tmp_path / "t", path).uri)
    assert path in table.get_add_actions().column("path").to_pylist()
    assert path in table.snapshot().scan().files().column("path").to_pylist()
    assert len(table.history()) == 3
    assert spies.seen == []


def test_file_that_a_predicate_leaves_out_is_no_obstacle(tmp_path: Path, spies: Spies) -> None:
    table = hostile(tmp_path / "t", spies.paths()["http"])
    table.remove(spies.paths()["http"])
    assert sorted(DeltaTable(table.uri).to_pyarrow_table().column("id").to_pylist()) == IDS


@pytest.mark.parametrize("root", ["memory", "renaming", "archive"])
@pytest.mark.parametrize(
    "path", ["file:///{victim}", "http://127.0.0.1:1/f", "foreign://host/f.parquet", "simplecache::file:///{victim}"]
)
def test_tables_on_other_stores_reach_neither_this_machine_nor_others(
    tmp_path: Path, spies: Spies, root: str, path: str
) -> None:
    register()
    victim = tmp_path / "victim.parquet"
    victim.write_bytes(parquet(STOLEN))
    path = path.format(victim=str(victim).lstrip("/"))
    places = {"memory": f"memory://{uuid.uuid4().hex}/t", "renaming": f"renaming://{tmp_path}/t"}
    uri = hostile(places.get(root, str(tmp_path / "t")), path).uri
    if root == "archive":
        uri = f"zip://t::{shutil.make_archive(str(tmp_path / 'archive'), 'zip', tmp_path, 't')}"
    with pytest.raises(ExternalPathError):
        DeltaTable(uri).to_pyarrow_table()
    assert spies.seen == []


# --- what the caller allows ----------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["{url}", "{url}/", "{url}/f.parquet", "http://"])
def test_prefix_that_is_allowed_is_read(tmp_path: Path, spies: Spies, prefix: str) -> None:
    table = hostile(tmp_path / "t", spies.paths()["http"])
    found = DeltaTable(table.uri, allow_external=[prefix.format(url=spies.url)])
    assert sorted(found.to_pyarrow_table().column("id").to_pylist()) == [*IDS, *STOLEN]
    assert spies.requests
    assert sorted(found.snapshot(version=2).scan().to_table().column("id").to_pylist()) == [*IDS, *STOLEN]


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("foreign://host/dirty/f", "foreign://host/dir"),
        ("foreign://host2/f", "foreign://host"),
        ("foreign://host/dir/../f", "foreign://host/dir"),
        ("foreign://host/dir/%2e%2e/f", "foreign://host/dir"),
        ("foreign://host/dir/%252e%252e/f", "foreign://host/dir"),
        ("foreign://host@evil/f", "foreign://host"),
        ("foreign://host?@evil/f", "foreign://host"),
        ("foreign://host/f", "foreigner://host"),
        ("simplecache::foreign://host/f", "foreign://host"),
        ("foreign://host::memory://victim/f", "foreign://"),
        ("foreign://host/f", "/"),
    ],
)
def test_prefix_ends_at_a_name_and_allows_nothing_beside_it(
    tmp_path: Path, spies: Spies, path: str, prefix: str
) -> None:
    table = hostile(tmp_path / "t", path)
    with pytest.raises(ExternalPathError):
        DeltaTable(table.uri, allow_external=[prefix]).to_pyarrow_table()
    assert spies.seen == []


def test_storage_options_stay_with_the_tables_own_kind_of_store(spies: Spies) -> None:
    secret = {"note": "secret"}
    storage = open_storage(f"memory://{uuid.uuid4().hex}/t", secret, ["foreign://host"])
    with storage.open("foreign://host/f.parquet") as file:
        assert file.size() == len(parquet(STOLEN))
    opened = [call[1] for call in spies.seen if call[0] == "open"]
    assert opened
    assert not any("note" in options for options in opened)


@pytest.mark.parametrize("given", ["s3://bucket", True, [""], [1], ["simplecache::s3://bucket"], {}])
def test_what_is_no_list_of_prefixes_is_rejected(tmp_path: Path, given: Any) -> None:
    hostile(tmp_path / "t", "x")
    if given == {}:
        given = {"s3://bucket": 1}
    with pytest.raises(InvalidArgumentError, match="allow_external"):
        DeltaTable(tmp_path / "t", allow_external=given)


def test_engine_that_was_made_can_not_be_given_prefixes(tmp_path: Path) -> None:
    table = hostile(tmp_path / "t", "x")
    engine = open_snapshot(table.uri).engine
    with pytest.raises(InvalidArgumentError, match="allow_external"):
        open_snapshot(table.uri, engine=engine, allow_external=["s3://bucket"])


def test_option_reaches_every_opener(tmp_path: Path, spies: Spies) -> None:
    table = hostile(tmp_path / "t", spies.paths()["http"])
    allowed = [spies.url]
    nothing = pa.table({"id": pa.array([], pa.int64())})
    write_deltalake(table.uri, nothing, mode="overwrite", predicate="id = 2", allow_external=allowed)
    assert sorted(DeltaTable(table.uri, allow_external=allowed).to_pyarrow_table().column("id").to_pylist()) == [
        1,
        3,
        *STOLEN,
    ]
