"""Variants as JSON, for text output: rows otherwise have them as two binary values."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from delta_core.kernels.nested import rebuild_list, rebuild_map, rebuild_struct
from delta_core.kernels.variant import to_json
from delta_core.protocol.types import ArrayType, DataType, MapType, PrimitiveType, StructType

__all__ = ["variants_as_json"]

_VARIANT = PrimitiveType("variant")


def variants_as_json(reader: pa.RecordBatchReader, schema: StructType) -> pa.RecordBatchReader:
    """Return a stream with Arrow's JSON type instead of variants, at any depth; ``schema`` is the table's."""
    fields = [schema.get(f.name) for f in reader.schema]
    types = [f.type if f is not None and _has_variant(f.type) else None for f in fields]
    if not any(types):
        return reader

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [c if t is None else _convert(c, t) for c, t in zip(batch.columns, types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield convert(batch)

    empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in reader.schema], schema=reader.schema)
    return pa.RecordBatchReader.from_batches(convert(empty).schema, batches())


def _has_variant(t: DataType) -> bool:
    if isinstance(t, StructType):
        return any(_has_variant(f.type) for f in t.fields)
    if isinstance(t, ArrayType):
        return _has_variant(t.element_type)
    return _has_variant(t.value_type) if isinstance(t, MapType) else t == _VARIANT


def _convert(array: pa.Array, t: DataType) -> pa.Array:
    if t == _VARIANT:
        return pa.ExtensionArray.from_storage(pa.json_(), to_json(array))
    if not _has_variant(t):
        return array
    if isinstance(t, StructType):
        names = [f.name for f in array.type]  # some of the table's, if a part was requested
        known = {f.name: f.type for f in t.fields}
        return rebuild_struct(array, names, [_convert(array.field(i), known[n]) for i, n in enumerate(names)])
    if isinstance(t, ArrayType):
        return rebuild_list(array, _convert(array.values, t.element_type))
    assert isinstance(t, MapType)
    return rebuild_map(array, array.keys, _convert(array.items, t.value_type))
