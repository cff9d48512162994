"""Which parts of nested columns are requested: trees of names over logical and physical types at once."""

from __future__ import annotations

from typing import Union

from delta_core.schema.fields import Path
from delta_core.schema.types import ArrayType, DataType, Field, MapType, StructType

__all__ = ["Tree", "add_path", "prune"]

#: None: everything below; else the requested fields, each with its own tree.
Tree = Union[None, "dict[str, Tree]"]
_NOTHING: dict[str, Tree] = {}


def add_path(tree: Tree, path: Path) -> Tree:
    """Return the tree that wants a path too; an absent tree is given as an empty dict."""
    if tree is None or not path:
        return None
    return {**tree, path[0]: add_path(tree.get(path[0], _NOTHING), path[1:])}


def prune(logical: DataType, physical: DataType, tree: Tree) -> tuple[DataType, DataType]:
    """Return the parts that a tree wants of two parallel types; fields keep the schema's order.

    Of a map the key always stays whole.
    """
    if tree is None:
        return logical, physical
    if isinstance(logical, StructType) and isinstance(physical, StructType):
        pairs = [
            (_field(a, types[0]), _field(b, types[1]))
            for a, b in zip(logical.members, physical.members, strict=True)
            if a.name in tree and (types := prune(a.type, b.type, tree[a.name]))
        ]
        return StructType(a for a, _ in pairs), StructType(b for _, b in pairs)
    if isinstance(logical, ArrayType) and isinstance(physical, ArrayType) and "element" in tree:
        a, b = prune(logical.element_type, physical.element_type, tree["element"])
        return ArrayType(a, logical.contains_null), ArrayType(b, physical.contains_null)
    if isinstance(logical, MapType) and isinstance(physical, MapType) and "value" in tree and "key" not in tree:
        a, b = prune(logical.value_type, physical.value_type, tree["value"])
        nulls = logical.value_contains_null
        return MapType(logical.key_type, a, nulls), MapType(physical.key_type, b, nulls)
    return logical, physical


def _field(f: Field, t: DataType) -> Field:
    return Field(f.name, t, f.nullable, f.metadata)
