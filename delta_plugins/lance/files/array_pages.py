"""Pages of version 2.0: encodings that are arrays of other encodings.

Each function that reads is a generator. It yields the ranges of the file that it needs next, is sent their bytes, and
returns its result, so that the columns of a file go forward side by side and their ranges are read together.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.kernels.memory import zeros
from delta_plugins.lance import _pages
from delta_plugins.lance._pages import DamagedPageError
from delta_plugins.lance.wire import Message, chosen

__all__ = ["ArrayPage", "Steps", "count_of", "fixed_rows", "read_array", "read_codes", "read_ends", "read_spans"]

_ENCODINGS = (
    "flat", "nullable", "fixed_size_list", "list", "struct", "binary", "dictionary", "fsst", "packed_struct",
    "bitpacked", "fixed_size_binary", "bitpacked_for_non_neg", "constant",
)  # fmt: skip
#: Ranges of bytes that are nearer to each other are read together.
GAP_BYTES = 4 << 10
_MOST_NESTED = 16
#: A byte of zstd expands to 32 KiB at most.
_MOST_RATIO = 1 << 15
_MOST_AT_ONCE = 4 << 20
_ZSTD_FRAME = b"\x28\xb5\x2f\xfd"

Ranges = NDArray[np.int64]
#: Yields ranges of the file, is sent their bytes.
Steps = Generator[list[tuple[int, int]], Sequence[Any], Any]


class ArrayPage(NamedTuple):
    """A page.

    Parameters
    ----------
    num_rows : int
        Its rows.
    buffers : list of tuple of int
        (offset, size) of its own buffers.
    column_buffers : list of tuple of int
        Those of its column.
    plain : dict
        Buffers that were decompressed, by their offset; kept as long as the page is read.
    """

    num_rows: int
    buffers: list[tuple[int, int]]
    column_buffers: list[tuple[int, int]]
    plain: dict[int, Any]


class _Values(NamedTuple):
    """Decoded values of any length: offsets from 0 on, and bytes; validity as (bits, nulls)."""

    offsets: Any
    data: Any
    validity: Any
    nulls: int


def count_of(ranges: Ranges) -> int:
    """Return how many rows ranges have."""
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def read_array(page: ArrayPage, encoding: Message, type: pa.DataType, ranges: Ranges, depth: int = 0) -> Steps:
    """Return ranges of rows of a page as an array."""
    return (yield from _array(page, encoding, type, ranges, None, depth))


def _array(
    page: ArrayPage, encoding: Message | None, type: pa.DataType, ranges: Ranges, validity: Any, depth: int
) -> Steps:
    """Return an array; ``validity`` is (bits, nulls) that an encoding around this one has, or None."""
    name = None if encoding is None else chosen(encoding, _ENCODINGS)
    if encoding is None or name is None:
        raise DamagedPageError("it has an encoding that is not supported")
    if depth > _MOST_NESTED:
        raise DamagedPageError("its encodings are nested too deeply")
    read = _READERS.get(name)
    if read is None:
        raise DamagedPageError(f"it has the encoding {name!r}, which arrays do not have")
    return (yield from read(page, encoding[name], type, ranges, validity, depth + 1))


def _bits(validity: Any) -> tuple[Any, int]:
    return (None, 0) if validity is None else validity


# --- bytes ---------------------------------------------------------------------------------


def _buffer(page: ArrayPage, buffer: Message | None) -> tuple[int, int]:
    index, kind = (0, 0) if buffer is None else (buffer["buffer_index"], buffer["buffer_type"])
    found = {0: page.buffers, 1: page.column_buffers}.get(kind)
    if found is None or index >= len(found):
        raise DamagedPageError(f"it refers to buffer {index} of kind {kind}, which it does not have")
    return found[index]


def read_spans(offset: int, spans: NDArray[np.int64], unit: int = 1) -> Steps:
    """Return the bytes of spans, one after the other.

    Parameters
    ----------
    offset : int
        Where the spans count from.
    spans : int64, **shape (n, 2)**
        First byte and the byte after the last one of each span; they rise.
    unit : int
        All of them begin and end at a multiple of it.
    """
    spans = spans[spans[:, 0] < spans[:, 1]]
    if not len(spans):
        return b""
    if len(spans) == 1:
        [data] = yield [(offset + int(spans[0, 0]), int(spans[0, 1] - spans[0, 0]))]
        return data
    first = np.flatnonzero(np.r_[True, spans[1:, 0] - spans[:-1, 1] > GAP_BYTES])
    begins = spans[first, 0]
    ends = spans[np.r_[first[1:] - 1, len(spans) - 1], 1]
    parts = yield [(offset + a, b - a) for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    part_of = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(spans)]))
    at = spans[:, 0] - begins[part_of]
    sizes = spans[:, 1] - spans[:, 0]
    if unit > 1:
        before = np.cumsum(ends - begins) - (ends - begins)
        first_unit = (at + before[part_of]) // unit
        units = np.frombuffer(b"".join(parts), f"V{unit}")
        return units[positions_of(np.stack([first_unit, first_unit + sizes // unit], 1))].view(np.uint8)
    views = [memoryview(p) for p in parts]
    return b"".join(views[k][a : a + n] for k, a, n in zip(part_of.tolist(), at.tolist(), sizes.tolist(), strict=True))


def _compressed(page: ArrayPage, place: tuple[int, int], scheme: str) -> Steps:
    """Return the decompressed bytes of a buffer."""
    if place[0] not in page.plain:
        [data] = yield [place]
        page.plain[place[0]] = _decompressed(bytes(data), scheme)
    return page.plain[place[0]]


def _decompressed(data: bytes, scheme: str) -> Any:
    if scheme == "zstd":
        if data[:4] == _ZSTD_FRAME and len(data) > 4 and not data[4] & 0x10:
            return _frame(data, len(data) * _MOST_RATIO)
        if len(data) < 8:
            raise DamagedPageError("a buffer of zstd has fewer than 8 bytes")
        size = int.from_bytes(data[:8], "little")
        if size > len(data) * _MOST_RATIO:
            raise DamagedPageError("a buffer of zstd is shorter than its length requires")
        found = _frame(data[8:], size)
        if len(found) != size:
            raise DamagedPageError("a buffer of zstd has another length than it specifies")
        return found
    if scheme != "lz4":
        raise DamagedPageError(f"it is compressed with {scheme!r}; zstd and lz4 are supported")
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size > len(data) * 255:
        raise DamagedPageError("a buffer of lz4 is shorter than its length requires")
    try:
        return pa.Codec("lz4_raw").decompress(data[4:], size) if size else b""
    except (OSError, pa.ArrowInvalid) as e:
        raise DamagedPageError(f"a buffer of lz4 is damaged: {e}") from None


def _frame(data: bytes, most: int) -> bytes:
    """Decompress a zstd frame to at most ``size`` bytes."""
    parts, size = [], 0
    try:
        stream = pa.CompressedInputStream(pa.BufferReader(data), "zstd")
        # memory is taken for bytes that there are
        while size <= most and (part := stream.read(min(most + 1 - size, _MOST_AT_ONCE))):
            parts.append(part)
            size += len(part)
    except (OSError, pa.ArrowInvalid) as e:
        raise DamagedPageError(f"a buffer of zstd is damaged: {e}") from None
    if size > most:
        raise DamagedPageError("a buffer of zstd is longer than it specifies")
    return b"".join(parts)


def _rows(page: ArrayPage, flat: Message | None, bits: int, ranges: Ranges) -> Steps:
    """Return the bytes of rows of a fixed width, or their bits from bit 0 on; ``bits`` is the expected width."""
    if flat is None or flat["bits_per_value"] != bits:
        found = None if flat is None else flat["bits_per_value"]
        raise DamagedPageError(f"it has values of {found} bits, expected {bits}")
    if bits != 1 and bits % 8:
        raise DamagedPageError(f"it has values of {bits} bits, which are no whole bytes")
    place = _buffer(page, flat["buffer"])
    scheme = None if flat["compression"] is None else flat["compression"]["scheme"]
    plain = None
    if scheme not in (None, "", "none"):
        plain = yield from _compressed(page, place, scheme)
    return (yield from fixed_rows(place, plain, bits, ranges))


def fixed_rows(place: tuple[int, int], plain: Any, bits: int, ranges: Ranges) -> Steps:
    """Return the bytes of rows of a fixed width, or their bits from bit 0 on.

    Parameters
    ----------
    place : tuple of int
        The (offset, size) of the rows in the file.
    plain : bytes-like, optional
        The rows, if they were decompressed.
    bits : int
        Of a row: 1, or a multiple of 8.
    ranges : int64, **shape (n, 2)**
        The requested rows.

    Raises
    ------
    DamagedPageError
        If there are fewer rows.
    """
    size = place[1] if plain is None else len(plain)
    if not len(ranges):
        return b""
    if int(ranges[-1, 1]) * bits > size * 8:
        raise DamagedPageError(f"a buffer of {size} bytes has fewer than {int(ranges[-1, 1])} values of {bits} bits")
    spans = ranges * (bits // 8) if bits != 1 else np.stack([ranges[:, 0] // 8, (ranges[:, 1] + 7) // 8], 1)
    if bits == 1 and len(spans) > 1:
        # ranges may share bytes
        return (yield from _few_bits(place[0], plain, spans, ranges))
    if plain is not None:
        view = memoryview(plain)
        data = view[spans[0, 0] : spans[0, 1]] if len(spans) == 1 else b"".join(view[a:b] for a, b in spans.tolist())
    else:
        data = yield from read_spans(place[0], spans, 1 if bits == 1 else bits // 8)
    return data if bits != 1 else _shifted(data, int(ranges[0, 0]) % 8, count_of(ranges))


def _few_bits(offset: int, plain: Any, spans: NDArray[np.int64], ranges: Ranges) -> Steps:
    first, last = int(spans[0, 0]), int(spans[-1, 1])
    if plain is not None:
        data = memoryview(plain)[first:last]
    else:
        [data] = yield [(offset + first, last - first)]
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    return pa.py_buffer(np.packbits(bits[positions_of(ranges) - 8 * first], bitorder="little"))


def positions_of(ranges: Ranges) -> NDArray[np.int64]:
    """Return the numbers within ranges."""
    sizes = ranges[:, 1] - ranges[:, 0]
    ends = np.cumsum(sizes)
    found: NDArray[np.int64] = np.arange(int(ends[-1]) if len(ends) else 0)
    found += np.repeat(ranges[:, 0] - (ends - sizes), sizes)
    return found


def _shifted(data: Any, skipped: int, n: int) -> Any:
    if not skipped:
        return data
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=skipped + n, bitorder="little")
    return pa.py_buffer(np.packbits(bits[skipped:], bitorder="little"))


def as_buffer(data: Any) -> pa.Buffer:
    return data if isinstance(data, pa.Buffer) else pa.py_buffer(data)


# --- encodings -----------------------------------------------------------------------------


def bit_width(type: pa.DataType) -> int:
    if pa.types.is_fixed_size_binary(type):
        return int(type.byte_width) * 8
    return int(type.bit_width) if pa.types.is_primitive(type) or pa.types.is_decimal(type) else -1


def _read_flat(page: ArrayPage, flat: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int) -> Steps:
    if pa.types.is_fixed_size_list(type):
        raise DamagedPageError(f"values of {type} are stored as flat values")
    width = bit_width(type)
    if width < 0:
        raise DamagedPageError(f"values of {type} are stored as flat values")
    data = yield from _rows(page, flat, width, ranges)
    bits, nulls = _bits(validity)
    return pa.Array.from_buffers(type, count_of(ranges), [bits, as_buffer(data)], nulls)


def _read_bitpacked(
    page: ArrayPage, packed: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int
) -> Steps:
    """Return integers whose bits lie one after the other."""
    width, stored = packed["uncompressed_bits_per_value"], packed["compressed_bits_per_value"]
    if width != bit_width(type) or width not in (8, 16, 32, 64) or not 0 < stored <= width:
        raise DamagedPageError(f"it has values of {width} bits that are packed to {stored}, expected {type}")
    offset, size = _buffer(page, packed["buffer"])
    n = count_of(ranges)
    found = np.zeros(n, np.uint64)
    if n:
        if int(ranges[-1, 1]) * stored > size * 8:
            raise DamagedPageError(f"a buffer of {size} bytes has fewer than {int(ranges[-1, 1])} packed values")
        first = int(ranges[0, 0]) * stored // 8
        last = (int(ranges[-1, 1]) * stored + 7) // 8
        [data] = yield [(offset + first, last - first)]
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        at = positions_of(ranges) * stored - 8 * first
        for k in range(stored):
            found |= bits[at + k].astype(np.uint64) << np.uint64(k)
        if packed["signed"]:
            found |= np.where(
                bits[at + stored - 1], np.uint64((1 << 64) - (1 << stored)) if stored < 64 else 0, 0
            ).astype(np.uint64)
    values = found.astype(f"u{width // 8}")
    null_bits, nulls = _bits(validity)
    return pa.Array.from_buffers(type, n, [null_bits, pa.py_buffer(values)], nulls)


def _read_nullable(
    page: ArrayPage, nullable: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int
) -> Steps:
    name = chosen(nullable, ("no_nulls", "some_nulls", "all_nulls"))
    n = count_of(ranges)
    if name == "no_nulls":
        return (yield from _array(page, nullable["no_nulls"]["values"], type, ranges, validity, depth))
    if name == "all_nulls":
        return pa.nulls(n, type)
    if name is None:
        raise DamagedPageError("it does not specify which values are null")
    if validity is not None:
        raise DamagedPageError("its values are marked as null twice")
    part = nullable["some_nulls"]
    flat = None if part["validity"] is None else part["validity"]["flat"]
    data = yield from _rows(page, flat, 1, ranges)
    ones = np.unpackbits(np.frombuffer(data, np.uint8), count=n, bitorder="little").sum(dtype=np.int64)
    found = (as_buffer(data), n - int(ones)) if ones < n else None
    return (yield from _array(page, part["values"], type, ranges, found, depth))


def _read_fixed_list(
    page: ArrayPage, part: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int
) -> Steps:
    size = part["dimension"]
    if not pa.types.is_fixed_size_list(type) or type.list_size != size:
        raise DamagedPageError(f"it has lists of {size}, expected {type}")
    items = yield from _array(page, part["items"], type.value_type, ranges * size, None, depth)
    bits, nulls = _bits(validity)
    return pa.Array.from_buffers(type, count_of(ranges), [bits], nulls, children=[items])


def _before(ranges: Ranges) -> Ranges:
    """Return ranges with the row before each of them, if there is one."""
    return np.stack([np.maximum(ranges[:, 0] - 1, 0), ranges[:, 1]], 1)


def read_ends(
    page: ArrayPage, encoding: Message | None, ranges: Ranges, adjustment: int, limit: int, is_wide: bool, depth: int
) -> Steps:
    """Return offsets, validity, nulls and spans of rows that are stored by their ends.

    Raises
    ------
    DamagedPageError
        If ends are null, do not rise, or lie after ``limit``.
    """
    ends = yield from _array(page, encoding, pa.uint64(), _before(ranges), None, depth)
    if ends.null_count:
        raise DamagedPageError("ends of values are null")
    data = ends.buffers()[1]
    offsets, bits, nulls, spans = _pages.read_ends(
        data if data is not None else b"", np.ascontiguousarray(ranges), min(adjustment, (1 << 64) - 1), limit, is_wide
    )
    return offsets, bits, nulls, np.array(spans, np.int64).reshape(-1, 2)


def _is_wide(type: pa.DataType) -> bool:
    if pa.types.is_large_string(type) or pa.types.is_large_binary(type):
        return True
    if not (pa.types.is_string(type) or type == pa.binary()):
        raise DamagedPageError(f"values of any length are stored in a column of {type}")
    return False


def _texts(page: ArrayPage, part: Message, is_wide: bool, ranges: Ranges, depth: int) -> Steps:
    flat = None if part["bytes"] is None else _inner_flat(part["bytes"])
    if flat is None or flat["bits_per_value"] != 8:
        raise DamagedPageError("values of any length have no bytes")
    place = _buffer(page, flat["buffer"])
    scheme = None if flat["compression"] is None else flat["compression"]["scheme"]
    plain = None
    if scheme not in (None, "", "none"):
        plain = yield from _compressed(page, place, scheme)
    limit = place[1] if plain is None else len(plain)
    offsets, bits, nulls, spans = yield from read_ends(
        page, part["indices"], ranges, part["null_adjustment"], limit, is_wide, depth
    )
    if plain is None:
        data = yield from read_spans(place[0], spans)
    else:
        view = memoryview(plain)
        data = b"".join(view[a:b] for a, b in spans.tolist())
    return _Values(offsets, as_buffer(data), bits, nulls)


def _inner_flat(encoding: Message) -> Message | None:
    """Return the flat encoding of bytes, which may be in one without nulls."""
    if encoding["nullable"] is not None and encoding["nullable"]["no_nulls"] is not None:
        inner = encoding["nullable"]["no_nulls"]["values"]
        return None if inner is None else inner["flat"]
    found: Message | None = encoding["flat"]
    return found


def _with(values: _Values, type: pa.DataType, n: int, validity: Any) -> pa.Array[Any]:
    bits, nulls = values.validity, values.nulls
    if validity is not None:
        outer = pa.Array.from_buffers(pa.bool_(), n, [None, validity[0]])
        inner = pa.Array.from_buffers(pa.bool_(), n, [None, bits if nulls else validity[0]])
        both = np.asarray(outer.to_numpy(zero_copy_only=False)) & np.asarray(inner.to_numpy(zero_copy_only=False))
        bits, nulls = pa.py_buffer(np.packbits(both, bitorder="little")), n - int(both.sum())
    check_strings(type, values.offsets, values.data, n)
    return pa.Array.from_buffers(type, n, [bits if nulls else None, values.offsets, values.data], nulls)


def check_strings(type: pa.DataType, offsets: Any, data: Any, n: int) -> None:
    """Check that values of a string type are UTF-8; those of other types may be anything.

    Raises
    ------
    DamagedPageError
        If one of them is not.
    """
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        _pages.check_texts(offsets, data, n, pa.types.is_large_string(type))


def _read_binary(page: ArrayPage, part: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int) -> Steps:
    values = yield from _texts(page, part, _is_wide(type), ranges, depth)
    return _with(values, type, count_of(ranges), validity)


def _read_fsst(page: ArrayPage, part: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int) -> Steps:
    inner = part["binary"]
    while inner is not None and inner["nullable"] is not None and inner["nullable"]["no_nulls"] is not None:
        inner = inner["nullable"]["no_nulls"]["values"]
    if inner is None or inner["binary"] is None:
        raise DamagedPageError("codes of FSST are no values of any length")
    wide = _is_wide(type)
    n = count_of(ranges)
    values = yield from _texts(page, inner["binary"], wide, ranges, depth)
    offsets, data = _pages.decode_texts(part["symbol_table"], values.offsets, values.data, n, wide)
    return _with(values._replace(offsets=offsets, data=data), type, n, validity)


def _read_fixed_binary(
    page: ArrayPage, part: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int
) -> Steps:
    width = part["byte_width"]
    flat = None if part["bytes"] is None else _inner_flat(part["bytes"])
    if flat is None:
        raise DamagedPageError("values of a fixed width have no bytes")
    data = yield from _rows(page, flat, 8, ranges * width)
    n = count_of(ranges)
    bits, nulls = _bits(validity)
    if pa.types.is_fixed_size_binary(type) and type.byte_width == width:
        return pa.Array.from_buffers(type, n, [bits, as_buffer(data)], nulls)
    offsets = np.arange(n + 1, dtype=np.int64 if _is_wide(type) else np.int32) * width
    check_strings(type, offsets, data, n)
    return pa.Array.from_buffers(type, n, [bits, pa.py_buffer(offsets), as_buffer(data)], nulls)


def read_codes(page: ArrayPage, part: Message, type: pa.DataType, ranges: Ranges) -> Steps:
    """Return the codes of rows, as numbers, and the items: code 0 is null, and code k is item k - 1."""
    whole = np.array([[0, part["num_dictionary_items"]]], np.int64)
    items = yield from read_array(page, part["items"], type, whole)
    codes = yield from read_array(page, part["indices"], pa.uint8(), ranges)
    return numbers_of(codes), items


def _read_dictionary(
    page: ArrayPage, part: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int
) -> Steps:
    """Return codes and their dictionary; without a dictionary type, code 0 is null and code k is item k - 1."""
    count = part["num_dictionary_items"]
    is_dictionary = pa.types.is_dictionary(type)
    whole = np.array([[0, count]], np.int64)
    item_type = type.value_type if is_dictionary else type
    items = yield from _array(page, part["items"], item_type, whole, None, depth)
    code_type = type.index_type if is_dictionary else pa.uint8()
    codes = yield from _array(page, part["indices"], code_type, ranges, validity, depth)
    if not is_dictionary:
        return _chosen_texts(codes, items)
    numbers = numbers_of(codes)
    valid = numbers if codes.null_count == 0 else numbers[np.asarray(codes.is_valid())]
    if len(valid) and (int(valid.min()) < 0 or int(valid.max()) >= count):
        raise DamagedPageError("a code of its dictionary is too large")
    return pa.DictionaryArray.from_arrays(*_without_null(codes, items), ordered=type.ordered)


def _without_null(codes: pa.Array[Any], items: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return codes and items of a dictionary with null codes in place of null items, which PyArrow can't unify."""
    if not items.null_count:
        return codes, items
    is_valid = np.asarray(items.is_valid())
    places = pa.array(np.cumsum(is_valid) - 1, pa.int64(), mask=~is_valid)
    return places.take(codes).cast(codes.type), items.drop_null()


def numbers_of(codes: pa.Array[Any]) -> NDArray[Any]:
    """Return the numbers of an array without an offset, whatever is where it is null."""
    data = codes.buffers()[1]
    kind = "u" if pa.types.is_unsigned_integer(codes.type) else "i"
    return np.frombuffer(
        data if data is not None else zeros(8 * len(codes)), f"{kind}{codes.type.bit_width // 8}", len(codes)
    )


def _chosen_texts(codes: pa.Array[Any], items: pa.Array[Any]) -> pa.Array[Any]:
    """Return the items that codes choose, counted from 1; 0 is null."""
    numbers = numbers_of(codes)
    if len(numbers) and int(numbers.max()) > len(items):
        raise DamagedPageError("a code of its dictionary is too large")
    null = numbers == 0
    places = pa.Array.from_buffers(
        pa.int32(),
        len(numbers),
        [
            pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None,
            pa.py_buffer(np.maximum(numbers.astype(np.int32) - 1, 0)),
        ],
    )
    return items.take(places)


def _read_packed(page: ArrayPage, part: Message, type: pa.DataType, ranges: Ranges, validity: Any, depth: int) -> Steps:
    """Return a struct whose rows lie one after the other, fields without padding."""
    if not pa.types.is_struct(type) or type.num_fields != len(part["inner"]):
        raise DamagedPageError(f"it has a packed struct of {len(part['inner'])} fields, expected {type}")
    widths = [_packed_width(f.type) for f in type]
    width = sum(widths)
    offset, size = _buffer(page, part["buffer"])
    n = count_of(ranges)
    if len(ranges) and int(ranges[-1, 1]) * width > size:
        raise DamagedPageError(f"a buffer of {size} bytes has fewer than {int(ranges[-1, 1])} rows of {width} bytes")
    data = yield from read_spans(offset, ranges * width)
    rows = np.frombuffer(data, np.uint8, n * width).reshape(n, width)
    ends = np.cumsum(widths)
    children = [
        _packed_child(f.type, n, np.ascontiguousarray(rows[:, e - w : e]))
        for f, e, w in zip(type, ends, widths, strict=True)
    ]
    bits, nulls = _bits(validity)
    return pa.Array.from_buffers(type, n, [bits], nulls, children=children)


def _packed_width(type: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(type):
        return int(type.list_size) * _packed_width(type.value_type)
    width = bit_width(type)
    if width < 8 or width % 8:
        raise DamagedPageError(f"a packed struct has a field of {type}")
    return width // 8


def _packed_child(type: pa.DataType, n: int, data: NDArray[np.uint8]) -> pa.Array[Any]:
    if pa.types.is_fixed_size_list(type):
        items = _packed_child(type.value_type, n * type.list_size, data)
        return pa.Array.from_buffers(type, n, [None], 0, children=[items])
    return pa.Array.from_buffers(type, n, [None, pa.py_buffer(data.reshape(-1))], 0)


_READERS = {
    "flat": _read_flat,
    "nullable": _read_nullable,
    "fixed_size_list": _read_fixed_list,
    "binary": _read_binary,
    "dictionary": _read_dictionary,
    "fsst": _read_fsst,
    "packed_struct": _read_packed,
    "bitpacked": _read_bitpacked,
    "fixed_size_binary": _read_fixed_binary,
}
