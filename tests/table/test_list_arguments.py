"""Arguments that are lists of names: one text is rejected, or one name, but never the list of its characters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidArgumentError


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Return a table with columns that are named like the characters of another one."""
    rows = pa.table({"id": [1, 2], "i": [5, 6], "d": ["x", "y"]})
    write_deltalake(str(tmp_path / "t"), rows, configuration={"delta.enableChangeDataFeed": "true"})
    return DeltaTable(str(tmp_path / "t"))


READS: dict[str, Callable[[DeltaTable], Any]] = {
    "to_pyarrow_table": lambda t: t.to_pyarrow_table(columns="id"),
    "to_pyarrow_table with a filter": lambda t: t.to_pyarrow_table(columns="id", filters=pc.field("id") > 0),
    "to_pandas": lambda t: t.to_pandas(columns="id"),
    "scan": lambda t: t.scan("id"),
    "snapshot": lambda t: t.snapshot().scan("id"),
    "metadata": lambda t: t.scan(["id"], metadata="_file_path"),
    "files": lambda t: t.scan().files("path"),
    "file set": lambda t: t.snapshot().files.columns("path"),
    "load_cdf": lambda t: t.load_cdf(columns="id"),
    "changes": lambda t: t.changes(columns="id"),
    "operation changes": lambda t: t.operation("changes")(0, columns="id"),
    "follow": lambda t: next(iter(t.follow(columns="id"))),
    "dataset": lambda t: t.dataset().to_table(columns="id"),
    "scanner": lambda t: t.dataset().scanner(columns="id").to_table(),
    "z_order": lambda t: t.optimize.z_order("id"),
    "except_cols": lambda t: (
        t.merge(pa.table({"id": [1]}), "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all(except_cols="id")
        .execute()
    ),
    "bytes": lambda t: t.scan(b"id"),
}


@pytest.mark.parametrize("read", READS)
def test_one_text_is_no_list_of_columns(table: DeltaTable, read: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a list of names"):
        READS[read](table)
    assert DeltaTable(table.table_uri).version() == 0


def test_one_text_is_one_name_where_tables_are_defined(table: DeltaTable, tmp_path: Path) -> None:
    made = DeltaTable.create(
        str(tmp_path / "n"), table.schema(), partition_by="id", features="deletionVectors", cluster_by=()
    )
    assert made.metadata().partition_columns == ["id"]
    assert "deletionVectors" in (made.protocol().writer_features or ())
    write_deltalake(table, pa.table({"id": [1], "i": [7], "d": ["q"]}), mode="overwrite", replace_using="id")
    assert sorted(table.to_pyarrow_table().column("i").to_pylist()) == [6, 7]
