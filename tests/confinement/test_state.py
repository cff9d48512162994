"""Tables that lead to other stores: everything but a read of such a file works, and no call reaches the other store."""

from __future__ import annotations

import pickle
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core import DeltaTable, Field, write_deltalake
from delta_core.errors import ExternalPathError
from delta_core.testing.table_builder import TableBuilder
from tests.confinement.hostile import Spies, hostile

#: What a path to another store may be: of another kind, of another host, out of a store.
PATHS = ("s3", "http", "memory", "other machine", "chain on the own store", "without slashes")


def retained(uri: str) -> list[str]:
    """Return what a vacuum of everything deletes."""
    found: list[str] = DeltaTable(uri).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
    )
    return found


STATE: dict[str, Callable[[str], Any]] = {
    "version": lambda uri: DeltaTable(uri).version(),
    "schema": lambda uri: DeltaTable(uri).schema(),
    "history": lambda uri: DeltaTable(uri).history(),
    "metadata": lambda uri: (DeltaTable(uri).metadata(), DeltaTable(uri).protocol()),
    "get_add_actions": lambda uri: DeltaTable(uri).get_add_actions(flatten=True),
    "file_uris": lambda uri: DeltaTable(uri).file_uris(),
    "partitions": lambda uri: DeltaTable(uri).partitions(),
    "count": lambda uri: DeltaTable(uri).count(),
    "deletion_vectors": lambda uri: DeltaTable(uri).deletion_vectors().read_all(),
    "to_pyarrow_dataset": lambda uri: DeltaTable(uri).to_pyarrow_dataset(),
    "dataset": lambda uri: DeltaTable(uri).dataset(),
    "explain": lambda uri: str(DeltaTable(uri).snapshot().scan().explain()),
    "pickle": lambda uri: pickle.loads(pickle.dumps(DeltaTable(uri))),
    "verify": lambda uri: DeltaTable(uri).verify(),
    "checkpoint": lambda uri: DeltaTable(uri).create_checkpoint(),
    "cleanup": lambda uri: DeltaTable(uri).cleanup_metadata(),
    "vacuum": retained,
    "optimize": lambda uri: DeltaTable(uri).optimize.compact([("p", "=", "b")]),
    "append": lambda uri: write_deltalake(uri, pa.table({"id": [9], "p": ["a"]}), mode="append"),
    "overwrite": lambda uri: write_deltalake(uri, pa.table({"id": [9], "p": ["a"]}), mode="overwrite"),
    "delete a partition": lambda uri: DeltaTable(uri).delete("p = 'a'"),
    "delete": lambda uri: DeltaTable(uri).delete("p = 'b' AND id = 3"),
    "set a property": lambda uri: DeltaTable(uri).alter.set_table_properties({"delta.appendOnly": "false"}),
    "add a column": lambda uri: DeltaTable(uri).alter.add_columns([Field("n", "long")]),
    "restore": lambda uri: DeltaTable(uri).restore(1),
}
COMMANDS = ("info", "files", "log", "history", "explain", "count", "schema", "features", "statistics", "vacuum")


def build(place: Path, path: str) -> str:
    """Build a table of two partitions: a file of the first is on another store."""
    table = TableBuilder(place).create({"id": "long", "p": "string"}, partition_by=["p"])
    table.append([{"id": 1, "p": "a"}]).append([{"id": 2, "p": "b"}]).append([{"id": 3, "p": "b"}])
    (own,) = (f for f in table.state.files.values() if f["partitionValues"] == {"p": "a"})
    return str(table.commit({"add": {**own, "path": path, "dataChange": True}}).uri)


@pytest.mark.parametrize("name", STATE)
def test_call_that_reads_no_such_file_works(tmp_path: Path, spies: Spies, name: str) -> None:
    for i, what in enumerate(PATHS):
        STATE[name](build(tmp_path / str(i), spies.paths()[what]))
    assert spies.seen == []


@pytest.mark.parametrize("what", PATHS)
def test_uris_name_the_file_as_the_log_does(tmp_path: Path, spies: Spies, what: str) -> None:
    path = spies.paths()[what]
    assert path in DeltaTable(build(tmp_path / "t", path)).file_uris()


@pytest.mark.parametrize("what", PATHS)
def test_dataset_reads_other_partitions_and_rejects_the_file(tmp_path: Path, spies: Spies, what: str) -> None:
    dataset = DeltaTable(build(tmp_path / "t", spies.paths()[what])).to_pyarrow_dataset()
    assert sorted(dataset.to_table(filter=pc.field("p") == "b").column("id").to_pylist()) == [2, 3]
    with pytest.raises(ExternalPathError):
        dataset.to_table()
    assert spies.seen == []


@pytest.mark.parametrize("command", COMMANDS)
def test_command_that_reads_no_such_file_works(tmp_path: Path, spies: Spies, command: str) -> None:
    uri = build(tmp_path / "t", spies.paths()["s3"])
    arguments = [command, uri, *(["--dry-run"] if command == "vacuum" else [])]
    found = subprocess.run(
        [sys.executable, "-m", "delta_core.cli", *arguments], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert spies.seen == []


def test_vacuum_deletes_only_files_of_its_own_folder(tmp_path: Path, spies: Spies) -> None:
    uri = build(tmp_path / "t", spies.paths()["memory"])
    write_deltalake(uri, pa.table({"id": [9], "p": ["a"]}), mode="overwrite")
    assert len(retained(uri)) == 3
    assert spies.seen == []
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 1


def test_table_of_another_store_that_names_a_local_file_is_loaded(tmp_path: Path) -> None:
    secret = tmp_path / "f.parquet"
    secret.write_bytes(b"secret")
    path = secret.as_uri()
    table = DeltaTable(hostile(f"memory://{uuid.uuid4().hex}/t", path).uri)
    assert path in table.file_uris()
    dataset = table.to_pyarrow_dataset()
    with pytest.raises(ExternalPathError):
        dataset.to_table()
