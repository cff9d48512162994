"""columnMapping: columns keep their physical name or id in files when they are renamed. Protocol: Column Mapping."""

from delta_core.api import ColumnMap, TableFeature, TableState, hookimpl
from delta_plugins.column_mapping import logic

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return logic.mapping_mode(table.configuration) != "none"


FEATURE = TableFeature(
    "columnMapping",
    "reader+writer",
    "Columns can be renamed and dropped without a rewrite: files know them by physical names or ids.",
    legacy_reader=2,
    legacy_writer=5,
    properties={
        logic.MODE: "none, name or id: how columns are found in files",
        "delta.columnMapping.maxColumnId": "the highest id that was ever given to a column",
    },
    active=_is_active,
)


@hookimpl
def check_read(table: TableState) -> None:
    logic.column_map(table.schema, table.configuration)


@hookimpl
def column_map(table: TableState) -> ColumnMap | None:
    return logic.column_map(table.schema, table.configuration)
