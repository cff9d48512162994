"""Data files of versions 2.1 and 2.2 that are made byte by byte, for what no writer writes on request."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from delta_plugins.lance.files import DataFile, open_data_file
from delta_plugins.lance.schema import LanceField
from delta_plugins.lance.wire import encode

FLAT16 = {"flat": {"bits_per_value": 16}}
VALID_ITEM, VALID_LIST, NULLABLE_ITEM, NULLABLE_LIST, EMPTYABLE_LIST, NULL_AND_EMPTY_LIST = range(1, 7)


class MadePage(NamedTuple):
    """A page: its layout, its buffers, and its rows."""

    layout: dict[str, Any]
    buffers: list[bytes]
    rows: int


class MemoryBytes:
    """The bytes of a file in memory; a range outside of them is an error of the reader."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.ranges: list[tuple[int, int]] = []

    is_remote = False

    def read_ahead(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Do nothing: the bytes are in memory."""

    def read_at(self, offset: int, length: int) -> bytes:
        assert offset >= 0
        assert 0 <= length <= self.size - offset
        self.ranges.append((offset, length))
        return self.data[offset : offset + length]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.read_at(*r) for r in ranges]


def padded(data: bytes) -> bytes:
    return data + b"\xfe" * (-len(data) % 8)


def flat(bits: int) -> dict[str, Any]:
    return {"flat": {"bits_per_value": bits}}


def chunk(buffers: Sequence[bytes], rep: Any = None, definition: Any = None, *, is_large: bool = True) -> bytes:
    """Return a mini-block with 16-bit levels that are not packed."""
    levels = [np.asarray(x, "<u2").tobytes() for x in (rep, definition) if x is not None]
    head = struct.pack("<H", len(levels[0]) // 2 if levels else 0)
    head += b"".join(struct.pack("<H", len(x)) for x in levels)
    head += b"".join(struct.pack("<I" if is_large else "<H", len(b)) for b in buffers)
    return padded(head) + b"".join(map(padded, (*levels, *buffers)))


def mini_blocks(
    values: dict[str, Any],
    chunks: Sequence[tuple[int, bytes]],
    rows: int,
    *,
    layers: Sequence[int] = (VALID_ITEM,),
    rep: dict[str, Any] | None = None,
    definition: dict[str, Any] | None = None,
    index: Sequence[tuple[int, int]] = (),
    dictionary: tuple[dict[str, Any], int, bytes] | None = None,
    num_buffers: int = 1,
    is_large: bool = True,
) -> MadePage:
    """Return a page of mini-blocks: (number of values, bytes) each."""
    words = b""
    for i, (n, data) in enumerate(chunks):
        log = 0 if i == len(chunks) - 1 else n.bit_length() - 1
        words += struct.pack("<I" if is_large else "<H", (len(data) // 8 - 1) << 4 | log)
    buffers = [words, b"".join(data for _, data in chunks)]
    layout: dict[str, Any] = {
        "rep_compression": rep,
        "def_compression": definition,
        "value_compression": values,
        "layers": list(layers),
        "num_buffers": num_buffers,
        "num_items": sum(n for n, _ in chunks),
        "has_large_chunk": is_large,
    }
    if dictionary is not None:
        layout["dictionary"], layout["num_dictionary_items"], data = dictionary
        buffers.append(data)
    if index:
        layout["repetition_index_depth"] = 1
        buffers.append(np.asarray(index, "<u8").tobytes())
    return MadePage({"mini_block": layout}, buffers, rows)


def file_bytes(columns: Sequence[Sequence[MadePage]], rows: int, version: tuple[int, int] = (2, 2)) -> bytes:
    """Return a file of such columns."""
    out = bytearray()

    def put(data: bytes) -> tuple[int, int]:
        out.extend(b"H" * (-len(out) % 64))
        out.extend(data)
        return len(out) - len(data), len(data)

    direct = {"direct": {"encoding": _any("/lance.encodings.ColumnEncoding", b"\x0a\x00")}}
    metadata = []
    for pages in columns:
        messages = []
        for page in pages:
            places = [put(b) for b in page.buffers]
            layout = _any("/lance.encodings21.PageLayout", encode("PageLayout", page.layout))
            messages.append(
                {
                    "buffer_offsets": [p for p, _ in places],
                    "buffer_sizes": [n for _, n in places],
                    "length": page.rows,
                    "encoding": {"direct": {"encoding": layout}},
                }
            )
        metadata.append(encode("ColumnMetadata", {"encoding": direct, "pages": messages}))
    descriptor = put(encode("FileDescriptor", {"schema": {}, "length": rows}))
    start = len(out)
    tables = [put(m) for m in metadata]
    table = put(b"".join(struct.pack("<QQ", *t) for t in tables))[0]
    global_table = put(struct.pack("<QQ", *descriptor))[0]
    out.extend(struct.pack("<QQQIIHH4s", start, table, global_table, 1, len(columns), *version, b"LANC"))
    return bytes(out)


def _any(kind: str, value: bytes) -> bytes:
    return encode("Any", {"type_url": kind, "value": value})


def opened_bytes(data: bytes) -> DataFile:
    source = MemoryBytes(data)
    return open_data_file(source, source.size, path="made.lance", major=0, minor=0)


def leaf(logical_type: str, id: int = 0, name: str = "c") -> LanceField:
    return LanceField(id=id, parent_id=-1, name=name, logical_type=logical_type)


def list_of(item: LanceField, id: int = 10) -> LanceField:
    return LanceField(id=id, parent_id=-1, name="c", logical_type="list", children=(item,))


def read_page(page: MadePage, field: LanceField, rows: Any = None, **options: Any) -> list[Any]:
    """Return the values of a file of one page, whose leaf has id 0."""
    [found] = opened_bytes(file_bytes([[page]], page.rows, **options)).read([field], {0: 0}, rows)
    found.validate(full=True)
    values: list[Any] = found.to_pylist()
    return values
