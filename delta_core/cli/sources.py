"""Rows from files or standard input as a stream of record batches: Parquet, CSV, JSON lines, Arrow IPC."""

from __future__ import annotations

import base64
import binascii
import io
import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from delta_core.cli.sinks import format_of
from delta_core.errors import InvalidArgumentError, SchemaMismatchError
from delta_core.kernels import compute as pc
from delta_core.kernels.decimals import read_decimals

__all__ = ["open_rows", "read_schema"]

STDIN = "-"
#: The bytes that are read to find which columns JSON lines have.
_HEAD = 1 << 20


def open_rows(
    sources: Sequence[str], kind: str | None, columns: pa.Schema | None = None, filled: Collection[str] = ()
) -> pa.RecordBatchReader:
    """Return the rows of files, one after the other; ``-`` is standard input.

    Parameters
    ----------
    sources : sequence of str
        Paths of files, ``-`` for standard input; all must have the columns of the first.
    kind : str, optional
        The format of every source; otherwise the ending of its name specifies it, and standard input is Arrow.
    columns : pyarrow.Schema, optional
        The table's columns: CSV and JSON, which specify no types, are read as these.
    filled : collection of str
        Those that the table fills if rows lack them: they are not passed as nulls.

    Raises
    ------
    InvalidArgumentError
        For a source that can't be read, also while it is read.
    """

    def opened(source: str) -> _Rows:
        of = kind or (format_of(source, None, "arrow") if source != STDIN else "arrow")
        return _Rows(source, of, columns, filled)

    readers = (opened(s) for s in sources)
    first = next(readers, None)
    if first is None:
        raise InvalidArgumentError("Name at least one file to read, or - for standard input.")
    schema = first.schema

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first
        for source, reader in zip(sources[1:], readers, strict=False):
            if reader.schema.names != schema.names:
                reader.close()
                raise SchemaMismatchError(
                    f"{source} has the columns {reader.schema.names}, expected {schema.names} as in {sources[0]}."
                )
            for batch in reader:
                yield batch.cast(schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


class _Rows:
    """A source's schema and batches; what goes wrong later is reported as what goes wrong at once."""

    def __init__(self, source: str, kind: str, columns: pa.Schema | None, filled: Collection[str] = ()) -> None:
        self._source, self._kind = source, kind
        self._opened: BinaryIO | None = None
        try:
            self._reader = _READERS[kind](self._stream(), columns, filled)
        except FileNotFoundError as e:
            raise InvalidArgumentError(f"There is no file {source!r}.", path=source) from e
        except (pa.ArrowException, OSError) as e:
            self.close()
            raise self._error(e) from e
        self._as_table = _as_table(self._reader.schema, columns) if kind in ("csv", "json") else None
        self.schema: pa.Schema = self._reader.schema if self._as_table is None else self._as_table[0]

    def _stream(self) -> Any:
        """Return what the format's reader takes; Parquet and CSV open their files themselves."""
        if self._source == STDIN:
            return sys.stdin.buffer
        if self._kind in ("parquet", "csv"):
            return Path(self._source)
        self._opened = Path(self._source).open("rb")  # noqa: SIM115  (`close` closes it)
        return self._opened

    def close(self) -> None:
        """Close what was opened here."""
        if self._opened is not None:
            self._opened.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._reader:
                if self._as_table is None:
                    yield batch
                else:
                    schema, convert = self._as_table
                    columns = [c if f is None else f(c) for f, c in zip(convert, batch.columns, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (pa.ArrowException, OSError) as e:
            raise self._error(e) from e
        finally:
            self.close()

    def _error(self, error: Exception) -> InvalidArgumentError:
        what = "Standard input" if self._source == STDIN else repr(self._source)
        hint = " Specify its format with --format." if self._source == STDIN else ""
        return InvalidArgumentError(f"{what} can't be read as {self._kind}: {error}.{hint}", path=self._source)


# --- values that CSV and JSON hold as text -------------------------------------------------


def _as_text(t: pa.DataType) -> pa.DataType:
    """Return the type as which a column is read: text for dates and bytes, which Arrow's readers do not take as such.

    Decimals have room for more digits than tables have: in Arrow's readers what does not fit wraps around.
    """
    if pa.types.is_date(t) or pa.types.is_binary(t):
        return pa.string()
    if pa.types.is_decimal(t):
        return pa.decimal256(76, t.scale)
    if pa.types.is_struct(t):
        return pa.struct([f.with_type(_as_text(f.type)) for f in t])
    if pa.types.is_list(t):
        return pa.list_(t.value_field.with_type(_as_text(t.value_type)))
    return t


def _as_table(found: pa.Schema, columns: pa.Schema | None) -> tuple[pa.Schema, list[Callable[[Any], Any] | None]]:
    """Return the schema with the table's types if text represents them, and what makes values of the text."""
    types_by_name = {} if columns is None else {f.name.lower(): f.type for f in columns}
    types = [types_by_name.get(f.name.lower(), f.type) for f in found]
    given = [_is_text_of(f.type, t) for f, t in zip(found, types, strict=True)]
    schema = [f.with_type(t) if text else f for f, t, text in zip(found, types, given, strict=True)]
    convert = [_from_text(f.name, t) if text else None for f, t, text in zip(found, types, given, strict=True)]
    return pa.schema(schema), convert


def _is_text_of(found: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of one type were read for those of another."""
    is_text = pa.types.is_string(found) and pa.types.is_decimal(target)
    return not found.equals(target) and (is_text or found.equals(_as_text(target)))


def _from_text(name: str, t: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_decimal(t):
        return lambda column: _decimals(column, t)
    if not pa.types.is_binary(t):
        return lambda column: pc.cast(column, t)

    def decode(column: Any) -> Any:
        try:
            found = [None if text is None else base64.b64decode(text, validate=True) for text in column.to_pylist()]
        except (binascii.Error, ValueError) as e:
            raise pa.ArrowInvalid(f"column {name!r} of bytes holds no base64 ({e})") from e
        return pa.array(found, t)

    return decode


def _decimals(column: pa.Array, t: pa.DataType) -> pa.Array:
    is_text = pa.types.is_string(column.type)
    return read_decimals(pc.utf8_trim_whitespace(column), t) if is_text else pc.cast(column, t)


# --- formats -------------------------------------------------------------------------------


def _parquet(stream: BinaryIO | Path, columns: pa.Schema | None, filled: Collection[str]) -> pa.RecordBatchReader:
    import pyarrow.parquet as pq

    # a Parquet file is read from its end
    whole = stream if isinstance(stream, Path) else pa.BufferReader(stream.read())
    file = pq.ParquetFile(whole)
    return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())


def _csv(stream: BinaryIO | Path, columns: pa.Schema | None, filled: Collection[str]) -> Any:
    from pyarrow import csv

    # dates are read as such, whatever is no base64 would be taken for bytes, and decimals that do not fit wrap around
    texts = {f.name for f in columns or () if pa.types.is_binary(f.type) or pa.types.is_decimal(f.type)}
    types = {f.name: pa.string() if f.name in texts else f.type for f in columns or ()}
    # null is the empty field alone: by default texts such as NA would be too
    convert = csv.ConvertOptions(
        column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return csv.open_csv(stream, convert_options=convert)


def _json(stream: BinaryIO, columns: pa.Schema | None, filled: Collection[str]) -> Any:
    from pyarrow import json as arrow_json

    if columns is None:
        return arrow_json.open_json(stream)
    head = _begin(stream)
    names = {key.lower(): key for line in head.splitlines() for key in _keys(line)}
    fields = [
        pa.field(names.get(f.name.lower(), f.name), _as_text(f.type))
        for f in columns
        if f.name.lower() in names or f.name not in filled
    ]
    options = arrow_json.ParseOptions(explicit_schema=pa.schema(fields))
    return arrow_json.open_json(io.BufferedReader(_Joined(head, stream)), parse_options=options)


def _begin(source: BinaryIO) -> bytes:
    """Return whole lines, or all that there is."""
    head = b""
    while b"\n" not in head:
        more = source.read(_HEAD)
        head += more
        if not more:
            break
    return head


def _keys(line: bytes) -> Sequence[str]:
    try:
        found = json.loads(line)
    except ValueError:  # cut, or broken: the parser of all of it reports it
        return ()
    return list(found) if isinstance(found, dict) else ()


def _arrow(stream: BinaryIO, columns: pa.Schema | None, filled: Collection[str]) -> Any:
    head = stream.read(6)
    if head == b"ARROW1":
        rest = head + stream.read()
        file = pa.ipc.open_file(pa.BufferReader(rest))
        return pa.RecordBatchReader.from_batches(
            file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        )
    return pa.ipc.open_stream(io.BufferedReader(_Joined(head, stream)))


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
    with closing(_Rows(path, format_of(path, None, "parquet"), None)) as rows:
        return rows.schema
