"""Repair after every damage to every file of a log: rows are as before, or nothing was changed.

The long form, every byte of every file: ``DELTA_CORE_LONG=1 pytest -n auto tests/operations/test_repair_damage.py``.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError
from tests.example_counts import IS_LONG
from tests.operations.row_tables import MAPPED, VECTORS, rows_of, table_of
from tests.operations.test_verify import ROWS, run

V2 = {"delta.checkpointPolicy": "v2"}
#: The properties of each kind of table, and what happens to it.
KINDS: dict[str, tuple[dict[str, str], list[str]]] = {
    "checkpoint": ({}, ["append", "delete", "checkpoint", "append", "update"]),
    "parts": ({}, ["append", "delete", "checkpoint", "parts", "append"]),
    "sidecars": (V2, ["append", "delete", "checkpoint", "append", "checkpoint", "append"]),
    "compacted": ({}, ["append", "delete", "append", "compacted", "append"]),
    "compacted, checkpoint": ({}, ["append", "delete", "append", "compacted", "checkpoint", "append"]),
    "vectors": (VECTORS, ["append", "delete", "checkpoint", "update"]),
    "mapping": ({**MAPPED, **VECTORS}, ["append", "delete", "checkpoint", "property", "append"]),
    "no checksums": ({}, ["append", "delete", "checkpoint", "append", "compact", "no checksums"]),
    "cleaned": ({}, ["append", "delete", "append", "checkpoint", "append", "cleaned"]),
    "commits": ({}, ["append", "delete", "update"]),
}
#: How many damages a run of all tests tries of each kind.
FEW = 12


def build(uri: Path, kind: str) -> DeltaTable:
    """Return a table of a kind, with its rows in two partitions."""
    configuration, steps = KINDS[kind]
    write_deltalake(uri, table_of(ROWS), configuration=configuration, partition_by=["p"])
    table = DeltaTable(uri)
    log = uri / "_delta_log"
    for number, step in enumerate(steps, 2):
        if step == "compacted":
            table.compact_logs(1, table.version() - 1)
        elif step == "parts":
            (path,) = log.glob("*.checkpoint.parquet")
            data, half = pq.read_table(path), pq.read_table(path).num_rows // 2
            for part in (1, 2):
                name = path.name.replace(".parquet", f".{part:010}.{2:010}.parquet")
                pq.write_table(data.slice((part - 1) * half, half if part == 1 else None), log / name)
            path.unlink()
            (log / "_last_checkpoint").unlink()
        elif step == "no checksums":
            for path in log.glob("*.crc"):
                path.unlink()
        elif step == "cleaned":
            for path in (*log.glob("*0.json"), *log.glob("*1.json"), *log.glob("*0.crc")):
                path.unlink()
        else:
            run(table, step, number)
    return DeltaTable(uri)


def damages(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield every damage to the bytes of a file."""
    for at in range(len(data)):
        for bit in range(8) if IS_LONG else (at % 7,):
            yield f"bit {bit} of byte {at}", data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
    for size in range(len(data)):
        yield f"cut to {size}", data[:size]
    lines = data.splitlines(keepends=True)
    if b"\0" not in data:
        for i in range(len(lines)):
            yield f"without line {i}", b"".join(lines[:i] + lines[i + 1 :])
            yield f"line {i} twice", b"".join(lines[: i + 1] + lines[i:])
            yield f"line {i} last", b"".join(lines[:i] + lines[i + 1 :] + lines[i : i + 1])
    yield "gone", b""
    yield "zeros", bytes(len(data))


def contents(uri: Path) -> dict[str, bytes]:
    """Return every file of a table but those that a repair keeps aside."""
    found = (p for p in uri.rglob("*") if p.is_file() and "_replaced" not in p.parts)
    return {str(p.relative_to(uri)): p.read_bytes() for p in found}


def read(uri: Path, version: int | None = None) -> Any:
    """Return a version's rows, None if it can't be read."""
    try:
        return rows_of(DeltaTable(uri, version=version).to_pyarrow_table())
    except (DeltaError, KeyError):
        return None


def restored(uri: Path, files: dict[str, bytes]) -> None:
    """Put a table's folder back to some content."""
    shutil.rmtree(uri / "_delta_log" / "_replaced", ignore_errors=True)
    for name in contents(uri).keys() - files.keys():
        (uri / name).unlink()
    for name, data in files.items():
        path = uri / name
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)


def cases(uri: Path, seed: str) -> list[tuple[str, str, bytes]]:
    """Return damages to files of the log: all of them, or a few of each kind of file."""
    found = [
        (str(path.relative_to(uri)), name, data)
        for path in sorted((uri / "_delta_log").rglob("*"))
        if path.is_file()
        for name, data in damages(path.read_bytes())
    ]
    return found if IS_LONG else random.Random(seed).sample(found, FEW)


@pytest.mark.parametrize("kind", KINDS)
def test_repair_keeps_rows_or_changes_nothing(tmp_path: Path, kind: str) -> None:
    uri = tmp_path / "t"
    table = build(uri, kind)
    versions = [v for v in range(table.version() + 1) if read(uri, v) is not None]
    truth = {v: read(uri, v) for v in versions}
    whole = contents(uri)
    for file, name, data in cases(uri, kind):
        path = uri / file
        path.unlink() if name == "gone" else path.write_bytes(data)
        check(uri, truth, f"{kind}: {file}: {name}")
        restored(uri, whole)


def check(uri: Path, truth: dict[int, Any], case: str) -> None:
    """Repair a damaged table, and compare its rows and files with those before."""
    before, right = contents(uri), {v: read(uri, v) == rows for v, rows in truth.items()}
    try:
        table = DeltaTable(uri)
    except DeltaError:
        return
    steps = table.repair(deep=True)["steps"]
    after = contents(uri)
    if after == before:
        assert {s["step"] for s in steps} <= {"none"}, case
        return
    assert read(uri) == truth[max(truth)], (case, steps)
    # a version that was right stays right
    for version, was_right in right.items():
        assert not was_right or read(uri, version) == truth[version], (case, version, steps)
    kept = {p.read_bytes() for p in (uri / "_delta_log" / "_replaced").rglob("*") if p.is_file()}
    lost = {n for n, d in before.items() if after.get(n) != d and d not in kept}
    assert not lost, (case, lost)
    again = {s["step"] for s in DeltaTable(uri).repair(deep=True)["steps"]}
    assert again <= {"none"}, (case, again)
    assert contents(uri) == after, case
