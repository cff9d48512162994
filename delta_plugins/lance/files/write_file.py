"""Data files of versions 2.0, 2.1 and 2.2, written batch after batch."""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from delta_core.api import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from delta_core.kernels.nested import struct_of
from delta_plugins.lance import _page_writer
from delta_plugins.lance.files.array_columns import array_columns, array_parts
from delta_plugins.lance.files.array_parts import check_nulls, leaf_parts, storage_of
from delta_plugins.lance.files.blob_columns import (
    BlobFiles,
    NullRows,
    PlacedBlobs,
    blob_bytes,
    blob_page,
    descriptor_field,
    descriptors,
    null_positions,
    stored_field,
    with_fields_of_blobs,
)
from delta_plugins.lance.files.container import MAGIC
from delta_plugins.lance.files.layouts import FULL_ZIP
from delta_plugins.lance.files.leaves import Leaf, leaves_of, value_layout
from delta_plugins.lance.files.page_layouts import page_layout
from delta_plugins.lance.files.write_requests import Requests, check_requests, requests_of
from delta_plugins.lance.files.written_pages import WrittenPages
from delta_plugins.lance.schema import (
    LanceField,
    arrow_field,
    blob_kind,
    fields_of_schema,
    has_blobs,
    is_packed,
    message_of,
    walk_fields,
)
from delta_plugins.lance.wire import encode

__all__ = ["PAGE_BYTES", "ByteSink", "DataFileWriter", "WrittenFile", "check_field"]

PAGE_BYTES = 8 << 20
#: Memory of rows that are not written yet: files of many columns have smaller pages.
MOST_BYTES, LEAST_PAGE = 256 << 20, 64 << 10
#: Rows that a column takes at once.
MOST_ROWS = 1 << 16
_ALIGNMENT = 64
_PADDING = b"H" * _ALIGNMENT
VERSIONS = ((2, 0), (2, 1), (2, 2))
#: Rows of the caller that are kept without a copy.
_MOST_LENT = 64 << 20


class ByteSink(Protocol):
    """The sink that a file is written to, piece after piece, such as the stream of ``Storage.put_stream``."""

    def write(self, data: Any, /) -> Any:
        """Write all bytes of an object with the buffer protocol."""


class WrittenFile(NamedTuple):
    """A complete data file, as the manifest describes it.

    Parameters
    ----------
    num_rows, size : int
        Its rows and its bytes.
    version : tuple of int
        The major and minor version, as manifests have them.
    fields, column_indices : list of int
        The fields that have a column, by their ids, and the column of each.
    """

    num_rows: int
    size: int
    version: tuple[int, int]
    fields: list[int]
    column_indices: list[int]


class DataFileWriter:
    """Writes a data file in bounded memory: at most a page of each column is collected.

    Files of the same rows in the same batches are equal byte by byte.

    Parameters
    ----------
    write_to : ByteSink
        Where the bytes go, from the first one on; the caller opens and closes it.
    schema_fields : sequence of LanceField
        The top-level fields, with the fields below them. Their metadata may request encodings
        (``lance-encoding:compression`` and others, docs/lance.md).
    version : tuple of int
        (2, 0), (2, 1) or (2, 2).
    page_bytes : int
        The bytes in memory of a page; less in files of more than 32 columns.
    metadata : Mapping of str to bytes
        That of the schema.
    blob_files : BlobFiles, optional
        The files that large blobs are written to, which are complete with this one; columns of blobs of the extension
        type need it.

    Raises
    ------
    InvalidArgumentError
        For a version that is not written, or metadata of a field that are not understood.
    UnsupportedFeatureError
        For a field that files of the version do not store.
    """

    def __init__(
        self,
        write_to: ByteSink,
        schema_fields: Sequence[LanceField],
        *,
        version: tuple[int, int] = (2, 2),
        page_bytes: int = PAGE_BYTES,
        metadata: Mapping[str, bytes] | None = None,
        blob_files: BlobFiles | None = None,
    ) -> None:
        if version not in VERSIONS:
            shown = ".".join(map(str, version))
            raise InvalidArgumentError(f"Files of version {shown} are not written; expected 2.0, 2.1 or 2.2.")
        if page_bytes < 1:
            raise InvalidArgumentError(f"page_bytes is {page_bytes}, expected 1 or more.")
        self._sink = write_to
        self._fields = tuple(schema_fields)
        self._version = version
        self._metadata = dict(metadata or {})
        self._size = 0
        self._num_rows = 0
        self._lent = 0
        self._is_array_file = version == (2, 0)
        self._columns: list[Sequence[Any]] = []
        self._blob_files = blob_files or BlobFiles(_no_blob_file)
        self._placed: dict[int, PlacedBlobs] = {}
        #: The fields with descriptors in the place of blobs, and the fields of the schema of the file.
        self._stored: list[LanceField] = []
        self._written: list[LanceField] = []
        #: Whether blobs in this file, and the structs that they are in, may be null, by the id of their field.
        self._blob_layers: dict[int, list[bool]] = {}
        for field in self._fields:
            check_field(field, version)
            self._add_blobs(field, [])
            stored = with_fields_of_blobs(field, descriptor_field)
            columns = (
                array_columns(stored) if self._is_array_file else _page_columns(stored, version, self._blob_layers)
            )
            for column in columns:
                if self._is_array_file and column.field.id in self._blob_layers:
                    column.pages = WrittenPages("/lance.encodings.ArrayEncoding", has_priority=False, is_blob=True)
            self._columns.append(columns)
            self._stored.append(stored)
            self._written.append(with_fields_of_blobs(field, _field_in_file))
        self._page_bytes = min(page_bytes, max(LEAST_PAGE, MOST_BYTES // max(sum(map(len, self._columns)), 1)))

    def _add_blobs(self, field: LanceField, above: list[bool]) -> None:
        """Note the columns of blobs in a field; ``above``: whether the structs that it is in may be null."""
        kind = blob_kind(field)
        layers = [field.nullable, *above]
        if kind == 2:
            self._placed[field.id] = PlacedBlobs(field, self._blob_files)
        elif kind == 1:
            self._blob_layers[field.id] = layers
        elif has_blobs(field):
            for child in field.children:
                self._add_blobs(child, layers)

    @property
    def num_rows(self) -> int:
        """The rows that were written, collected ones too."""
        return self._num_rows

    @property
    def size(self) -> int:
        """The bytes that were written; collected rows are not in them."""
        return self._size

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            The columns of the schema, in its order.

        Raises
        ------
        SchemaMismatchError
            For other columns, other types, or nulls in a field that has none.
        """
        names = [f.name for f in self._fields]
        if batch.schema.names != names:
            raise SchemaMismatchError(f"A batch has the columns {batch.schema.names}, expected {names}.")
        for i, array in enumerate(batch.columns):
            self._append(i, _checked(self._fields[i], array))
        self._num_rows += batch.num_rows
        if self._is_array_file:
            self._release(batch.nbytes)

    def _release(self, lent: int) -> None:
        """Copy collected rows if arrays of the caller would be kept for long."""
        self._lent += lent
        if self._lent > _MOST_LENT:
            for columns in self._columns:
                for column in columns:
                    column.release()
            self._lent = 0

    def _append(self, number: int, array: pa.Array[Any]) -> None:
        field, stored, columns = self._fields[number], self._stored[number], self._columns[number]
        n = len(array)
        step = max(min(self._page_bytes // 4 * n // max(array.nbytes, 1), MOST_ROWS), 1)
        for start in range(0, n, step):
            part = array.slice(start, step)
            if stored is not field:
                part = self._with_descriptors(field, stored, part, [])
            parts: Iterator[Any] = array_parts(stored, part) if self._is_array_file else leaf_parts(stored, part)
            for column, found in zip(columns, parts, strict=True):
                column.append(found, len(part))
                if column.num_bytes >= self._page_bytes:
                    self._write_page(column)

    def _with_descriptors(
        self, field: LanceField, stored: LanceField, array: pa.Array[Any], above: list[NullRows]
    ) -> pa.Array[Any]:
        """Write the bytes of the blobs in a field, and return its array with descriptors in place of them.

        ``above``: the structs that it is in, the innermost one first.
        """
        if stored is field:
            return array
        if not any(is_null is not None for _, is_null in above):
            check_nulls(field, array)
        layers: list[NullRows] = [(field.nullable, np.asarray(array.is_null()) if array.null_count else None), *above]
        if blob_kind(field):
            return self._put_blobs(field, array, layers)
        # blobs beneath a struct that is null are null
        children = [
            self._with_descriptors(c, s, a, layers)
            for c, s, a in zip(field.children, stored.children, array.flatten(), strict=True)
        ]
        return struct_of([arrow_field(c) for c in stored.children], children, array)

    def _put_blobs(self, field: LanceField, array: pa.Array[Any], layers: list[NullRows]) -> pa.Array[Any]:
        """Write the bytes of blobs, and return where they are."""
        placed = self._placed.get(field.id)
        if placed is not None:
            return placed.put(array, lambda data: self._put(data)[0])
        data, bounds = blob_bytes(array)
        start = self._put(data)[0] if len(data) else 0
        return descriptors(array, bounds, start, 1 if self._is_array_file else null_positions(layers))

    def _write_page(self, column: Any) -> None:
        nullable = None if self._is_array_file else self._blob_layers.get(column.field.id)
        for encoding, buffers, rows in column.take_pages():
            kind = encoding if nullable is None else blob_page(encoding, nullable)
            column.pages.add([self._put(*pieces) for pieces in buffers], kind, rows)

    def _put(self, *pieces: Any) -> tuple[int, int]:
        """Write the pieces of a buffer from the next multiple of 64 on, and return where it is."""
        rest = -self._size % _ALIGNMENT
        if rest:
            self._sink.write(_PADDING[:rest])
        at = self._size = self._size + rest
        for data in pieces:
            self._sink.write(data)
            self._size += memoryview(data).nbytes
        return at, self._size - at

    def _end(self, data: bytes) -> None:
        self._sink.write(data)
        self._size += len(data)

    def finish(self, metadata: Mapping[str, bytes] | None = None, buffers: Sequence[bytes] = ()) -> WrittenFile:
        """Write the rows that are collected, and the end of the file; the writer is not used any more.

        Parameters
        ----------
        metadata : Mapping of str to bytes, optional
            Added to that of the schema.
        buffers : sequence of bytes
            Global buffers, from number 1 on: the first one of the file is its schema.
        """
        self._blob_files.finish()
        columns = [c for group in self._columns for c in group]
        for column in columns:
            # lists without items have a page of them
            if column.num_rows or (column.is_item and self._num_rows and not len(column.pages)):
                self._write_page(column)
        fields = [message_of(f) for f in fields_of_schema(self._written)]
        descriptor = {
            "schema": {"fields": fields, "metadata": {**self._metadata, **(metadata or {})}},
            "length": self._num_rows,
        }
        places_of_buffers = [self._put(encode("FileDescriptor", descriptor)), *map(self._put, buffers)]
        start = self._size
        # readers expect these one after the other
        places = []
        for column in columns:
            data = encode("ColumnMetadata", column.pages.metadata())
            places.append(struct.pack("<QQ", self._size, len(data)))
            self._end(data)
        table = self._size
        self._end(b"".join(places))
        global_table = self._size
        # files of version 2.0 have this one
        footer = (0, 3) if self._is_array_file else self._version
        self._end(b"".join(struct.pack("<QQ", *place) for place in places_of_buffers))
        counts = len(places_of_buffers), len(columns)
        self._end(struct.pack("<QQQIIHH4s", start, table, global_table, *counts, *footer, MAGIC))
        ids = [c.field.id for c in columns]
        return WrittenFile(self._num_rows, self._size, self._version, ids, list(range(len(columns))))


class _Column:
    """One column of the file: rows that are collected, and the pages that were written."""

    def __init__(self, leaf: Leaf, requests: Requests, version: tuple[int, int], is_blob: bool) -> None:
        self.leaf = leaf
        self._is_blob = is_blob
        self.field = leaf.field
        self.is_item = False
        self.pages = WrittenPages("/lance.encodings21.PageLayout", has_priority=True)
        self._requests = requests
        self._layout = value_layout(leaf.type)
        check_requests(leaf.field, requests, self._layout, version)
        self._is_later = version >= (2, 2)
        # each row has to be a value of its own: there are neither symbols nor a constant of all rows
        self._is_packed_text = bool(self._layout.children) and not self._layout.bits
        if self._is_packed_text:
            self._requests = requests._replace(structure=FULL_ZIP, wants_fsst=False)
        self._collector = _page_writer.PageCollector(
            self._layout.bits,
            self._layout.is_wide,
            self._layout.list_sizes,
            [is_list for is_list, _ in leaf.layers[::-1]],
            *_keys(leaf.type),
            leaf.multiple,
        )

    @property
    def num_bytes(self) -> int:
        return self._collector.num_bytes

    @property
    def num_rows(self) -> int:
        return self._collector.num_rows

    def append(self, part: Any, n: int) -> None:
        layers = part.layers[-1:] if self._is_blob else part.layers
        with self._named():
            self._collector.append(layers, part.values, n)

    def take_pages(self) -> list[tuple[bytes, list[list[Any]], int]]:
        """Return the layouts of the pages of the collected rows, their buffers in pieces, and their rows."""
        with self._named():
            pages = self._collector.write(self._is_later and not self._is_packed_text, self._requests)
        return [
            (
                encode("PageLayout", page_layout(facts, self._layout, has_large_chunks=self._is_later)),
                [[b] for b in buffers],
                facts["rows"],
            )
            for facts, buffers in pages
        ]

    def _named(self) -> _Named:
        return _Named(self.leaf.field)


class _Named:
    """Errors of kernels as errors that name the field."""

    def __init__(self, field: LanceField) -> None:
        self._field = field

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, _page_writer.UnwritablePageError):
            raise UnsupportedFeatureError(
                f"Rows of field {self._field.name!r} (id {self._field.id}) can't be stored: {error}. Write smaller "
                "values, or fewer in each row, or remove the requests 'lance-encoding:…' from the field's metadata.",
                feature=str(error),
            ) from None


def _keys(of: Any) -> tuple[int, int]:
    """Return the bits of the keys of a dictionary type, and how many different ones there are; 0 for other types."""
    if not pa.types.is_dictionary(of):
        return 0, 0
    bits = of.index_type.bit_width
    return bits, 1 << min(bits - pa.types.is_signed_integer(of.index_type), 30)


def _page_columns(field: LanceField, version: tuple[int, int], blobs: Container[int]) -> list[_Column]:
    """Return the columns of the leaves of a field, in files of version 2.1 or later.

    ``blobs``: the fields whose values are positions; each is a row of its own, and has the levels of structs above it.
    """
    found = []
    for leaf, requests in zip(leaves_of(field), requests_of(field), strict=True):
        is_blob = leaf.field.id in blobs
        own = leaf._replace(layers=leaf.layers[:1]) if is_blob else leaf
        found.append(_Column(own, requests, version, is_blob))
    return found


def _checked(field: LanceField, array: pa.Array[Any]) -> pa.Array[Any]:
    try:
        return storage_of(array, arrow_field(field, blobs="bytes").type)
    except SchemaMismatchError as e:
        raise SchemaMismatchError(f"Column {field.name!r} (id {field.id}): {e}") from e


def _field_in_file(field: LanceField) -> LanceField:
    """Return the field that the schema of a file has for a column of blobs."""
    return stored_field(descriptor_field(field)) if blob_kind(field) == 2 else field


def check_field(field: LanceField, version: tuple[int, int]) -> None:
    """Reject a field at the top of a schema that files of a version do not store.

    Raises
    ------
    UnsupportedFeatureError
        For such a field; its message specifies what is stored instead.
    """
    in_structs = set(_ids_in_structs(field))
    for part in walk_fields([field]):
        kind = part.logical_type
        if blob_kind(part) is not None and not (part.id in in_structs and _takes_blobs(part, version)):
            raise _unsupported(
                part,
                version,
                "blobs",
                "At the top of the schema and in structs, files of version 2.2 store columns of the extension type "
                "'lance.blob.v2', earlier ones those of type large_binary with the metadata 'lance-encoding:blob'. Or "
                "store the bytes in a column of type large_binary.",
            )
        if kind == "struct" and not part.children:
            raise _unsupported(part, version, "structs without fields", "Add a field, or leave the column out.")
        if kind.startswith("dict:") and value_layout(part.arrow.type).bits == 1:
            raise _unsupported(
                part, version, "dictionaries of bool or null", "Cast the column to the type of its values."
            )
        if is_packed(part) and kind != "struct":
            remedy = "Remove the request 'lance-encoding:packed' from the metadata of the field."
            raise _unsupported(part, version, f"packed values of type {kind!r}", remedy)
        if is_packed(part):
            _check_packed(part, version)
        if version < (2, 2) and kind == "map":
            raise _unsupported(part, version, "maps", "Write files of version 2.2, or a list of structs.")
        if version < (2, 2) and kind.startswith("fixed_size_list:struct:"):
            raise _unsupported(
                part, version, "lists of a fixed size of structs", "Write files of version 2.2, or a list of structs."
            )


def _check_packed(field: LanceField, version: tuple[int, int]) -> None:
    remedy = "Remove the request 'lance-encoding:packed' from the metadata of the field."
    layout = value_layout(field.arrow.type)
    if any(c.children for c in layout.children):
        raise _unsupported(field, version, "packed structs of structs", remedy)
    if not layout.bits and version < (2, 2):
        raise _unsupported(field, version, "packed structs of values of any length", remedy)


def _ids_in_structs(field: LanceField) -> Iterator[int]:
    """Yield the ids of a field, and of the fields of structs in it that have a row each for its rows."""
    yield field.id
    if field.logical_type == "struct" and not is_packed(field) and blob_kind(field) is None:
        for child in field.children:
            yield from _ids_in_structs(child)


def _takes_blobs(field: LanceField, version: tuple[int, int]) -> bool:
    """Whether a column, or a field of structs, has blobs that files of a version store."""
    if version >= (2, 2):
        return blob_kind(field) == 2
    return blob_kind(field) == 1 and field.logical_type == "large_binary"


def _no_blob_file(number: int) -> AbstractContextManager[ByteSink]:
    raise InvalidArgumentError("Large blobs are stored in files of their own: pass blob_files to the writer.")


def _unsupported(field: LanceField, version: tuple[int, int], what: str, remedy: str) -> UnsupportedFeatureError:
    shown = ".".join(map(str, version))
    return UnsupportedFeatureError(
        f"Field {field.name!r} (id {field.id}) can't be written: this writer stores no {what} in files of "
        f"version {shown}. {remedy}",
        feature=what,
    )
