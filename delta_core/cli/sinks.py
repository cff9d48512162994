"""Streams of record batches to CSV, JSON lines, Parquet or Arrow IPC, in a file or on stdout."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from delta_core.cli.output import is_json, plain, row_dicts, values
from delta_core.errors import InvalidArgumentError, UnsupportedOperationError
from delta_core.kernels import compute as pc

__all__ = ["FORMATS", "STDOUT", "export", "format_of"]

FORMATS = ("csv", "json", "parquet", "arrow")
_SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
#: The first and last microsecond of the years -32767 to 32767.
_LEAST_US, _GREATEST_US = -1_096_193_779_200_000_000, 971_890_963_199_999_999
_DAY_US = 86_400_000_000


class Sink(Protocol):
    """The writer of a format."""

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        ...

    def close(self) -> None:
        """Finish; the stream below stays open."""
        ...


#: The name of standard output, as `--output` takes it.
STDOUT = "-"


def format_of(output: str | None, given: str | None, default: str) -> str:
    """Return the format that an option names, else the one of the file's ending, else the default.

    Raises
    ------
    InvalidArgumentError
        If the file's ending specifies no format.
    """
    if given is not None:
        return given
    if output in (None, STDOUT):
        return default
    suffix = Path(output).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InvalidArgumentError(
            f"The ending of {output!r} specifies no format; expected one of {', '.join(_SUFFIXES)}, or --format.",
            path=output,
        )
    return _SUFFIXES[suffix]


def export(reader: pa.RecordBatchReader, kind: str, output: str | None, progress: Any = None) -> int:
    """Write a stream and return its rows; a file appears under its name only when it is complete."""
    rows = 0
    with _target(output) as target:
        stream = _Stream(target)
        sink = _open(kind, stream, reader.schema, seekable=output not in (None, STDOUT))
        try:
            for batch in reader:
                sink.write_batch(batch)
                rows += batch.num_rows
                if progress is not None:
                    progress(batch.num_rows)
        except BaseException:
            stream.shut()
            with suppress(Exception):
                sink.close()
            raise
        sink.close()
    return rows


class _Stream(io.RawIOBase):
    """Passes bytes on until it is shut: a writer that ends early must not finish what then looks whole."""

    def __init__(self, target: BinaryIO) -> None:
        self._target: BinaryIO | None = target

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data) if self._target is None else self._target.write(data)

    def shut(self) -> None:
        self._target = None


@contextmanager
def _target(output: str | None) -> Iterator[BinaryIO]:
    if output in (None, STDOUT):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    final = Path(output)
    try:
        import tempfile

        handle, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.name}.")
    except OSError as e:
        reason = f"{e.strerror}: {str(final.parent)!r}"
        raise InvalidArgumentError(f"{output!r} can't be written: {reason}.", path=output) from e
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(final)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _open(kind: str, stream: io.RawIOBase, schema: pa.Schema, seekable: bool) -> Sink:
    if kind == "csv":
        return _Csv(stream, schema)
    if kind == "json":
        return _Json(stream)
    if kind == "parquet":
        return _Parquet(stream, schema)
    return _Ipc(stream, schema, seekable)


class _Json:
    """One JSON object a line."""

    def __init__(self, stream: io.RawIOBase) -> None:
        self._stream = stream

    def write_batch(self, batch: pa.RecordBatch) -> None:
        lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in row_dicts(batch))
        text = "\n".join(lines)
        if text:
            self._stream.write(text.encode() + b"\n")

    def close(self) -> None:
        pass


class _Csv:
    """A header, then rows; what is nested becomes JSON text, bytes base64, null an empty unquoted field."""

    def __init__(self, stream: io.RawIOBase, schema: pa.Schema) -> None:
        import pyarrow.csv

        self._schema = pa.schema([pa.field(f.name, _flat(f.type)) for f in schema])
        self._writer = pyarrow.csv.CSVWriter(pa.PythonFile(stream, "w"), self._schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [_flatten(c, f.name) for c, f in zip(batch.columns, batch.schema, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _flat(kind: pa.DataType) -> pa.DataType:
    if is_json(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind):
        return pa.string()
    return kind


def _flatten(column: pa.Array, name: str) -> pa.Array:
    if pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type):
        _check_year(column, name)
    if _flat(column.type) == column.type:
        return column
    if is_json(column.type):
        return column.storage
    if pa.types.is_null(column.type):
        return pc.cast(column, pa.string())
    plain_values = (plain(v) for v in values(column))
    texts = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in plain_values]
    return pa.array(texts, pa.string())


def _check_year(column: pa.Array, name: str) -> None:
    """Reject times whose year the text would get wrong: it has 16 bits."""
    is_date = pa.types.is_date32(column.type)
    found = pc.min_max(pc.cast(column, pa.int32() if is_date else pa.int64()))
    low, high = found["min"].as_py(), found["max"].as_py()
    unit = _DAY_US if is_date else 1
    if low is not None and not (low * unit >= _LEAST_US and high * unit <= _GREATEST_US):
        raise UnsupportedOperationError(
            f"Column {name} holds a time whose year CSV cannot represent; use another --format, or leave it out by "
            "--columns.",
            column=name,
        )


class _Parquet:
    """Zstandard-compressed Parquet; row groups gather small batches."""

    def __init__(self, stream: io.RawIOBase, schema: pa.Schema) -> None:
        import pyarrow.parquet

        self._schema = pa.schema([pa.field(f.name, f.type, f.nullable) for f in schema])
        self._writer = pyarrow.parquet.ParquetWriter(pa.PythonFile(stream, "w"), self._schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= 1 << 20:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting).cast(self._schema))
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()


class _Ipc:
    """Arrow IPC: the stream format on stdout, the file format (Feather 2) in files."""

    def __init__(self, stream: io.RawIOBase, schema: pa.Schema, seekable: bool) -> None:
        make = pa.ipc.new_file if seekable else pa.ipc.new_stream
        self._writer = make(pa.PythonFile(stream, "w"), schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()
