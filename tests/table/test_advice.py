"""Messages lead to what helps: similar names, the argument or the property that allows the call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from delta_core.errors import DeltaError, did_you_mean
from delta_core.kernels.row_set import RowSet

ROWS = pa.table({"id": [1], "amount": [1.5], "s": [{"street": "a"}]})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", ROWS)
    return DeltaTable(tmp_path / "t")


def _remove_rows(table: DeltaTable) -> None:
    table.snapshot().begin("DELETE").remove_rows("x", RowSet.from_positions([0]))


def _register(table: DeltaTable, **arguments: Any) -> None:
    write_deltalake(table, ROWS, mode="append", **arguments)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda t: t.to_pyarrow_table(columns=["amuont"]), "Did you mean 'amount'?"),
        (lambda t: t.to_pyarrow_table(columns=["s.stret"]), "Did you mean 's.street'?"),
        (lambda t: t.scan(predicate="AMOUT > 1"), "Did you mean 'amount'?"),
        (lambda t: t.scan(metadata=["_file_pth"]), "Did you mean '_file_path'?"),
        (lambda t: t.snapshot().scan().files(["pth"]), "Did you mean 'path'?"),
        (lambda t: t.operation("add_constrain"), "Did you mean 'add_constraint'?"),
        (lambda t: DeltaTable.create(t.table_uri + "n", t.schema(), partition_by=["ids"]), "Did you mean 'id'?"),
        (lambda t: DeltaTable.create(t.table_uri + "n", t.schema(), features=["deletionVector"]), "'deletionVectors'?"),
        (
            lambda t: _register(t, writer_properties=WriterProperties(column_properties={"amout": ColumnProperties()})),
            "Did you mean 'amount'?",
        ),
        (lambda t: write_deltalake(t, ROWS.rename_columns(["id", "amuont", "s"]), mode="append"), "mean 'amount'?"),
        (lambda t: write_deltalake(t, ROWS.append_column("new", ROWS["id"]), mode="append"), "schema_mode='merge'"),
        (_remove_rows, "or set the table property delta.enableDeletionVectors=true."),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_message_has_the_advice(table: DeltaTable, call: Callable[[DeltaTable], Any], advice: str) -> None:
    with pytest.raises(DeltaError) as caught:
        call(table)
    assert advice in str(caught.value)


def test_advised_property_allows_names_with_blanks(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"my id": [1]}), configuration={"delta.columnMapping.mode": "name"})
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().to_pydict() == {"my id": [1]}


def test_advised_argument_adds_the_column(table: DeltaTable) -> None:
    write_deltalake(table, ROWS.append_column("new", ROWS["id"]), mode="append", schema_mode="merge")
    assert sorted(table.to_pyarrow_table(columns=["new"])["new"].to_pylist(), key=str) == [1, None]


def test_nothing_similar_is_no_advice() -> None:
    assert did_you_mean("id", ["amount", "day"]) == ""
    assert did_you_mean("id", []) == ""
