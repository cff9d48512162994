"""Tables of the corpus, written to: rows appended and rows dropped, and everything else as it was."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from delta_core.errors import (
    ConstraintViolationError,
    FeatureRequirementError,
    SchemaMismatchError,
    UnsupportedExpressionError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.snapshot import open_context, open_snapshot
from delta_core.kernels.row_set import RowSet
from delta_core.operations.write import WriteOptions, write_table
from tests.corpus.records import path_of, records

pytestmark = [pytest.mark.golden, pytest.mark.slow]

#: What a writer rejects of rows for these tables, and rightly: unknown features, collations, values that only the table
#: returns.
REJECTED = {
    "dat/generated_columns": (ConstraintViolationError, UnsupportedExpressionError),
    "delta-rs/issue-2152": (SchemaMismatchError,),
    "delta-rs/table_with_liquid_clustering": (UnsupportedFeatureError,),
    "golden-delta/collations-preview-table": (UnsupportedFeatureError,),
    "spark/identity_columns": (SchemaMismatchError,),
    "trino/deltalake__uniform_hudi": (UnsupportedFeatureError,),
}
#: Tables that Iceberg reads too, which has no vectors.
NO_VECTORS = {
    "golden-delta/table-with-icebegCompatV2Enabled",
    "spark/iceberg_compat_v1",
    "spark/iceberg_compat_v2",
    "trino/databricks133__uniform_iceberg_v1",
}
#: Tables that reject each delete.
APPEND_ONLY = {"deltalake/append_only", "spark/append_only"}
_MOST_BYTES = 300_000
#: One table of each family; the others are made of the same files.
FIRST = set({record["family"]: record["id"] for record in reversed(records())}.values())


def small(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    if record["expect"]["read"] != "rows" or record["id"] not in FIRST:
        return []
    files = (f for f in path_of(record).rglob("*") if f.is_file())
    return [(record,)] if sum(f.stat().st_size for f in files) < _MOST_BYTES else []


def small_and_writable(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [] if record["id"] in REJECTED else small(record)


@pytest.fixture
def uri(case: tuple[dict[str, Any]], tmp_path: Path) -> str:
    return str(shutil.copytree(path_of(case[0]), tmp_path / "t"))


def bag(rows: Any) -> Counter[str]:
    return Counter(str(batch.slice(i, 1).to_pydict()) for batch in rows.to_batches() for i in range(batch.num_rows))


@pytest.mark.corpus.with_args(small)
def test_appended_rows_are_beside_the_others(case: tuple[dict[str, Any]], uri: str) -> None:
    before = open_snapshot(uri).scan().to_table()
    few = before.slice(0, 3)
    if case[0]["id"] in REJECTED:
        with pytest.raises(REJECTED[case[0]["id"]]):
            write_table(open_context(uri), few, WriteOptions(mode="append"))
        return
    write_table(open_context(uri), few, WriteOptions(mode="append"))
    after = open_snapshot(uri).scan().to_table()
    assert after.num_rows == before.num_rows + few.num_rows
    if "timestamp" not in str(after.schema):  # times that Python can't hold
        assert bag(after) == bag(before) + bag(few)


@pytest.mark.corpus.with_args(small_and_writable)
def test_one_row_of_each_file_is_dropped(case: tuple[dict[str, Any]], uri: str) -> None:
    snapshot = open_snapshot(uri)
    switch = Transaction(snapshot.context, snapshot, "SET TBLPROPERTIES")
    properties = {**snapshot.metadata.configuration, "delta.enableDeletionVectors": "true"}
    on = replace(snapshot.metadata, configuration=properties)
    if case[0]["id"] in NO_VECTORS:
        with pytest.raises(FeatureRequirementError, match=r"(?i)deletion ?vectors"):
            switch.set_metadata(on)
        return
    switch.set_metadata(on)
    snapshot = switch.commit().snapshot
    files = snapshot.files.columns(["path", "stats", "deletionVector"])
    gone = snapshot.row_sets(files)
    transaction = Transaction(snapshot.context, snapshot, "DELETE")
    dropped = 0
    for i, file in enumerate(files.select(["path", "stats"]).to_pylist()):
        count = json.loads(file["stats"] or "{}").get("numRecords", 0)
        row = next((p for p in range(count) if p not in gone.get(i, RowSet.empty())), None)
        if row is not None:
            transaction.remove_rows(file["path"], RowSet.from_positions([row]))
            dropped += 1
    before = snapshot.scan().count()
    if case[0]["id"] in APPEND_ONLY:
        with pytest.raises(UnsupportedOperationError, match="append-only"):
            transaction.commit()
        return
    transaction.commit()
    assert open_snapshot(uri).scan().to_table().num_rows == before - dropped
