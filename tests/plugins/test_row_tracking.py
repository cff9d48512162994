"""Feature rowTracking: ids and versions of rows as metadata columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import InvalidArgumentError
from delta_core.expressions.ast import Call, FileConstant, PhysicalColumn, RowPosition
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.rules import MetadataColumn
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import PrimitiveType
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder

LONG = PrimitiveType("long")
NAMES = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}


class TestRowTracking(FeatureContract):
    name = "rowTracking"

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(properties={"delta.enableRowTracking": "true"})]

    def states(self) -> list[TableState]:
        return [table_state([self.name], properties=NAMES), table_state([self.name])]

    def columns(self, state: TableState, purpose: str = "rows") -> dict[str, MetadataColumn]:
        request = ReadRequest(purpose=purpose)  # type: ignore[arg-type]
        return {c.name: c for c in self.alone().collect("read_rules", table=state, request=request)}

    def test_id_is_base_plus_position_where_nothing_was_materialised(self) -> None:
        found = self.columns(table_state([self.name]))
        assert found["_row_id"].expression == Call("+", (FileConstant("baseRowId", LONG), RowPosition()))
        assert found["_row_commit_version"].expression == FileConstant("defaultRowCommitVersion", LONG)

    def test_values_of_the_file_stay_where_others_are_materialised(self) -> None:
        found = self.columns(table_state([self.name], properties=NAMES))
        assert found["_base_row_id"].expression == FileConstant("baseRowId", LONG)
        assert found["_default_row_commit_version"].expression == FileConstant("defaultRowCommitVersion", LONG)

    def test_materialised_value_wins(self) -> None:
        found = self.columns(table_state([self.name], properties=NAMES))
        fallback = Call("+", (FileConstant("baseRowId", LONG), RowPosition()))
        assert found["_row_id"].expression == Call("coalesce", (PhysicalColumn("_row-id-col-1", LONG), fallback))
        assert found["_row_commit_version"].expression == Call(
            "coalesce",
            (PhysicalColumn("_row-commit-version-col-1", LONG), FileConstant("defaultRowCommitVersion", LONG)),
        )

    def test_change_feed_offers_no_ids(self) -> None:
        assert self.columns(table_state([self.name], properties=NAMES), "changes") == {}

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties=NAMES).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)

    def test_it_names_its_domain_so_that_states_hold_it(self) -> None:
        assert self.feature.domains == ("delta.rowTracking",)


@pytest.mark.parametrize("mode", [None, "name", "id"])
def test_rows_keep_their_ids_through_vectors_rewrites_and_mapping(tmp_path: Path, mode: Any) -> None:
    table = TableBuilder(tmp_path / "t").create(
        {"id": "long"},
        features=["rowTracking", "domainMetadata", "deletionVectors"],
        column_mapping=mode,
        properties=NAMES,
    )
    table.append([{"id": 1}, {"id": 2}, {"id": 3}]).delete_rows(lambda row: row["id"] == 2)
    rewritten = {
        "id": pa.array([10, 11], pa.int64()),
        "_row-id-col-1": pa.array([None, 1], pa.int64()),
        "_row-commit-version-col-1": pa.array([0, None], pa.int64()),
    }
    table.append(pa.table(rewritten))
    found = open_snapshot(table.uri).scan(metadata=["_row_id", "_row_commit_version"]).to_table()
    assert [tuple(row.values()) for row in found.to_pylist()] == [(1, 0, 1), (3, 2, 1), (10, 3, 0), (11, 1, 3)]
    assert open_snapshot(table.uri).scan().schema.names == ["id"]


def test_rows_that_never_got_an_id_have_none(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])
    table.alter(features=["rowTracking", "domainMetadata"]).append([{"id": 2}])
    found = open_snapshot(table.uri).scan(metadata=["_row_id", "_row_commit_version"]).to_table().to_pylist()
    assert sorted((r["id"], r["_row_id"], r["_row_commit_version"]) for r in found) == [(1, None, None), (2, 0, 3)]


def test_columns_of_the_table_hide_metadata_columns_of_their_name(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"_row_id": "string"}, features=["rowTracking", "domainMetadata"])
    snapshot = open_snapshot(table.append([{"_row_id": "own"}]).uri)
    assert snapshot.scan().to_table().to_pylist() == [{"_row_id": "own"}]
    with pytest.raises(InvalidArgumentError, match="column '_row_id' of its own"):
        snapshot.scan(metadata=["_row_id"])
