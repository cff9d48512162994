"""Rows from files or standard input as a stream of record batches: Parquet, CSV, JSON lines, Arrow IPC."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from delta_core.cli.sinks import format_of
from delta_core.errors import InvalidArgumentError, SchemaMismatchError

__all__ = ["open_rows", "read_schema"]

STDIN = "-"


def open_rows(
    sources: Sequence[str], kind: str | None, columns: pa.Schema | None = None
) -> pa.RecordBatchReader:
    """Return the rows of files, one after the other; ``-`` is standard input.

    Parameters
    ----------
    kind : str, optional
        The format of every source; otherwise the ending of its name says it, and standard input is Arrow.
    columns : pyarrow.Schema, optional
        The table's columns: CSV and JSON, which say no types, are read as these.
    """
    readers = (
        _open(s, kind or (format_of(s, None, "arrow") if s != STDIN else "arrow"), columns) for s in sources
    )
    first = next(readers, None)
    if first is None:
        raise InvalidArgumentError("Name at least one file to read, or - for standard input.")
    schema = first.schema

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first
        for source, reader in zip(sources[1:], readers, strict=False):
            if reader.schema.names != schema.names:
                raise SchemaMismatchError(
                    f"{source} has the columns {reader.schema.names}, expected {schema.names} as in {sources[0]}."
                )
            for batch in reader:
                yield batch.cast(schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _open(source: str, kind: str, columns: pa.Schema | None) -> Any:
    stream: BinaryIO | Path = sys.stdin.buffer if source == STDIN else Path(source)
    try:
        return _READERS[kind](stream, columns)
    except FileNotFoundError as e:
        raise InvalidArgumentError(f"There is no file {source!r}.", path=source) from e
    except (pa.ArrowException, OSError) as e:
        raise InvalidArgumentError(f"{source!r} can't be read as {kind}: {e}.", path=source) from e


def _parquet(stream: BinaryIO | Path, columns: pa.Schema | None) -> pa.RecordBatchReader:
    import pyarrow.parquet as pq

    # a Parquet file is read from its end
    whole = stream if isinstance(stream, Path) else pa.BufferReader(stream.read())
    file = pq.ParquetFile(whole)
    return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())


def _csv(stream: BinaryIO | Path, columns: pa.Schema | None) -> Any:
    from pyarrow import csv

    types = None if columns is None else {f.name: f.type for f in columns}
    convert = csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return csv.open_csv(stream, convert_options=convert)


def _json(stream: BinaryIO | Path, columns: pa.Schema | None) -> Any:
    from pyarrow import json

    options = json.ParseOptions(explicit_schema=columns) if columns is not None else None
    return json.open_json(stream, parse_options=options)


def _arrow(stream: BinaryIO | Path, columns: pa.Schema | None) -> Any:
    source: Any = stream.open("rb") if isinstance(stream, Path) else stream
    head = source.read(6)
    if head == b"ARROW1":
        rest = head + source.read()
        file = pa.ipc.open_file(pa.BufferReader(rest))
        return pa.RecordBatchReader.from_batches(
            file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        )
    return pa.ipc.open_stream(io.BufferedReader(_Joined(head, source)))


class _Joined(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(data) :] if self._head else b""
        buffer[: len(data)] = data
        return len(data)


_READERS = {"parquet": _parquet, "csv": _csv, "json": _json, "arrow": _arrow}


def read_schema(path: str) -> pa.Schema | str:
    """Return the schema of a data file, or the text of a ``.json`` file that holds a Delta schema."""
    if path.lower().endswith(".json"):
        text = Path(path).read_text(encoding="utf-8")
        if '"fields"' in text:
            return text
    reader = _open(path, format_of(path, None, "parquet"), None)
    schema: pa.Schema = reader.schema
    return schema
