"""The definitions of two versions of a table: whether rows of the older one can be read by the newer one."""

from __future__ import annotations

from collections.abc import Callable

from delta_core.kernel.protocol.actions import Metadata
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType

__all__ = ["why_unreadable"]


#: Whether a part of a type may have become another one, or the function that decides it.
Widened = bool | Callable[[DataType, DataType], bool]


def why_unreadable(old: Metadata, new: Metadata, widened: Widened, name_key: str) -> str | None:
    """Return why rows of an old definition can't be read by a newer one, None if they can.

    Parameters
    ----------
    old, new : Metadata
        Of two versions, the older one first.
    widened : bool or function(DataType, DataType) -> bool
        Whether types may differ: the table has type widening, and a reader of its files checks each file's type.
    name_key : str
        The key of a field's metadata with the column's name in files, which distinguishes columns of one name.
    """
    if old.partition_columns != new.partition_columns:
        return f"the partition columns were {list(old.partition_columns)}"
    return _unreadable_struct(old.schema, new.schema, "", widened, name_key)


def _unreadable_struct(old: StructType, new: StructType, prefix: str, widened: Widened, key: str) -> str | None:
    names = {f.name: f for f in new.members}
    for f in old.members:
        column = f"{prefix}{f.name}"
        if f.name not in names:
            return f"column {column} was dropped or renamed"
        other = names.pop(f.name)
        if f.metadata.get(key, other.metadata.get(key)) != other.metadata.get(key):
            return f"column {column} was dropped and added again"
        if f.nullable and not other.nullable:
            return f"column {column} became NOT NULL"
        why = _unreadable_type(f.type, other.type, column, widened, key)
        if why:
            return why
    added = [f.name for f in names.values() if not f.nullable]
    return f"column {prefix}{added[0]} was added NOT NULL" if added else None


def _unreadable_type(old: DataType, new: DataType, column: str, widened: Widened, key: str) -> str | None:
    if isinstance(old, StructType) and isinstance(new, StructType):
        return _unreadable_struct(old, new, f"{column}.", widened, key)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return _unreadable_type(old.element_type, new.element_type, f"{column}.element", widened, key)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return _unreadable_type(old.key_type, new.key_type, f"{column}.key", widened, key) or _unreadable_type(
            old.value_type, new.value_type, f"{column}.value", widened, key
        )
    primitives = isinstance(old, PrimitiveType) and isinstance(new, PrimitiveType)
    # a void column holds nothing but nulls
    if old == new or (primitives and old == PrimitiveType("void")):
        return None
    if primitives and (widened(old, new) if callable(widened) else widened):
        return None
    return f"column {column} changed its type from {old.type} to {new.type}"
