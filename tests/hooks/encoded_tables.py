"""A feature that encodes columns with expressions of Spark SQL alone, and tables that have it.

The stored forms are in another order than the values, and some of the same type: bounds of what files store, where they
are taken for bounds of values, hide rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core.api import (
    Call,
    Cast,
    ChangeSchema,
    Column,
    ColumnEncoding,
    Expression,
    FeatureStep,
    Literal,
    Metadata,
    PrimitiveType,
    Schema,
    Snapshot,
    TableFeature,
    TableState,
    WriteOptions,
    create_table,
    hookimpl,
    open_context,
    write_table,
)
from delta_core.kernel.plugins.registry import PluginRegistry

__all__ = ["BOUNDS", "COLUMNS", "NAME", "PLUGINS", "append", "encoded", "opened"]

NAME = "probe.encoded"
COLUMNS = "probe.encoded.columns"
#: True if the log has bounds of the values.
BOUNDS = "probe.encoded.bounds"


def _forms(column: Expression, kind: str) -> tuple[str, Expression, Expression]:
    """Return the stored type, and the expressions that encode and decode, for a column of a type."""
    if kind == "string":
        return "string", Call("reverse", (column,)), Call("reverse", (column,))
    if kind == "long":
        opposite = Call("-", (Literal(0, PrimitiveType("long")), column))
        return "long", opposite, opposite
    text = PrimitiveType("string")
    return "string", Call("reverse", (Cast(column, text),)), Cast(Call("reverse", (column,)), PrimitiveType(kind))


def same_schema(schema: Schema) -> Schema:
    return schema


def _is_active(table: TableState) -> bool:
    return COLUMNS in table.configuration


class Encoded:
    """The plugin; registries take it in place of a module."""

    FEATURE = TableFeature(
        NAME,
        "reader+writer",
        "Encodes columns.",
        properties={COLUMNS: "columns, joined by commas", BOUNDS: "true or false"},
        active=_is_active,
    )

    @staticmethod
    @hookimpl
    def required_features(metadata: Metadata) -> Iterable[str]:
        return [NAME] if COLUMNS in metadata.configuration else []

    @staticmethod
    @hookimpl
    def column_encodings(table: TableState) -> Iterable[ColumnEncoding]:
        found = []
        for name in filter(None, table.configuration.get(COLUMNS, "").split(",")):
            field = table.schema.get(name)
            if field is None:  # it may be added later
                continue
            stored, encode, decode = _forms(Column((name,)), field.type.type)
            bounds = table.flag(BOUNDS)
            found.append(ColumnEncoding(NAME, (name,), PrimitiveType(stored), encode, decode, statistics=bounds))
        return found

    @staticmethod
    @hookimpl
    def feature_steps(change: str) -> Iterable[FeatureStep]:
        return [ChangeSchema(NAME, same_schema, "DECODE", (COLUMNS,), rewrite=True)] if change == "drop" else []


PLUGINS = PluginRegistry([Encoded])


def encoded(path: Path, rows: pa.Table, columns: str, properties: dict[str, str] | None = None, **options: Any) -> str:
    """Create a table whose columns are encoded, write rows in one commit, and return its URI."""
    context = open_context(str(path), plugins=PLUGINS)
    given = {**(properties or {}), **({COLUMNS: columns} if columns else {})}
    create_table(context, Schema.from_arrow(rows.schema), properties=given, **options)
    append(str(path), rows)
    return str(path)


def append(uri: str, rows: pa.Table, plugins: PluginRegistry = PLUGINS) -> None:
    write_table(open_context(uri, plugins=plugins), rows, WriteOptions(mode="append"))


def opened(uri: str, plugins: PluginRegistry = PLUGINS) -> Snapshot:
    found: Snapshot = open_context(uri, plugins=plugins).read(None)
    return found
