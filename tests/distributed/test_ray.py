"""Tables as datasets of Ray, and datasets as one version."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_core.ray as delta_ray
from delta_core import DeltaTable, Field, Schema
from delta_core.errors import ConstraintViolationError, InvalidArgumentError, TableExistsError

ray = pytest.importorskip("ray", reason='Ray is not installed: pip install -e ".[test-ray]"')
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # workers import this clone
    environment = {"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", runtime_env=environment)
    yield
    ray.shutdown()


def dataset(rows: int = 100) -> Any:
    made = pa.table({"id": list(range(rows)), "name": [f"n{i % 5}" for i in range(rows)]})
    return ray.data.from_arrow([made.slice(0, rows // 2), made.slice(rows // 2)])


def ids(folder: Path) -> list[int]:
    found: list[int] = sorted(DeltaTable(folder).to_pyarrow_table(columns=["id"])["id"].to_pylist())
    return found


def test_rows_are_written_as_one_version_and_read_with_every_feature(tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    assert delta_ray.write(dataset(), tmp_path / "t", partition_by=["name"], configuration=properties) == 0
    table = DeltaTable(tmp_path / "t")
    table.delete("id < 10")
    found = delta_ray.read(table, ["id"], "id < 20", block_bytes=1)
    assert sorted(row["id"] for row in found.take_all()) == list(range(10, 20))
    assert found.schema().names == ["id"]
    assert delta_ray.read(tmp_path / "t", version=0).count() == 100
    assert delta_ray.read(table, predicate="id < 0").count() == 0
    with pytest.raises(TableExistsError):
        delta_ray.write(dataset(), tmp_path / "t")


def test_encoded_columns_are_read_and_written_as_values(tmp_path: Path) -> None:
    pytest.importorskip("delta_packed_uuids")
    ids = [str(uuid.UUID(int=n)) for n in range(9)]
    rows = ray.data.from_arrow(pa.table({"id": ids, "n": list(range(9))}))
    properties = {"example.packedUuids.columns": "id"}
    delta_ray.write(rows, tmp_path / "t", configuration=properties)
    delta_ray.write(rows, tmp_path / "t", "append")
    for path in (tmp_path / "t").glob("*.parquet"):
        assert pq.read_schema(path).field("id").type == pa.binary()
    found = delta_ray.read(tmp_path / "t", predicate=f"id = '{ids[4]}'")
    assert [(row["id"], row["n"]) for row in found.take_all()] == [(ids[4], 4)] * 2


def test_a_dataset_that_is_read_and_changed_is_written(tmp_path: Path) -> None:
    delta_ray.write(dataset(), tmp_path / "t")
    found = delta_ray.read(tmp_path / "t").map_batches(lambda t: t.slice(0, 10), batch_format="pyarrow", batch_size=50)
    delta_ray.write(found, tmp_path / "u")
    assert DeltaTable(tmp_path / "u").count() == 20


def test_identity_columns_differ_in_all_tasks(tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    schema = Schema([Field("key", "long", metadata=identity), Field("id", "long"), Field("name", "string")])
    DeltaTable.create(tmp_path / "t", schema)
    delta_ray.write(dataset(), tmp_path / "t", "append")
    keys = DeltaTable(tmp_path / "t").to_pyarrow_table(columns=["key"])["key"].to_pylist()
    assert len(set(keys)) == 100
    assert max(keys) < 1_000


def test_rejected_rows_of_one_task_leave_nothing(tmp_path: Path) -> None:
    delta_ray.write(dataset(), tmp_path / "t")
    table = DeltaTable(tmp_path / "t")
    table.alter.add_constraint({"small": "id < 100"})
    before = sorted((tmp_path / "t").rglob("*.parquet"))
    with pytest.raises(ConstraintViolationError, match="small"):
        delta_ray.write(dataset(200), tmp_path / "t", "append")
    assert sorted((tmp_path / "t").rglob("*.parquet")) == before
    assert ids(tmp_path / "t") == list(range(100))


def test_a_task_that_dies_loses_and_doubles_no_row(tmp_path: Path) -> None:
    marker = tmp_path / "died"

    def dying(batch: pa.Table) -> pa.Table:
        if batch["id"][0].as_py() == 0 and not marker.exists():
            marker.touch()
            os._exit(1)
        return batch

    delta_ray.write(dataset().map_batches(dying, batch_format="pyarrow", batch_size=50), tmp_path / "t")
    assert marker.exists()
    assert ids(tmp_path / "t") == list(range(100))


def test_rows_that_are_no_dataset_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a dataset of Ray"):
        delta_ray.write([1], tmp_path / "t")  # type: ignore[arg-type]
