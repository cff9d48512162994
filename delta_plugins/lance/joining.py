"""Fields whose children lie in different files of a fragment, as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from delta_core.api import DataFileError
from delta_core.kernels.arrow_buffers import bool_array, is_valid, null_array, one_array, values_of
from delta_plugins.lance.schema import LanceField, arrow_field

__all__ = ["join_parts"]

Part = tuple[LanceField, pa.Array]


def join_parts(field: LanceField, parts: Sequence[Part], paths: str) -> pa.Array:
    """Return the array of a field from arrays that have some of the fields below it each.

    Parameters
    ----------
    field : LanceField
        With all fields below it; those that no part has are null.
    parts : sequence of (LanceField, Array)
        Two or more, with as many rows each.
    paths : str
        The files, for errors.

    Raises
    ------
    DataFileError
        If the files contradict each other: another row of a struct or a list is null, or lists have other lengths.
    """
    if len(parts) == 1 and parts[0][0] == field:
        return parts[0][1]
    first = parts[0][1]
    length, of = len(first), arrow_field(field).type
    valid = is_valid(first)
    if any(len(a) != length or not (is_valid(a) == valid).all() for _, a in parts[1:]):
        raise _contradiction(field, paths)
    if pa.types.is_struct(of):
        children = [_child(c, parts, length, paths) for c in field.children]
        validity = bool_array(valid).buffers()[1] if first.null_count else None
        return pa.Array.from_buffers(of, length, [validity], children=children)
    return _joined_lists(field, of, parts, paths)


def _contradiction(field: LanceField, paths: str) -> DataFileError:
    return DataFileError(
        f"Data files {paths} contradict each other: field {field.name!r} (id {field.id}), whose children are in "
        "several of them, differs in nulls or lengths. Restore the files from a copy.",
        path=paths,
    )


def _child(child: LanceField, parts: Sequence[Part], length: int, paths: str) -> pa.Array:
    found = []
    for field, array in parts:
        index = next((i for i, c in enumerate(field.children) if c.id == child.id), -1)
        if index >= 0:
            found.append((field.children[index], array.field(index)))
    if not found:
        return null_array(arrow_field(child).type, length)
    return join_parts(child, found, paths)


def _joined_lists(field: LanceField, of: pa.DataType, parts: Sequence[Part], paths: str) -> pa.Array:
    plain: list[Any] = [one_array(pa.chunked_array([pa.concat_arrays([a])])) for _, a in parts]
    length, child = len(plain[0]), field.children[0]
    validity = plain[0].buffers()[0] if plain[0].null_count else None
    if pa.types.is_fixed_size_list(of):
        size = of.list_size
        items = [(f.children[0], a.values[: length * size]) for (f, _), a in zip(parts, plain, strict=True)]
        return pa.Array.from_buffers(of, length, [validity], children=[join_parts(child, items, paths)])
    ends = [values_of(a.offsets) for a in plain]
    if any(len(e) != len(ends[0]) or ((e - e[0]) != (ends[0] - ends[0][0])).any() for e in ends[1:]):
        raise _contradiction(field, paths)
    items = [(f.children[0], a.values[int(e[0]) : int(e[-1])]) for (f, _), a, e in zip(parts, plain, ends, strict=True)]
    offsets = pa.py_buffer(ends[0] - ends[0][0])
    return pa.Array.from_buffers(of, length, [validity, offsets], children=[join_parts(child, items, paths)])
