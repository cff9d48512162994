"""The source of a merge: in memory up to a limit, else in a temporary file that is mapped into memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import pyarrow as pa

from delta_core.errors import SchemaError, SchemaMismatchError, SpillLimitError
from delta_core.kernel.write.convert import Convert, conversion
from delta_core.kernel.write.layout import arrow_type
from delta_core.kernels.memory import memory_of_process
from delta_core.operations.temporary import temporary_files
from delta_core.schema.fields import Schema, walk
from delta_core.schema.logical import ArrowType, open_type
from delta_core.schema.types import KNOWN_TYPES, CustomType, DataType, Field, StructType, TypeDef, arrow_to_type

__all__ = ["load_source", "source_schema", "source_types", "usable_columns"]

#: The part of the machine's memory that a source may take.
_MEMORY_SHARE = 4
#: Rows of a batch of the temporary file.
_BATCH_ROWS = 131_072


def usable_columns(
    source: pa.Table | pa.RecordBatchReader, table: StructType, is_evolving: bool
) -> tuple[pa.Table | pa.RecordBatchReader, dict[str, str]]:
    """Return a source without the columns that a merge ignores anyway and that no Delta type stores.

    These are columns that the table lacks and does not get. They are returned by name, each with the reason.
    """
    unusable: dict[str, str] = {}
    for f in source.schema if not is_evolving else ():
        if table.get(f.name) is None:
            try:
                arrow_to_type(f.type)
            except SchemaError as e:
                unusable[f.name] = e.message
    names = [n for n in source.schema.names if n not in unusable]
    if not unusable:
        return source, unusable
    if isinstance(source, pa.Table):
        return source.select(names), unusable
    batches = (batch.select(names) for batch in source)
    return pa.RecordBatchReader.from_batches(pa.schema([source.schema.field(n) for n in names]), batches), unusable


def source_schema(source: pa.Schema, table: StructType) -> Schema:
    """Return the columns of a source; one of a type that Delta lacks has that of the table's column, or its own.

    Parameters
    ----------
    source : pyarrow.Schema
        Of the rows as the user passed them.
    table : StructType
        The columns of the table.

    Raises
    ------
    SchemaError
        For a type that is nested too deep.
    """
    return Schema([_source_field(f, table.get(f.name)) for f in source])


def _source_field(f: pa.Field, own: Field | None) -> Field:
    if own is None or not _has_part(own.type, CustomType):
        return Field.from_arrow(f)
    if f.type.equals(own.to_arrow().type, check_metadata=False) and _has_part(open_type(f.type), ArrowType):
        return Field(f.name, own.type, f.nullable)
    try:
        return Field.from_arrow(f)
    except SchemaError:
        return Field(f.name, open_type(f.type), f.nullable)


def _has_part(t: DataType, kind: type) -> bool:
    return isinstance(t, kind) or any(isinstance(part.type, kind) for _, part in walk(t))


@contextmanager
def load_source(
    source: pa.Table | pa.RecordBatchReader,
    rows: Schema,
    types: Mapping[str, TypeDef],
    max_memory: int | None = None,
    max_temporary: int | None = None,
) -> Iterator[pa.Table]:
    """Return the rows of a source, which is read once, as a table in the Arrow types that expressions are evaluated on.

    Parameters
    ----------
    source : pyarrow.Table or pyarrow.RecordBatchReader
        The rows as the user passed them.
    rows : Schema
        The columns of the source.
    types : Mapping of str to TypeDef
        The meaning of the primitive types' names.
    max_memory : int, optional
        Bytes of a stream that are held in memory, by default a quarter of the machine's; a longer one is written to a
        temporary file, which exists as long as the context. A table is in memory already.
    max_temporary : int, optional
        Bytes that the temporary file may take.

    Raises
    ------
    SchemaMismatchError
        Two columns have the same name.
    SpillLimitError
        The temporary file would be larger than allowed.
    SpillError
        It can't be written, as on a full disk.
    """
    lower = [name.lower() for name in rows.names]
    twice = next((name for name in rows.names if lower.count(name.lower()) > 1), None)
    if twice is not None:
        raise SchemaMismatchError(f"The source has two columns {twice!r} (case does not count).", column=twice)
    schema = pa.schema([pa.field(f.name, arrow_type(f.type, types)) for f in rows])
    changes = [
        conversion(found, wanted, (name,))
        for found, wanted, name in zip(source.schema.types, schema.types, schema.names, strict=True)
    ]
    if isinstance(source, pa.Table):
        yield pa.Table.from_batches(_converted(source.to_batches, changes, schema), schema).combine_chunks()
        return
    limit = _default_memory() if max_memory is None else max_memory
    stream = _converted(lambda: source, changes, schema)
    kept, size = list[pa.RecordBatch](), 0
    for batch in stream:
        kept.append(batch)
        size += batch.nbytes
        if size > limit:
            break
    else:
        yield pa.Table.from_batches(kept, schema).combine_chunks()
        return
    with temporary_files():
        directory = tempfile.TemporaryDirectory(prefix="delta_core-merge-")
    with directory:
        path = Path(directory.name) / "source.arrow"
        _write(path, chain(_taken(kept), stream), schema, max_temporary)
        with pa.memory_map(str(path)) as mapped:
            yield pa.ipc.open_file(mapped).read_all()


def source_types(types: Mapping[str, TypeDef]) -> dict[str, TypeDef]:
    """Return what the type names of a source mean, beside those of the table: its columns may have others."""
    return {**KNOWN_TYPES, **types}


def _taken(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while batches:
        yield batches.pop(0)


def _write(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema, max_bytes: int | None) -> None:
    with temporary_files():
        sink = pa.OSFile(str(path), "wb")
    try:
        with temporary_files():
            writer = pa.ipc.new_file(sink, schema)
        for batch in batches:
            # the error of a source is none of a temporary file
            with temporary_files():
                writer.write_batch(batch)
            if max_bytes is not None and sink.tell() > max_bytes:
                raise SpillLimitError(
                    f"The source takes more than {max_bytes} bytes in temporary files, which is the limit that "
                    "max_temp_directory_size sets. Raise it, or pass a source with fewer rows.",
                    limit=max_bytes,
                )
        with temporary_files():
            writer.close()
            sink.close()
    finally:
        with suppress(OSError):
            sink.close()


def _converted(
    batches: Callable[[], Iterator[pa.RecordBatch]], changes: list[Convert | None], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for whole in batches():
        for start in range(0, whole.num_rows, _BATCH_ROWS):
            batch = whole.slice(start, _BATCH_ROWS)
            columns = [c if change is None else change(c) for c, change in zip(batch.columns, changes, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _default_memory() -> int:
    return memory_of_process() // _MEMORY_SHARE
