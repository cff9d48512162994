"""Write the datasets of ``fixtures/`` with pylance, and record what it reads.

``python -m tests.lance.record_datasets``

pylance 14.0.2 wrote those that are checked in.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

FIXTURES = Path(__file__).parent / "fixtures"
METADATA = ("_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version")


def rows(start: int, count: int) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": pa.array([None if i % 7 == 0 else f"text {i % 5}" for i in numbers], pa.string()),
            "s": pa.array([{"x": i / 4, "tags": ["a"] * (i % 3)} for i in numbers]),
            "day": pa.array([i % 30 for i in numbers], pa.date32()),
            "u": pa.array(numbers, pa.uint16()),
        }
    )


def write_changes(lance: Any, uri: str, version: str, stable: bool) -> None:
    """Write a dataset that most operations have changed."""
    options = {"data_storage_version": version, "enable_stable_row_ids": stable, "max_rows_per_file": 40}
    dataset = lance.write_dataset(rows(0, 100), uri, **options)
    lance.write_dataset(rows(100, 30), uri, mode="append")
    dataset = lance.dataset(uri)
    dataset.delete("id % 10 = 3")
    dataset.tags.create("deleted", 3)
    dataset.update({"text": "'new'"}, where="id >= 95 and id < 105")
    dataset.add_columns({"twice": "id * 2"})
    dataset.drop_columns(["day"])
    new = rows(125, 10).drop_columns(["day"]).append_column("twice", pa.array([0] * 10, pa.int64()))
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)
    dataset.update_config({"key": "value"})
    dataset.optimize.compact_files(target_rows_per_fragment=60)
    dataset.restore()
    branch = dataset.create_branch("dev/one", 8)
    branch.delete("id < 50")


def record(lance: Any, uri: str) -> dict[str, Any]:
    """Return the rows of each version as pylance reads them."""
    found: dict[str, Any] = {}
    for listed in lance.dataset(uri).versions():
        dataset = lance.dataset(uri, version=listed["version"])
        table = dataset.to_table(columns=[*dataset.schema.names, *METADATA])
        found[str(listed["version"])] = table.to_pydict()
    return found


def main() -> None:
    import lance

    FIXTURES.mkdir(exist_ok=True)
    os.chdir(FIXTURES)
    for name, version, stable in (("stable", "2.2", True), ("plain", "2.1", False)):
        shutil.rmtree(name, ignore_errors=True)
        write_changes(lance, name, version, stable)
        content = json.dumps(record(lance, name), default=str, separators=(",", ":"))
        (FIXTURES / f"{name}.json").write_text(content)
        for hint in Path(name).rglob("latest_version_hint.json"):
            hint.unlink()


if __name__ == "__main__":
    main()
