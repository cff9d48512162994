"""Checks of a table's definition that do not depend on its features: names, partition columns, nullability."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from delta_core.errors import ColumnNotFoundError, InvalidArgumentError, SchemaError
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.protocol.properties import read_property
from delta_core.schema.fields import ColumnMap, Path, format_path, walk
from delta_core.schema.types import Field

__all__ = [
    "changed_names",
    "check_names",
    "check_partition_columns",
    "check_required",
    "check_statistics_columns",
    "check_texts",
]

_STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"


def check_texts(metadata: Metadata) -> None:
    """Reject a name or description that is no text: readers would fail at it.

    Raises
    ------
    InvalidArgumentError
        For such a text.
    """
    for what, found in (("name", metadata.name), ("description", metadata.description)):
        if found is not None and not isinstance(found, str):
            raise InvalidArgumentError(f"Found {what}={found!r} of the table, expected text.")


def check_statistics_columns(previous: TableState | None, table: TableState) -> None:
    """Reject a new list of statistics columns that names one which the table lacks.

    Raises
    ------
    ColumnNotFoundError
        For such a column.
    """
    text = table.property(_STATISTICS_COLUMNS)
    if text is None or previous is not None and previous.property(_STATISTICS_COLUMNS) == text:
        return
    there = {tuple(part.lower() for part in path) for path, _ in walk(table.schema)}
    for path in read_property(table.configuration, _STATISTICS_COLUMNS):
        if tuple(part.lower() for part in path) not in there:
            raise ColumnNotFoundError(
                f"Table property {_STATISTICS_COLUMNS} names the column {format_path(path)}, which the table does not "
                f"have; its columns are: {', '.join(table.schema.names[:20])}.",
                column=format_path(path),
            )


def check_partition_columns(metadata: Metadata) -> None:
    """Reject partition columns that the schema lacks.

    Raises
    ------
    SchemaError
        For such a column.
    """
    schema = metadata.schema
    missing = [c for c in metadata.partition_columns if schema.get(c) is None]
    if missing:
        raise SchemaError(
            f"Column {missing[0]!r} partitions the table and would be dropped; the columns would be: "
            f"{', '.join(schema.names[:20])}. Keep it, or overwrite table and schema with other partition columns.",
            column=missing[0],
        )


def check_names(previous: TableState | None, table: TableState, registry: PluginRegistry, rejected: str = "") -> None:
    """Reject new columns with an empty name, or with one that has a character which the engine rejects.

    Only if files have them under the same names: mapped columns may be named at will, until files are to have
    their names. Other columns that are there already stay.

    Raises
    ------
    SchemaError
        For such a column.
    """
    if table.column_map != ColumnMap.identity(table.schema):
        return
    was_mapped = previous is not None and previous.column_map != ColumnMap.identity(previous.schema)
    known = set() if previous is None or was_mapped else {f.name for _, f in walk(previous.schema)}
    for path, f in walk(table.schema):
        if f.name in known:
            continue
        found = next((c for c in f.name if c in rejected), None)
        if f.name and found is None:
            continue
        what = "has an empty name" if not f.name else f"has {found!r} in its name"
        raise SchemaError(
            f"Column {format_path(path)!r} {what}, which Delta on Spark rejects; not allowed are empty names"
            f"{f' and any of {rejected!r}' if rejected else ''}. Name it otherwise{registry.remedies('column_names')}.",
            column=format_path(path),
        )


def changed_names(previous: TableState, table: TableState) -> tuple[Path, ...]:
    """Return the columns, and parts of columns, that the table loses or that get another name, by their names before.

    Parts are the same if files hold them under one physical path. The parts of such a column are left out.
    """
    after = {physical: logical for logical, physical, _ in _parts(table)}
    found: dict[Path, None] = {}
    for logical, physical, _ in _parts(previous):
        if after.get(physical) != logical and not any(logical[:n] in found for n in range(1, len(logical))):
            found[logical] = None
    return tuple(found)


def _parts(table: TableState) -> Iterator[tuple[Path, Path, Field]]:
    """Yield the logical path, the physical path and the logical field of every part of the schema."""
    pairs = zip(walk(table.schema), walk(table.column_map.physical), strict=True)
    return ((logical, physical, f) for (logical, f), (physical, _) in pairs)


def check_required(previous: TableState, table: TableState, without_nulls: Collection[Path] = ()) -> None:
    """Reject parts of the schema that may no longer be null, or are new and may not: rows that stay hold nulls there.

    Parts are the same if files hold them under one physical path.

    Parameters
    ----------
    previous : TableState
        The table before the change.
    table : TableState
        The table.
    without_nulls : collection of Path
        Parts of the new schema whose rows were checked to have a value.

    Raises
    ------
    SchemaError
        For such a column.
    """
    before = {physical: f.nullable for physical, f in walk(previous.column_map.physical)}
    for logical, physical, f in _parts(table):
        # what is in a part that is new is absent if that part is
        if f.nullable or logical in without_nulls or physical[:-1] and physical[:-1] not in before:
            continue
        was = before.get(physical)
        if was is not False:
            what = "is new" if was is None else "may be null"
            raise SchemaError(
                f"Column {format_path(logical)} {what} and would become NOT NULL, but rows of the table stay that may "
                "have no value there. Leave it nullable, or overwrite table and schema.",
                column=format_path(logical),
            )
