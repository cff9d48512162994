"""The columns of a file that a field of the schema consists of, and the memory layout of their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from delta_core.api import SchemaError
from delta_plugins.lance.schema import LanceField, arrow_field, blob_kind, is_packed

if TYPE_CHECKING:
    from delta_core.api import ValueTest

__all__ = ["Leaf", "LeafTest", "ValueLayout", "is_leaf", "leaves_of", "layout_to_test", "value_layout"]

#: Items of one value, at most.
MOST_ITEMS = 1 << 31
_LISTS = ("list", "list.struct", "large_list", "large_list.struct")


class ValueLayout(NamedTuple):
    """How the values of a leaf are stored.

    Parameters
    ----------
    bits : int
        Of a value; 0 if each has its own length.
    is_wide : bool
        Whether offsets have 64 bits.
    list_sizes : list of int
        Of lists of a fixed size within a value, the outermost first.
    children : list of ValueLayout
        Those of a packed struct.
    """

    bits: int
    is_wide: bool
    list_sizes: list[int]
    children: list[ValueLayout]


class Leaf(NamedTuple):
    """A field that is a column of a file of version 2.1 or later.

    Parameters
    ----------
    field : LanceField
        The field.
    type : pyarrow.DataType
        Its type in Arrow.
    layers : list of tuple of bool
        (is list, has 64-bit offsets) of the field and those above it, the innermost first.
    multiple : int
        Entries of the column for each row: the product of the sizes of lists of structs above it.
    """

    field: LanceField
    type: pa.DataType
    layers: list[tuple[bool, bool]]
    multiple: int


class LeafTest(NamedTuple):
    """A test of the values of a field at the top of the schema, or within structs.

    Parameters
    ----------
    column : int
        Which of the columns that the condition needs has the field.
    field : LanceField
        The field at the top of the schema, with only what leads to the tested one.
    leaf : LanceField
        The tested field.
    bits : int
        Of a value; 0 if each has its own length.
    is_wide : bool
        Whether offsets have 64 bits.
    test : ValueTest
        As `api.compiled_test` returns it; it fits values of these bits.
    passes_null : bool
        Whether null passes.
    """

    column: int
    field: LanceField
    leaf: LanceField
    bits: int
    is_wide: bool
    test: ValueTest
    passes_null: bool


def is_leaf(field: LanceField) -> bool:
    """Whether a field is one column, with all that is below it."""
    return not field.children or is_packed(field) or blob_kind(field) is not None


def leaves_of(field: LanceField) -> Iterator[Leaf]:
    """Yield the leaves of a field, in the order of the schema."""
    return _leaves(field, [], 1, False)


def _leaves(field: LanceField, above: list[tuple[bool, bool]], multiple: int, in_list: bool) -> Iterator[Leaf]:
    kind = field.logical_type
    is_list = not is_leaf(field) and (kind in _LISTS or kind == "map")
    layers = [(is_list, is_list and kind.startswith("large_")), *above]
    if is_leaf(field):
        yield Leaf(field, arrow_field(field).type, layers, multiple)
        return
    if kind.startswith("fixed_size_list:") and not in_list:
        multiple *= int(kind.rpartition(":")[2])
        if multiple > MOST_ITEMS:
            raise SchemaError(f"Field {field.name!r} has more than {MOST_ITEMS} items for each row.")
    for child in field.children:
        yield from _leaves(child, layers, multiple, in_list or is_list)


@lru_cache(1024)
def value_layout(type: pa.DataType) -> ValueLayout:
    """Return the memory layout of the values of a type.

    Raises
    ------
    SchemaError
        For a type that is not stored in one column.
    """
    if pa.types.is_dictionary(type):
        return value_layout(type.value_type)
    if pa.types.is_fixed_size_list(type):
        inner = value_layout(type.value_type)
        if inner.bits == 0 or inner.children:
            raise SchemaError(f"Lists of a fixed size of {type.value_type} are not supported in one column.")
        sizes = [type.list_size, *inner.list_sizes]
        if not 0 < math.prod(sizes) <= MOST_ITEMS:
            raise SchemaError(f"Values of {type} have no items, or more than {MOST_ITEMS}.")
        return inner._replace(list_sizes=sizes)
    if pa.types.is_struct(type):
        return _struct_layout([value_layout(type.field(i).type) for i in range(type.num_fields)])
    if pa.types.is_null(type):
        return ValueLayout(1, False, [], [])
    if pa.types.is_string(type) or type == pa.binary():
        return ValueLayout(0, False, [], [])
    if pa.types.is_large_string(type) or pa.types.is_large_binary(type):
        return ValueLayout(0, True, [], [])
    if pa.types.is_primitive(type) or pa.types.is_decimal(type) or pa.types.is_fixed_size_binary(type):
        return ValueLayout(_bits(type), False, [], [])
    raise SchemaError(f"Values of {type} are not stored in one column.")


def layout_to_test(field: LanceField) -> ValueLayout | None:
    """Return the layout of the values of a field that can be tested before they are decoded; None for other fields."""
    if not is_leaf(field) or blob_kind(field) is not None:
        return None
    try:
        found = value_layout(arrow_field(field).type)
    except SchemaError:
        return None
    return None if found.list_sizes or found.children else found


def _bits(type: Any) -> int:
    if type == pa.binary(0):
        raise SchemaError(f"Values of {type} have no bytes, so that none are stored.")
    if pa.types.is_fixed_size_binary(type):
        return int(type.byte_width) * 8
    return int(type.bit_width)


def _struct_layout(children: Sequence[ValueLayout]) -> ValueLayout:
    """Return the layout of a packed struct: rows of all fields, or fields of any length."""
    if any(c.bits == 0 for c in children):
        return ValueLayout(0, False, [], list(children))
    bits = sum(c.bits * math.prod(c.list_sizes) for c in children)
    if bits > 8 * MOST_ITEMS:
        raise SchemaError(f"A packed struct has {bits} bits in each row.")
    return ValueLayout(bits, False, [], list(children))
