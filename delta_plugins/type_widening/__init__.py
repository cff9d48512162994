"""typeWidening: columns may change to wider types without a rewrite. Protocol: Type Widening."""

from operator import methodcaller

from delta_core.api import TableFeature, TableState, hookimpl
from delta_plugins.type_widening import logic

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "typeWidening",
    "reader+writer",
    "Columns may change to wider types while older files keep the narrow ones.",
    aliases=("typeWidening-preview",),
    properties={"delta.enableTypeWidening": "true allows such changes"},
    active=methodcaller("flag", "delta.enableTypeWidening"),
)


@hookimpl
def check_read(table: TableState) -> None:
    logic.check_type_changes(table.schema)
