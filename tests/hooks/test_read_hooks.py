"""Each hook of the reading path, seen from outside: an external package's answer changes what a table returns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core import DeltaTable
from delta_core.api import Call, ColumnMap, CommitTimestamp, Function, RowFilter, StructType, TypeDef, column, literal
from delta_core.errors import (
    CatalogRequiredError,
    DeltaError,
    InvalidArgumentError,
    PluginConflictError,
    SchemaError,
    UnsupportedFeatureError,
)
from delta_core.testing.table_builder import TableBuilder
from tests.hooks.external_plugins import PROTOCOL, ExternalPlugin, plugin_set, registry, table_of

ROWS = [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}, {"id": 3, "kind": "a"}]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return table_of(tmp_path / "t").append(ROWS)


def opened(table: TableBuilder, **hooks: Callable[..., Any]) -> DeltaTable:
    return DeltaTable(table.uri, plugins=registry(**hooks))


def ids(read: pa.Table) -> list[int]:
    return sorted(read.column("id").to_pylist())


def test_hook_primitive_types_returns_a_schema_its_type(table: TableBuilder) -> None:
    schema = table.state.metadata["schemaString"].replace('"long"', '"money"')
    table.commit({"metaData": {**table.state.metadata, "schemaString": schema}})
    with pytest.raises((SchemaError, UnsupportedFeatureError), match="money"):
        opened(table)
    money = TypeDef("money", pa.int64(), "BIGINT", "")
    assert ids(opened(table, primitive_types=lambda features: [money]).to_pyarrow_table()) == [1, 2, 3]


def test_hook_primitive_types_of_two_plugins_conflict_on_one_name() -> None:
    def money(arrow: pa.DataType) -> Callable[..., Any]:
        return lambda features: [TypeDef("money", arrow, "BIGINT", "")]

    one = ExternalPlugin("one", primitive_types=money(pa.int64()))
    assert plugin_set(one).types["money"].arrow == pa.int64()
    with pytest.raises(PluginConflictError, match="money"):
        _ = plugin_set(one, ExternalPlugin("two", primitive_types=money(pa.string()))).types


def test_hook_functions_serve_predicates(table: TableBuilder) -> None:
    double = Function("probe", "probe_double", lambda types: types[0], lambda values: pc.multiply(values, 2))
    scan = opened(table, functions=lambda features: [double]).snapshot().scan(predicate="probe_double(id) > 3")
    assert ids(scan.to_table()) == [2, 3]
    with pytest.raises(DeltaError, match="probe_double"):
        opened(table).snapshot().scan(predicate="probe_double(id) > 3").to_table()


def test_hook_check_read_rejects_the_table(table: TableBuilder) -> None:
    def refuse(table: Any) -> None:
        raise InvalidArgumentError(f"not version {table.version}")

    with pytest.raises(InvalidArgumentError, match="not version 1"):
        opened(table, check_read=refuse)


def test_hook_column_map_states_where_columns_lie(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", {"id": "long", "other": "long"}).append([{"id": 1, "other": 10}])

    def crossed(table: Any) -> ColumnMap:
        return ColumnMap("name", StructType(tuple(reversed(table.schema.fields))))

    assert opened(table, column_map=crossed).to_pyarrow_table().to_pylist() == [{"id": 10, "other": 1}]


def test_hook_column_map_has_one_answer(table: TableBuilder) -> None:
    one, two = (ExternalPlugin(n, column_map=lambda table: ColumnMap.identity(table.schema)) for n in ("one", "two"))
    state = opened(table).snapshot().state
    with pytest.raises(PluginConflictError, match="one, two"):
        plugin_set(one, two).single("column_map", table=state)


def test_hook_read_rules_filter_rows_of_every_scan(table: TableBuilder) -> None:
    only_a = RowFilter("probe", Call("=", (column("kind"), literal("a"))))
    read = opened(table, read_rules=lambda table, request: [only_a])
    assert ids(read.to_pyarrow_table()) == [1, 3]
    assert read.snapshot().scan(columns=["id"], predicate="id > 1").to_table().to_pylist() == [{"id": 3}]


def test_hook_commit_timestamps_replace_file_times(table: TableBuilder) -> None:
    table.commit({"commitInfo": {"probedAt": 1_234, "operation": "PROBE"}})
    rule = CommitTimestamp("probe", "probedAt", enablement_version=2)
    assert opened(table, commit_timestamps=lambda table: rule).snapshot().timestamp_ms == 1_234
    assert opened(table).snapshot().timestamp_ms != 1_234


def test_hook_checkpoint_sidecars_open_a_checkpoint(table: TableBuilder) -> None:
    table.checkpoint("v2-parquet", sidecars=2).cleanup_before(1)
    with pytest.raises(DeltaError, match="sidecar"):
        _ = opened(table).snapshot().files.count

    def names(table: Any, checkpoint: str, actions: pa.Table) -> list[str]:
        assert "checkpoint" in checkpoint
        return actions.column("path").to_pylist()

    assert ids(opened(table, checkpoint_sidecars=names).to_pyarrow_table()) == [1, 2, 3]


def test_hook_requires_catalog_rejects_to_trust_the_listing(table: TableBuilder) -> None:
    with pytest.raises(CatalogRequiredError, match="commits="):
        opened(table, requires_catalog=lambda features: True)
    assert opened(table, requires_catalog=lambda features: False).version() == 1


def test_table_is_rejected_where_nobody_provides_its_feature(table: TableBuilder) -> None:
    assert PROTOCOL["readerFeatures"] == ["probe"]
    with pytest.raises(UnsupportedFeatureError, match="probe"):
        DeltaTable(table.uri)
