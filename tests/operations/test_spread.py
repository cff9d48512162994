"""Work on files that an engine's other machines do: the outcome is that of one machine, whatever runs twice."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from delta_core import DeltaTable, Schema, write_deltalake
from delta_core.engines.arrow import engine as arrow_engine
from delta_core.errors import DataFileError, DataFileNotFoundError, EngineError, SchemaError
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.operations import (
    BackfillOptions,
    VacuumOptions,
    backfill_statistics,
    clone,
    footers,
    plan_vacuum,
    run_vacuum,
)
from delta_core.operations.sweep import deletion, listing as sweep_listing
from delta_core.table.writer import convert_to_deltalake
from tests.operations.test_backfill import without_statistics
from tests.operations.test_vacuum import put


class Machines:
    """Other machines: what they run arrives as bytes, each part of the paths by itself, the first one twice."""

    def __init__(self) -> None:
        self.parts = 0

    def __call__(self, work: Any, paths: pa.Array, schema: pa.Schema) -> pa.Table:
        sent = pickle.dumps(work)
        batches: list[pa.RecordBatch] = []
        for start in reversed(range(0, len(paths), 3)):
            part = paths.slice(start, 3)
            found = list(pickle.loads(sent)(part))
            if not self.parts:  # lost, and done again
                found = list(pickle.loads(sent)(part))
            batches += found
            self.parts += 1
        return pa.Table.from_batches(batches, schema)


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setattr(sweep_listing, "_ENOUGH_FOLDERS", 3)
    monkeypatch.setattr(deletion, "_MANY", 4)
    monkeypatch.setattr(deletion, "_MOST_SPREAD", 16)
    monkeypatch.setattr(footers, "_MANY", 2)
    return Machines()


def opened(uri: Path, spread: Machines | None) -> Snapshot:
    return open_snapshot(str(uri), engine=replace(arrow_engine(str(uri)), spread=spread))


def table_with_garbage(uri: Path, num_folders: int) -> None:
    ids = list(range(2 * num_folders))
    rows = pa.table({"p": [i // 2 for i in ids], "q": [i % 2 for i in ids], "id": ids})
    write_deltalake(str(uri), rows, partition_by=["p", "q"], configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(str(uri)).delete("id % 4 = 1")
    for i in range(num_folders):
        put(uri, f"p={i}/q=0/old {i}%20.parquet")
        put(uri, f"p={i}/young.parquet", age_hours=1)
        put(uri, f"p={i}/_hidden/old.parquet")
        put(uri, f"p={i}/q=0/.hidden.parquet")
    put(uri, "old.parquet")
    put(uri, "_change_data/deep/deeper/old.parquet")
    put(uri, "p=1/other/_delta_log/0.json")
    put(uri, "p=1/other/part.parquet")
    put(uri, "linked/part.parquet")
    (uri / "p=2" / "link").symlink_to(uri / "linked", target_is_directory=True)
    (uri / "p=0" / "empty").mkdir()


@pytest.mark.parametrize("num_folders", [3, 10])
def test_vacuum_on_other_machines_deletes_the_same(tmp_path: Path, machines: Machines, num_folders: int) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    table_with_garbage(here, num_folders)
    shutil.copytree(here, there, symlinks=True)
    (there / "p=2" / "link").unlink()
    (there / "p=2" / "link").symlink_to(there / "linked", target_is_directory=True)
    options = VacuumOptions()
    plans = [plan_vacuum(opened(here, None), options), plan_vacuum(opened(there, machines), options)]
    found = [sorted(plan.to_table().column("path").to_pylist()) for plan in plans]
    assert found[0] == found[1]
    assert len(found[0]) == num_folders + 2
    assert [sorted(plan.empty_folders) for plan in plans] == [["p=0/empty"]] * 2
    assert plans[0].facts.num_folders == plans[1].facts.num_folders
    assert plans[0].facts.num_bytes == plans[1].facts.num_bytes
    listed = machines.parts
    assert listed
    done = [run_vacuum(opened(here, None), plans[0], options), run_vacuum(opened(there, machines), plans[1], options)]
    assert machines.parts > listed
    assert [d.num_folders for d in done] == [1, 1]
    left = [{str(f.relative_to(root)) for f in root.rglob("*.parquet")} for root in (here, there)]
    assert left[0] == left[1]
    assert not left[0] & set(found[0])
    assert {"linked/part.parquet", "p=1/other/part.parquet", "p=0/young.parquet"} <= left[0]


@pytest.mark.parametrize("is_planned", [False, True])
def test_machine_that_does_not_see_the_table_is_reported(
    tmp_path: Path, machines: Machines, monkeypatch: pytest.MonkeyPatch, is_planned: bool
) -> None:
    uri = tmp_path / "t"
    table_with_garbage(uri, 5)
    table = opened(uri, machines)
    plan = plan_vacuum(table, VacuumOptions()) if is_planned else None
    before = sorted(uri.rglob("*.parquet"))

    def without_the_disk(self: Machines, work: Any, paths: pa.Array, schema: pa.Schema) -> pa.Table:
        storage = arrow_engine(str(tmp_path / "elsewhere")).storage
        return pa.Table.from_batches(list(replace(work, storage=storage)(paths)), schema)

    monkeypatch.setattr(Machines, "__call__", without_the_disk)
    with pytest.raises(EngineError, match="does not find"):
        run_vacuum(table, plan or plan_vacuum(table, VacuumOptions()), VacuumOptions())
    assert sorted(uri.rglob("*.parquet")) == before


def test_reachable_files_stay_on_other_machines(tmp_path: Path, machines: Machines) -> None:
    table_with_garbage(tmp_path / "t", 5)
    year_ago = time.time() - 365 * 86_400
    live = {str(p) for p in DeltaTable(str(tmp_path / "t")).file_uris()}
    for file in live:
        os.utime(file, (year_ago, year_ago))
    run_vacuum(
        opened(tmp_path / "t", machines),
        plan_vacuum(opened(tmp_path / "t", machines), VacuumOptions()),
        VacuumOptions(),
    )
    assert all(Path(file).exists() for file in live)
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().num_rows == 7


def test_statistics_from_other_machines_are_those_of_one(tmp_path: Path, machines: Machines) -> None:
    texts = []
    for name, spread in (("here", None), ("there", machines)):
        uri = tmp_path / name
        for i in range(7):
            rows = pa.table({"id": [i, None], "s": ["x" * 40 + str(i), "é"], "f": [float("nan"), 1.0]})
            write_deltalake(str(uri), rows, mode="append")
        if name == "there":
            shutil.rmtree(uri)
            shutil.copytree(tmp_path / "bare", uri)
        else:
            assert without_statistics(uri) == 7
            shutil.copytree(uri, tmp_path / "bare")
        done = backfill_statistics(opened(uri, spread), BackfillOptions())
        assert done.num_files == 7
        found = done.snapshot.files.columns(["path", "stats"]).to_pylist()
        texts.append(sorted((f["path"], f["stats"]) for f in found))
    assert texts[0] == texts[1]
    assert '"numRecords":2' in texts[0][0][1]
    assert machines.parts == 3


def test_file_that_is_gone_is_reported_by_other_machines(tmp_path: Path, machines: Machines) -> None:
    for i in range(4):
        write_deltalake(str(tmp_path), pa.table({"id": [i]}), mode="append")
    without_statistics(tmp_path)
    Path(DeltaTable(str(tmp_path)).file_uris()[2]).unlink()
    with pytest.raises(DataFileNotFoundError):
        backfill_statistics(opened(tmp_path, machines), BackfillOptions())


def test_folder_converted_by_other_machines_is_the_same_table(tmp_path: Path, machines: Machines) -> None:
    found = []
    for name, spread in (("here", None), ("there", machines)):
        uri = tmp_path / name
        for i in range(8):
            columns = {"id": [i, None], "s": ["é", "x" * 40], **({"late": [0.5, 1.0]} if i % 3 == 2 else {})}
            place = uri / f"p={i % 3}" / f"{7 - i}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), place)
        by = Schema.from_arrow(pa.schema([("p", pa.int32())]))
        engine = replace(arrow_engine(str(uri)), spread=spread)
        assert convert_to_deltalake(uri, "error", by, "hive", engine=engine, dry_run=True) == {"num_files": 8}
        machines.parts = 0
        assert convert_to_deltalake(uri, "error", by, "hive", engine=engine) is None
        files = DeltaTable(uri).snapshot().files.columns(["path", "partitionValues", "stats"]).to_pylist()
        found.append((DeltaTable(uri).schema().to_json(), sorted(map(repr, files))))
    assert found[0] == found[1]
    assert '"numRecords":2' in found[0][1][0]
    assert machines.parts == 6  # of schemas and of statistics


def test_file_that_can_not_be_converted_is_reported_by_other_machines(tmp_path: Path, machines: Machines) -> None:
    for i in range(4):
        pq.write_table(pa.table({"id": pa.array([i], pa.uint8() if i == 2 else pa.int8())}), tmp_path / f"{i}.parquet")
    engine = replace(arrow_engine(str(tmp_path)), spread=machines)
    with pytest.raises(SchemaError, match=r"2\.parquet"):
        convert_to_deltalake(tmp_path, engine=engine)
    (tmp_path / "2.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataFileError, match=r"2\.parquet"):
        convert_to_deltalake(tmp_path, engine=engine)
    assert not (tmp_path / "_delta_log").exists()


def test_files_copied_by_other_machines_make_the_same_clone(
    tmp_path: Path, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clone, "_MANY", 4)
    for i in range(7):
        rows = pa.table({"p": [f"é {i % 3}"], "id": [i]})
        write_deltalake(str(tmp_path / "t"), rows, mode="append", partition_by=["p"])
    copied = machines.parts
    table = DeltaTable(tmp_path / "t", engine=replace(arrow_engine(str(tmp_path / "t")), spread=machines))
    for name, at in (("here", DeltaTable(tmp_path / "t")), ("there", table)):
        at.clone(str(tmp_path / name), deep=True)
    assert machines.parts == copied + 3
    files = [
        {f.relative_to(tmp_path / n): f.read_bytes() for f in (tmp_path / n).rglob("*.parquet")}
        for n in ("here", "there")
    ]
    assert files[0] == files[1]
    assert sorted(DeltaTable(tmp_path / "there").to_pyarrow_table().column("id").to_pylist()) == list(range(7))


def test_files_that_other_machines_copied_to_another_disk_are_copied_here(
    tmp_path: Path, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clone, "_MANY", 2)
    for i in range(4):
        write_deltalake(str(tmp_path / "t"), pa.table({"id": [i]}), mode="append")

    def elsewhere(self: Machines, work: Any, paths: pa.Array, schema: pa.Schema) -> pa.Table:
        storage = arrow_engine(str(tmp_path / "other disk")).storage
        return pa.Table.from_batches(list(replace(work, storage=storage)(paths)), schema)

    monkeypatch.setattr(Machines, "__call__", elsewhere)
    table = DeltaTable(tmp_path / "t", engine=replace(arrow_engine(str(tmp_path / "t")), spread=machines))
    table.clone(str(tmp_path / "c"), deep=True)
    assert len(list((tmp_path / "other disk").rglob("*.parquet"))) == 4
    assert sorted(DeltaTable(tmp_path / "c").to_pyarrow_table().column("id").to_pylist()) == list(range(4))
