"""Checkpoint files through pyarrow's Parquet: row groups as they come, the file whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import ParquetForm
from delta_core.engines.writer_properties import default_level
from delta_core.errors import EngineError
from delta_core.kernels.memory import POOL_OF_BATCHES

__all__ = ["write_lines", "write_parquet"]

#: Values that PyArrow encodes at a time: with its 1,024, columns of nulls take a tenth longer.
_BATCH_VALUES = 4096
_CODECS = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}


def write_parquet(
    storage: Storage, path: str, schema: pa.Schema, groups: Iterable[pa.Table], form: ParquetForm, replace: bool = True
) -> int:
    """Write a file of one row group per table; return its size in bytes.

    Raises
    ------
    EngineError
        If the file can't be written.
    """
    # not `pyarrow.parquet`, which loads every file system that PyArrow has
    from pyarrow._parquet import ParquetWriter

    codec = _CODECS[form.codec.lower()]
    with storage.put_stream(path, replace=replace) as target:
        try:
            writer: Any = ParquetWriter(
                target,
                schema,
                writer_engine_version="V2",
                compression=codec,
                compression_level=default_level(codec),
                store_schema=False,
                version="2.6" if form.version.startswith("2") else "1.0",
                use_dictionary=_dictionary(schema, form),
                write_batch_size=_BATCH_VALUES,
                memory_pool=POOL_OF_BATCHES,
            )
            for group in groups:
                writer.write_table(group, row_group_size=max(group.num_rows, 1))
            writer.close()
        except pa.ArrowException as e:
            raise EngineError(f"Checkpoint file {path} can't be written: {e}.", path=path) from e
        return target.tell()


def write_lines(storage: Storage, path: str, pieces: Iterable[bytes]) -> int:
    """Write a file from pieces of its text; return its size in bytes."""
    with storage.put_stream(path) as target:
        for piece in pieces:
            target.write(piece)
        return target.tell()


def _dictionary(schema: pa.Schema, form: ParquetForm) -> Any:
    """Return the Parquet columns that are worth a dictionary: trying the others costs more than writing them."""
    return [leaf for path in form.dictionary for leaf in _leaves(schema, path)]


def _leaves(schema: pa.Schema, path: tuple[str, ...]) -> list[str]:
    name = ".".join(path)
    found: Any = schema.field(path[0]).type if schema.get_field_index(path[0]) >= 0 else None
    for part in path[1:]:
        if found is None or found.get_field_index(part) < 0:
            return []
        found = found.field(found.get_field_index(part)).type
    if found is not None and pa.types.is_map(found):
        return [f"{name}.key_value.key", f"{name}.key_value.value"]
    return [] if found is None else [name]
