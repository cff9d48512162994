"""File actions, and any other rows, to lines of JSON as commits and JSON checkpoints hold them."""

from __future__ import annotations

import functools
import json
import os
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError
from delta_core.kernels import compute as pc
from delta_core.kernels._json import Rows, format_rows
from delta_core.kernels.arrow_buffers import is_valid, string_array
from delta_core.runtime.threads import Task, ThreadPool

__all__ = ["RUN_ROWS", "format_actions", "format_lines", "format_objects"]

#: Rows that one thread formats at a time; fewer are not worth another thread.
RUN_ROWS = 1 << 16

_NO_BUFFERS = (None, None, None)
_TROUBLE = {
    "utf8": "holds bytes that are not UTF-8",
    "key": "has a null key",
    "number": "is NaN or infinite, which JSON can't hold",
}


def format_actions(kind: str, table: pa.Table) -> bytes:
    """Return one line ``{"<kind>":{...}}`` a row.

    Parameters
    ----------
    kind : str
        The action: ``add``, ``remove``, ``cdc``, or a plugin's kind.
    table : pyarrow.Table, **n rows**
        Columns by the action's field names: strings, numbers, booleans, maps with string keys, lists and structs of
        these, dictionaries of them. Null fields of the action, and of structs in it, are left out; null
        values of maps and lists stay.

    Raises
    ------
    InvalidArgumentError
        A column of another type; text that is not UTF-8, a null key, NaN or an infinity, with column and row.

    Notes
    -----
    Linear in the bytes written; without the interpreter lock; text is passed over twice and copied once.
    """
    return b"".join(format_lines(kind, table))


def format_lines(kind: str, table: pa.Table) -> Iterator[bytes]:
    """Yield the lines of `format_actions` in pieces, in order, which threads make side by side, a few ahead.

    Parameters
    ----------
    kind : str
        The kind of action, as for `format_actions`.
    table : pyarrow.Table, **n rows**
        A row for each action, as for `format_actions`.
    """
    head, what = b'{"%b":' % _name(kind), f"{kind} actions"
    if table.num_rows <= RUN_ROWS:
        yield _format(head, b"}\n", table, what)
        return
    threads = os.cpu_count() or 1
    ahead: deque[Task[bytes]] = deque()
    with ThreadPool(threads, "delta-lines") as pool:
        for i in range(0, table.num_rows, RUN_ROWS):
            ahead.append(pool.submit(_format, head, b"}\n", table.slice(i, RUN_ROWS), what, i))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def format_objects(struct: pa.StructArray) -> pa.Array:
    """Return each struct as JSON text, null if it is null; the types and errors of `format_actions`.

    Parameters
    ----------
    struct : struct array, **shape (n,)**
        Fields that are null are left out. Slices are allowed.

    Returns
    -------
    string array, **shape (n,)**
        JSON text; null if ``struct`` is.
    """
    table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(struct)])
    data = np.frombuffer(_format(b"", b"\n", table, "structs"), np.uint8)
    # an object has no line end in it
    ends = np.flatnonzero(data == 10) + 1
    lines = string_array(np.concatenate([[0], ends]), data, is_valid(struct))

    return pc.utf8_rtrim(lines, "\n")


def _format(head: bytes, tail: bytes, table: pa.Table, what: str, first_row: int = 0) -> bytes:
    # columns are described in Python: most commits have no removes, and must not pay for them
    if not table.num_rows:
        return b""
    batches = table.to_batches()
    specs = [_node("struct", 0, b"", b.num_rows, 0, _NO_BUFFERS, _columns(b)) for b in batches]
    written = format_rows(head, tail, [Rows(s) for s in specs])
    if isinstance(written, bytes):
        return written
    trouble, batch, row, label = written
    row += first_row + sum(b.num_rows for b in batches[:batch])
    column = label.decode()[1:-2]
    raise InvalidArgumentError(
        f"Row {row} of {what} can't be written as JSON: {column or 'a value'} {_TROUBLE[trouble]}.",
        row=row,
        column=column,
    )


def _name(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False)[1:-1].encode()


@functools.lru_cache(4096)
def _label(name: str) -> bytes:
    return b'"%b":' % _name(name)


def _node(
    shape: str, width: int, label: bytes, length: int, offset: int, buffers: tuple[Any, Any, Any], children: list[Any]
) -> tuple[Any, ...]:
    return shape, width, label, length, offset, *buffers, children


def _columns(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return [_describe(name, batch.column(i)) for i, name in enumerate(batch.schema.names)]


_PLAIN = {
    pa.bool_().id: "bool",
    **{t.id: "int" for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{t.id: "uint" for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    pa.float32().id: "float",
    pa.float64().id: "float",
}
_STRINGS = {pa.string().id: 4, pa.large_string().id: 8}


def _describe(name: str, array: pa.Array) -> tuple[Any, ...]:
    """Return an array as the compiled half takes it."""
    kind, label = array.type, _label(name)
    if (size := _STRINGS.get(kind.id)) is not None:
        return _node("string", size, label, len(array), array.offset, tuple(array.buffers()), [])
    if (shape := _PLAIN.get(kind.id)) is not None:
        width = 0 if shape == "bool" else kind.bit_width // 8
        return _node(shape, width, label, len(array), array.offset, (*array.buffers(), None), [])
    if pa.types.is_dictionary(kind):
        return _describe(name, array.dictionary_decode())
    if pa.types.is_string_view(kind):
        return _describe(name, pc.cast(array, pa.large_string()))
    if pa.types.is_decimal(kind):
        return ("digits", *_describe(name, pc.cast(array, pa.string()))[1:])
    if pa.types.is_null(kind):
        return _node("null", 0, label, len(array), 0, _NO_BUFFERS, [])
    return _describe_nested(name, label, array)


def _describe_nested(name: str, label: bytes, array: pa.Array) -> tuple[Any, ...]:
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [_describe(f.name, array.field(i)) for i, f in enumerate(kind)]
        return _node("struct", 0, label, len(array), array.offset, (array.buffers()[0], None, None), fields)
    if pa.types.is_map(kind):
        entries = array.values
        children = [_describe(name, entries.field(0)), _describe(name, entries.field(1))]
        if pa.types.is_string(kind.key_type) or pa.types.is_dictionary(kind.key_type):
            return _node("map", 4, label, len(array), array.offset, (*array.buffers()[:2], None), children)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        size, child = 8 if pa.types.is_large_list(kind) else 4, [_describe(name, array.values)]
        return _node("list", size, label, len(array), array.offset, (*array.buffers()[:2], None), child)
    raise InvalidArgumentError(
        f"Column {name!r} has type {kind}, which has no JSON form here; use strings, numbers, booleans, and maps with "
        "string keys, lists and structs of them.",
        column=name,
    )
