"""An empty text or binary partition value is null to every reader: checks, fills and predicates see it so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConstraintViolationError, InvalidArgumentError
from delta_core.table.transaction import AddAction

TYPES = pytest.mark.parametrize(("kind", "empty", "other"), [(pa.string(), "", "a"), (pa.binary(), b"", b"a")], ids=str)


def table(kind: pa.DataType, *values: Any) -> pa.Table:
    return pa.table({"id": list(range(len(values))), "p": pa.array(values, kind)})


def commits(uri: Path) -> int:
    return len(list((uri / "_delta_log").glob("*.json")))


@TYPES
@pytest.mark.parametrize("required", [True, False])
def test_not_null_rejects_it(tmp_path: Path, kind: pa.DataType, empty: Any, other: Any, required: bool) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("p", kind, not required)])
    DeltaTable.create(tmp_path / "t", schema, partition_by=["p"])
    if not required:
        write_deltalake(tmp_path / "t", table(kind, empty, other, None), mode="append")
        found = [DeltaTable(tmp_path / "t").to_pyarrow_table(), deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table()]
        assert [sorted(f["p"].to_pylist(), key=str) for f in found] == [sorted([None, None, other], key=str)] * 2
        return
    with pytest.raises(ConstraintViolationError, match="NOT NULL p"):
        write_deltalake(tmp_path / "t", table(kind, other, empty), mode="append")
    assert commits(tmp_path / "t") == 1


@TYPES
@pytest.mark.parametrize("check", ["p is not null", "length(coalesce(p, 'xx')) < 2"])
def test_check_constraint_sees_null(tmp_path: Path, kind: pa.DataType, empty: Any, other: Any, check: str) -> None:
    write_deltalake(
        tmp_path / "t",
        table(kind, other),
        partition_by=["p"],
        configuration={"delta.constraints.c": check if kind == pa.string() else check.replace("'xx'", "X'0000'")},
    )
    with pytest.raises(ConstraintViolationError, match=r"check 'c'"):
        write_deltalake(tmp_path / "t", table(kind, other, empty), mode="append")
    assert commits(tmp_path / "t") == 1


@pytest.mark.parametrize(("predicate", "fits"), [("p = ''", False), ("p is null", True), ("p = '' or p is null", True)])
def test_predicate_of_an_overwrite_sees_null(tmp_path: Path, predicate: str, fits: bool) -> None:
    write_deltalake(tmp_path / "t", table(pa.string(), "", "a"), partition_by=["p"])
    for _ in range(2):
        if fits:
            write_deltalake(tmp_path / "t", table(pa.string(), ""), mode="overwrite", predicate=predicate)
        else:
            with pytest.raises(ConstraintViolationError, match="replaceWhere"):
                write_deltalake(tmp_path / "t", table(pa.string(), ""), mode="overwrite", predicate=predicate)
        assert sorted(DeltaTable(tmp_path / "t").to_pyarrow_table()["p"].to_pylist(), key=str) == [None, "a"]


def test_columns_that_are_computed_see_null(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("p", pa.string()),
            pa.field("q", pa.string(), metadata={"delta.generationExpression": "coalesce(p, 'none')"}),
            pa.field("r", pa.string(), metadata={"delta.generationExpression": "substring(cast(id as string), 1, 0)"}),
        ]
    )
    DeltaTable.create(tmp_path / "t", schema, partition_by=["p", "r"])
    write_deltalake(tmp_path / "t", table(pa.string(), ""), mode="append")
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().select(["p", "q", "r"]).to_pylist() == [
        {"p": None, "q": "none", "r": None}
    ]


def test_registered_file_without_a_value_of_a_required_column_is_rejected(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string(), False)])
    DeltaTable.create(tmp_path / "t", schema, partition_by=["p"])
    write_deltalake(tmp_path / "t", table(pa.string(), "a"), mode="append")
    (file,) = (tmp_path / "t").rglob("p=a/*.parquet")
    for value in ("", None):
        copy = AddAction(str(file.relative_to(tmp_path / "t")), file.stat().st_size, {"p": value}, 0, True, "")
        with pytest.raises(InvalidArgumentError, match="NOT NULL"):
            DeltaTable(tmp_path / "t").create_write_transaction([copy], "append", schema, ["p"])
