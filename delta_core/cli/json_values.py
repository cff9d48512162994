"""Values as JSON, for people and text formats, as their type's plugin writes them (a variant is two binary values)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from delta_core.kernels.nested import rebuild_list, rebuild_map, rebuild_struct
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType, TypeDef

__all__ = ["values_as_json"]

_ToJson = Callable[[pa.Array], pa.Array]


def values_as_json(
    reader: pa.RecordBatchReader, schema: StructType, types: Mapping[str, TypeDef]
) -> pa.RecordBatchReader:
    """Return a stream with Arrow's JSON type instead of types that have `TypeDef.to_json`, at any depth.

    Parameters
    ----------
    reader : pyarrow.RecordBatchReader
        The rows; the result reads from it.
    schema : StructType
        The columns as the table has them.
    types : Mapping
        The primitive types of the table, by name.
    """
    texts = {name: t.to_json for name, t in types.items() if t.to_json is not None}
    fields = [schema.get(f.name) for f in reader.schema]
    found = [f.type if f is not None and _has_text(f.type, texts) else None for f in fields]
    if not any(found):
        return reader

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [c if t is None else _convert(c, t, texts) for c, t in zip(batch.columns, found, strict=True)]
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield convert(batch)

    empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in reader.schema], schema=reader.schema)
    return pa.RecordBatchReader.from_batches(convert(empty).schema, batches())


def _has_text(t: DataType, texts: Mapping[str, _ToJson]) -> bool:
    if isinstance(t, StructType):
        return any(_has_text(f.type, texts) for f in t.members)
    if isinstance(t, ArrayType):
        return _has_text(t.element_type, texts)
    if isinstance(t, MapType):
        return _has_text(t.value_type, texts)
    return isinstance(t, PrimitiveType) and t.type in texts


def _convert(array: pa.Array, t: DataType, texts: Mapping[str, _ToJson]) -> pa.Array:
    if not _has_text(t, texts):
        return array
    if isinstance(t, PrimitiveType):
        return pa.ExtensionArray.from_storage(pa.json_(), texts[t.type](array))
    if isinstance(t, StructType):
        names = [f.name for f in array.type]  # some of the table's, if a part was requested
        known = {f.name: f.type for f in t.members}
        return rebuild_struct(array, names, [_convert(array.field(i), known[n], texts) for i, n in enumerate(names)])
    if isinstance(t, ArrayType):
        return rebuild_list(array, _convert(array.values, t.element_type, texts))
    assert isinstance(t, MapType)
    return rebuild_map(array, array.keys, _convert(array.items, t.value_type, texts))
