"""If a variant may be in a schema. Protocol: Writer Requirements for Variant Data Type."""

from __future__ import annotations

from delta_core.api import VARIANT, PrimitiveType, SchemaError, StructType, TableState, format_path, walk

__all__ = ["check_columns", "holds_variants"]

_TYPE = PrimitiveType(VARIANT.name)


def holds_variants(schema: StructType) -> bool:
    """Whether a column, or a part of one at any depth, is a variant."""
    return any(f.type == _TYPE for _, f in walk(schema))


def check_columns(table: TableState) -> None:
    """Reject a variant as partition column, as result of a generation expression, or with a default other than null.

    Raises
    ------
    SchemaError
        If a variant is used so.
    """
    partitions = {name.lower() for name in table.partition_columns}
    for path, f in walk(table.schema):
        if f.type != _TYPE:
            continue
        default = str(f.metadata.get("CURRENT_DEFAULT", "null")).strip().lower()
        if len(path) == 1 and f.name.lower() in partitions:
            what = "partition the table"
        elif "delta.generationExpression" in f.metadata:
            what = "be generated"
        elif default != "null" and not default.startswith("cast(null as"):
            what = f"have the default {f.metadata['CURRENT_DEFAULT']}, only null"
        else:
            continue
        raise SchemaError(f"Column {format_path(path)} is a variant, which can't {what}.", column=format_path(path))
