"""The columns of checkpoints, from the definitions of the actions; and their own (small) actions as rows.

Protocol: Checkpoints, Checkpoint Schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import HookContractError
from delta_core.expressions.ast import NUM_RECORDS, FileStatistic
from delta_core.kernel.log.file_columns import statistic_path
from delta_core.kernel.log.indexed_columns import statistics_leaves
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import (
    ADD,
    DOMAIN_METADATA,
    METADATA,
    PROTOCOL,
    REMOVE,
    TXN,
    ActionField,
    ActionKind,
)
from delta_core.kernels.arrow_buffers import array_of
from delta_core.schema.fields import Path
from delta_core.schema.types import Field, PrimitiveType

__all__ = ["CHECKPOINT_METADATA", "SIDECAR", "Action", "CheckpointColumns", "format_action", "json_value", "rows_table"]

_STRING_MAP = pa.map_(pa.string(), pa.string())
CHECKPOINT_METADATA = ActionKind("checkpointMetadata", pa.struct([("version", pa.int64()), ("tags", _STRING_MAP)]))
SIDECAR = ActionKind(
    "sidecar",
    pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _STRING_MAP)]
    ),
    key=("path",),
)
_OWN = (PROTOCOL, METADATA, TXN, DOMAIN_METADATA)
#: Types whose least and greatest value are kept in the struct form.
_BOUNDED = frozenset(
    {
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "date",
        "timestamp",
        "timestamp_ntz",
        "timestampNTZ",
        "timestampWithoutTimezone",
        "string",
    }
)
_LONG, _BOOLEAN, _VOID = PrimitiveType("long"), PrimitiveType("boolean"), PrimitiveType("void")
_TIGHT = FileStatistic("tightBounds", (), _BOOLEAN)

#: One action as the log has it: its kind and its decoded JSON value.
Action = tuple[str, Mapping[str, Any]]


class CheckpointColumns(Struct, frozen=True):
    """Which columns a table's checkpoints have.

    Parameters
    ----------
    json : bool
        Whether adds keep ``stats``, the JSON text.
    leaves : tuple of FileStatistic
        The statistics of ``stats_parsed``; empty: adds have none.
    partitions : tuple of Field
        The fields of ``partitionValues_parsed``, by physical name; empty: adds have none.
    fields : tuple of ActionField
        The fields that features add to ``add`` and ``remove``.
    kinds : tuple of ActionKind
        Further kinds of action.
    """

    json: bool
    leaves: tuple[FileStatistic, ...]
    partitions: tuple[Field, ...]
    fields: tuple[ActionField, ...] = ()
    kinds: tuple[ActionKind, ...] = ()

    @staticmethod
    def of(
        table: TableState, fields: Sequence[ActionField], kinds: Iterable[ActionKind], struct: bool = True
    ) -> CheckpointColumns:
        """Return the columns that a table's properties request.

        ``delta.checkpoint.writeStatsAsJson`` and ``delta.checkpoint.writeStatsAsStruct`` are both on if the table
        does not specify, as Delta on Spark has it: readers skip row groups by the struct. If both are off the text is
        kept: statistics that no checkpoint has are lost. ``struct`` False, for JSON checkpoints, keeps the text alone.

        Parameters
        ----------
        table : TableState
            The version's definition.
        fields : sequence of ActionField
            The fields that features add to file actions.
        kinds : iterable of ActionKind
            The kinds of action that features add.
        struct : bool
            Whether the table's properties decide if statistics are written as structs; False writes none.
        """
        struct = struct and table.flag("delta.checkpoint.writeStatsAsStruct", True)
        json = not struct or table.flag("delta.checkpoint.writeStatsAsJson", True)
        partitions = _partition_fields(table)
        leaves = tuple(_statistics(table)) if struct else ()
        return CheckpointColumns(json, leaves, partitions if struct else (), tuple(fields), tuple(kinds))

    @property
    def add(self) -> pa.DataType:
        """The struct of ``add``."""
        own = [f for f in _fields(ADD) if f.name != "stats" or self.json]
        if self.leaves:
            own.append(pa.field("stats_parsed", self.statistics))
        if self.partitions:
            parsed = pa.struct([pa.field(f.name, f.type.to_arrow()) for f in self.partitions])
            own.append(pa.field("partitionValues_parsed", parsed))
        return pa.struct([*own, *(pa.field(f.name, f.type) for f in self.fields if f.action == "add")])

    @property
    def remove(self) -> pa.DataType:
        """The struct of ``remove``: a tombstone has neither statistics nor tags."""
        return pa.struct([*_fields(REMOVE), *(pa.field(f.name, f.type) for f in self.fields if f.action == "remove")])

    @property
    def statistics(self) -> pa.DataType:
        """The struct of ``stats_parsed``."""
        return _nested({statistic_path(leaf): _arrow(leaf) for leaf in self.leaves})

    def schema(self, v2: bool) -> pa.Schema:
        """Return the schema of a checkpoint's own file.

        Parameters
        ----------
        v2 : bool
            Whether the checkpoint has the columns of version 2: ``checkpointMetadata`` and ``sidecar``.
        """
        kinds = [*_OWN, *((CHECKPOINT_METADATA, SIDECAR) if v2 else ()), *self.kinds]
        return pa.schema([("add", self.add), ("remove", self.remove), *((k.name, _kind_type(k)) for k in kinds)])

    @property
    def sidecar_schema(self) -> pa.Schema:
        """The schema of a sidecar."""
        return pa.schema([("add", self.add), ("remove", self.remove)])


def _fields(kind: ActionKind) -> list[pa.Field]:
    assert kind.type is not None
    return list(kind.type)


def _kind_type(kind: ActionKind) -> pa.DataType:
    if kind.type is None:
        raise HookContractError(
            f"Action kind {kind.name!r} belongs into checkpoints, but its feature states no type.", action=kind.name
        )
    return kind.type


def _arrow(leaf: FileStatistic) -> pa.DataType:
    return leaf.type.to_arrow()


def _partition_fields(table: TableState) -> tuple[Field, ...]:
    """Return the partition columns by physical name, in the order of the table's partitioning."""
    by_name = {f.name: p for f, p in zip(table.schema.members, table.column_map.physical.members, strict=True)}
    return tuple(f for name in table.partition_columns if (f := by_name[name]).type != _VOID)


def _statistics(table: TableState) -> Iterator[FileStatistic]:
    leaves = list(statistics_leaves(table))
    yield NUM_RECORDS
    for kind in ("min", "max"):
        for path, found in leaves:
            if isinstance(found, PrimitiveType) and (found.type in _BOUNDED or found.type.startswith("decimal")):
                yield FileStatistic(kind, path, found)
    yield from (FileStatistic("nullCount", path, _LONG) for path, _ in leaves)
    yield _TIGHT


def _nested(leaves: Mapping[Path, pa.DataType]) -> pa.DataType:
    tops: dict[str, dict[Path, pa.DataType]] = {}
    for path, kind in leaves.items():
        tops.setdefault(path[0], {})[path[1:]] = kind
    return pa.struct([pa.field(n, inner[()] if () in inner else _nested(inner)) for n, inner in tops.items()])


# --- rows ----------------------------------------------------------------------------------


def rows_table(actions: Sequence[Action], schema: pa.Schema) -> pa.Table:
    """Return actions as rows of a checkpoint, one column of each row filled.

    Parameters
    ----------
    actions : sequence of Action
        The actions, one a row.
    schema : pyarrow.Schema
        A column for each kind.
    """
    kinds = {kind for kind, _ in actions}
    columns = [
        array_of([_as_arrow(value, f.type) if kind == f.name else None for kind, value in actions], f.type)
        if f.name in kinds
        # as a value at a time these take longer than the actions, since file actions have many fields
        else pa.nulls(len(actions), f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _as_arrow(value: Any, kind: pa.DataType) -> Any:
    """Return a decoded JSON value with its maps as pyarrow takes them."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(k, _as_arrow(v, kind.item_type)) for k, v in pairs]
    if pa.types.is_struct(kind):
        return {f.name: _as_arrow(value.get(f.name), f.type) for f in kind}
    if pa.types.is_list(kind):
        return [_as_arrow(v, kind.value_type) for v in value]
    return value


def format_action(action: Action) -> str:
    """Return an action as a line of JSON.

    Parameters
    ----------
    action : Action
        The kind and its value.
    """
    kind, value = action
    return json.dumps({kind: value}, separators=(",", ":"), ensure_ascii=False) + "\n"


def json_value(value: Any, kind: pa.DataType | None) -> Any:
    """Return a value as JSON has it: maps, which Arrow hands out as pairs, as objects; null fields left out.

    Parameters
    ----------
    value : object
        A Python value, as Arrow returns it.
    kind : pyarrow.DataType, optional
        Its Arrow type, which distinguishes maps from lists of structs.
    """
    if value is None or kind is None:
        return value
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return {k: json_value(v, kind.item_type) for k, v in pairs}
    if pa.types.is_struct(kind):
        own = {f.name: f.type for f in kind}
        return {k: json_value(v, own.get(k)) for k, v in value.items() if v is not None}
    if pa.types.is_list(kind):
        return [json_value(v, kind.value_type) for v in value]
    return value
