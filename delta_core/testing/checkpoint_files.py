"""A table's reconciled actions to checkpoint files of every kind, and the hint that names them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.kernel.protocol.actions import ADD, DOMAIN_METADATA, METADATA, PROTOCOL, REMOVE, TXN
from delta_core.schema.fields import Schema
from delta_core.testing.statistics import partition_struct, statistics_struct, typed_statistics

__all__ = ["CheckpointKind", "StatisticsForm", "checkpoint_rows", "hint_checksum", "json_bytes", "parquet_bytes_of"]

CheckpointKind = Literal["v1", "v1-multipart", "v2-json", "v2-parquet", "v2-classic"]
StatisticsForm = Literal["json", "struct", "both", "none"]

_STRING_MAP = pa.map_(pa.string(), pa.string())
#: Column of a checkpoint to its struct. Protocol: Checkpoint Schema, from the definitions of the actions.
COLUMNS: Mapping[str, pa.DataType] = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _STRING_MAP)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _STRING_MAP)]
    ),
    **{
        kind.name: kind.type
        for kind in (TXN, ADD, REMOVE, METADATA, PROTOCOL, DOMAIN_METADATA)
        if kind.type is not None
    },
}
_DROPPED = {"remove": ("stats", "tags")}


def checkpoint_rows(actions: Sequence[Mapping[str, Any]], schema: Schema, form: StatisticsForm) -> list[dict[str, Any]]:
    """Return actions as checkpoints keep them: statistics in the requested form, no data change, less of removes.

    Protocol: Checkpoints, Action Reconciliation.
    """
    return [_checkpointed(*next(iter(action.items())), schema, form) for action in actions]


def _checkpointed(kind: str, value: Mapping[str, Any], schema: Schema, form: StatisticsForm) -> dict[str, Any]:
    out = {k: v for k, v in value.items() if k not in _DROPPED.get(kind, ())}
    if kind in ("add", "remove"):
        out["dataChange"] = False
    if kind == "add":
        if form in ("struct", "both"):
            out["stats_parsed"] = typed_statistics(value.get("stats"), schema)
        if form in ("struct", "none"):
            out.pop("stats", None)
    return {kind: out}


def _add_type(schema: Schema, partition: tuple[str, ...], form: StatisticsForm) -> pa.DataType:
    """Return the struct of ``add``, with parsed statistics and partition values beside the texts."""
    fields = [f for f in COLUMNS["add"] if f.name != "stats" or form in ("json", "both")]
    if form in ("struct", "both"):
        fields.append(pa.field("stats_parsed", statistics_struct(schema, partition)))
        parsed = partition_struct(schema, partition)
        if parsed is not None:
            fields.append(pa.field("partitionValues_parsed", parsed))
    return pa.struct(fields)


def parquet_bytes_of(
    rows: Sequence[Mapping[str, Any]],
    schema: Schema,
    partition: tuple[str, ...],
    form: StatisticsForm,
    extra: Mapping[str, pa.DataType],
    values: Mapping[str, Mapping[str, Any]],
    **options: Any,
) -> bytes:
    """Return a Parquet checkpoint file or sidecar with a column for each kind of action in ``rows``.

    Parameters
    ----------
    rows : sequence of Mapping
        The actions as JSON has them: each the kind and its fields.
    schema : Schema
        The table's schema.
    partition : tuple of str
        The partition columns' logical names.
    form : str
        The form of statistics, as of `TableBuilder.checkpoint`.
    extra : Mapping
        Further kinds of action, or other structs for known ones.
    values : Mapping
        Path of a file to its typed partition values by physical name.
    **options
        As of `pyarrow.parquet.write_table`.
    """
    types = {**COLUMNS, "add": _add_type(schema, partition, form), **extra}
    present = {kind for row in rows for kind in row}
    columns = {k: t for k, t in types.items() if k in present or k in ("add", "remove", *extra)}
    arrays = [pa.array([_arrow_value(row.get(k), k, values) for row in rows], t) for k, t in columns.items()]
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays, names=list(columns)), sink, **options)
    return sink.getvalue()


def _arrow_value(value: Any, kind: str, values: Mapping[str, Mapping[str, Any]]) -> Any:
    if value is None:
        return None
    out = {
        k: list(v.items()) if k in ("partitionValues", "tags", "configuration") and isinstance(v, dict) else v
        for k, v in value.items()
    }
    if kind == "add":
        out["partitionValues_parsed"] = values.get(value["path"])
    if kind == "metaData":
        form = value["format"]
        out["format"] = {"provider": form["provider"], "options": list(form.get("options", {}).items())}
    return out


def json_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a JSON checkpoint: an action a line."""
    return "".join(json.dumps(row, default=str) + "\n" for row in rows).encode()


# --- the hint ------------------------------------------------------------------------------


def hint_checksum(value: Mapping[str, Any]) -> str:
    """Return the checksum of a ``_last_checkpoint``. Protocol: JSON checksum."""
    pairs = sorted(_pairs({k: v for k, v in value.items() if k != "checksum"}, []))
    return hashlib.md5(",".join(f"{path}={leaf}" for path, leaf in pairs).encode(), usedforsecurity=False).hexdigest()


def _pairs(value: Any, path: list[str]) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [pair for k, v in value.items() for pair in _pairs(v, [*path, _quoted(k)])]
    if isinstance(value, (list, tuple)):
        return [pair for i, v in enumerate(value) for pair in _pairs(v, [*path, str(i)])]
    return [("+".join(path), _quoted(value) if isinstance(value, str) else json.dumps(value))]


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'
