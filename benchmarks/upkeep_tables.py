"""Tables for the upkeep of tables: data files that the log does not name, a folder without a log, and an old log."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.change_tables import table_rows

__all__ = ["UPKEEP_GENERATORS"]

#: When files of old commits were written: a day of 2001.
_OLD = 1_000_000_000
_PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
FOLDERS = 1_000


def _commit(table: Path, version: int, actions: list[dict[str, Any]]) -> None:
    info = {"commitInfo": {"timestamp": (_OLD + version) * 1_000, "operation": "WRITE", "operationParameters": {}}}
    text = "\n".join(json.dumps(a, separators=(",", ":")) for a in (info, *actions)) + "\n"
    file = table / "_delta_log" / f"{version:020}.json"
    file.write_text(text, encoding="utf-8")
    os.utime(file, (_OLD + version, _OLD + version))


def _definition(by: list[str], **configuration: str) -> list[dict[str, Any]]:
    fields = [
        {"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("folder", "string"), ("id", "long"))
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    value = {
        "id": "3e16d80c-5dd8-4e7c-9bfd-1e1c0fd4c2a3",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": by,
        "configuration": configuration,
        "createdTime": _OLD * 1_000,
    }
    return [_PROTOCOL, {"metaData": value}]


def _make_garbage(table: Path, folders: int, each: int) -> None:
    """Write empty files into folders; the log, which has a checkpoint, names every other one."""
    adds = []
    for f in range(folders):
        folder = table / f"folder={f:04}"
        folder.mkdir()
        for i in range(each):
            name = f"part-{i:05}-{f:08}-5d1a-4c1f-9d1c-1234567890ab.c000.snappy.parquet"
            (folder / name).touch()
            os.utime(folder / name, (_OLD, _OLD))
            if i % 2 == 0:
                add = {"path": f"{folder.name}/{name}", "partitionValues": {"folder": f"{f:04}"}, "size": 0}
                adds.append({"add": {**add, "modificationTime": _OLD * 1_000, "dataChange": True}})
    _commit(table, 0, _definition(["folder"]))
    _commit(table, 1, adds)
    from deltalake import DeltaTable

    DeltaTable(str(table)).create_checkpoint()


def make_half_garbage(table: Path, sizes: Any) -> None:
    """100,000 files in 1,000 folders, half of them in the log."""
    _make_garbage(table, sizes.of(FOLDERS, 10), 100)


def make_little_garbage(table: Path, sizes: Any) -> None:
    """A tenth of the same."""
    _make_garbage(table, sizes.of(FOLDERS // 10, 1), 100)


def _make_live(table: Path, folders: int) -> None:
    """Write a log of 1,000 files a folder, which are not there, and a file a folder that the log does not name."""
    from delta_core import DeltaTable

    adds = []
    for f in range(folders):
        (table / f"folder={f:04}").mkdir()
        garbage = table / f"folder={f:04}" / "garbage.parquet"
        garbage.touch()
        os.utime(garbage, (_OLD, _OLD))
        for i in range(1_000):
            path = f"folder={f:04}/part-{i:05}-{f:08}-5d1a-4c1f-9d1c-1234567890ab.c000.snappy.parquet"
            add = {"path": path, "partitionValues": {"folder": f"{f:04}"}, "size": 0}
            adds.append({"add": {**add, "modificationTime": _OLD * 1_000, "dataChange": True}})
    _commit(table, 0, _definition(["folder"]))
    _commit(table, 1, adds)
    # of row groups of 65,536 rows
    DeltaTable(table).create_checkpoint()


def make_million_live(table: Path, sizes: Any) -> None:
    """A log of 1,000,000 files with a checkpoint, and 1,000 files that it does not name."""
    _make_live(table, sizes.of(FOLDERS, 10))


def make_tenth_live(table: Path, sizes: Any) -> None:
    """A tenth of the same."""
    _make_live(table, sizes.of(FOLDERS // 10, 1))


def make_parquet_files(table: Path, sizes: Any) -> None:
    """A folder of 10,000 Parquet files of 20 rows, without a log."""
    (table / "_delta_log").rmdir()
    count, each = sizes.of(10_000, 20), 20
    rows = table_rows(pa.array(range(count * each)).to_numpy(), 5)
    for i in range(count):
        pq.write_table(rows.slice(i * each, each), table / f"part-{i:05}.parquet")


def make_old_commits(table: Path, sizes: Any) -> None:
    """10,000 old commits of a file each, a checkpoint near the end."""
    count = sizes.of(10_000, 20)
    _commit(table, 0, _definition([]))
    for version in range(1, count):
        add = {"path": f"part-{version:05}.parquet", "partitionValues": {}, "size": 1_000}
        _commit(table, version, [{"add": {**add, "modificationTime": _OLD * 1_000, "dataChange": True}}])
    from deltalake import DeltaTable

    DeltaTable(str(table), version=count - 5).create_checkpoint()
    for file in (table / "_delta_log").glob("*.checkpoint.parquet"):
        os.utime(file, (_OLD + count - 5, _OLD + count - 5))


UPKEEP_GENERATORS: Mapping[str, Callable[[Path, Any], None]] = {
    "half-garbage": make_half_garbage,
    "little-garbage": make_little_garbage,
    "million-live": make_million_live,
    "tenth-live": make_tenth_live,
    "parquet-files": make_parquet_files,
    "old-commits": make_old_commits,
}
