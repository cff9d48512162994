"""Which columns a change of metadata assigns another type: each such change is evaluated for the features."""

from __future__ import annotations

from delta_core.errors import TypeChangeError
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.schema.fields import Path, format_path
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType

__all__ = ["check_type_changes"]

_VOID = PrimitiveType("void")
#: A type under logical and under physical names.
_Both = tuple[DataType, DataType]


def check_type_changes(previous: TableState, table: TableState, plugins: PluginSet, registry: PluginRegistry) -> None:
    """Reject a column whose type changes, unless a feature accepts it and none needs it; ``void`` may become anything.

    Columns are the same if files hold them under one physical name.

    Raises
    ------
    TypeChangeError
        For a change that no feature of the table allows.
    """
    old, new = ((s.schema, s.column_map.physical) for s in (previous, table))
    changed: list[Path] = []

    def visit(before: _Both, after: _Both, path: Path) -> None:
        if after[0] == before[0]:
            return
        if before[0] == _VOID:
            changed.append(path)
        elif isinstance(before[1], PrimitiveType) and isinstance(after[1], PrimitiveType):
            if not plugins.single("accept_type_change", False, table=table, path=path, old=before[0], new=after[0]):
                _reject(path, before[0], after[0], registry)
            changed.append(path)
        elif type(before[1]) is not type(after[1]) and not _are_structs(before[1], after[1]):
            _reject(path, before[0], after[0], registry)
        else:
            known = _parts(before)
            for key, (name, part) in _parts(after).items():
                if key in known:
                    visit(known[key][1], part, (*path, name))

    visit(old, new, ())
    if changed:
        plugins.check("check_type_changes", table=table, paths=tuple(changed))


def _are_structs(first: DataType, second: DataType) -> bool:
    return isinstance(first, StructType) and isinstance(second, StructType)


def _parts(both: _Both) -> dict[str, tuple[str, _Both]]:
    """Return the parts of a type by physical name, each with its logical one."""
    logical, physical = both
    if isinstance(logical, StructType) and isinstance(physical, StructType):
        pairs = zip(logical.members, physical.members, strict=True)
        return {p.name: (f.name, (f.type, p.type)) for f, p in pairs}
    if isinstance(logical, ArrayType) and isinstance(physical, ArrayType):
        return {"element": ("element", (logical.element_type, physical.element_type))}
    if isinstance(logical, MapType) and isinstance(physical, MapType):
        return {
            "key": ("key", (logical.key_type, physical.key_type)),
            "value": ("value", (logical.value_type, physical.value_type)),
        }
    return {}


def _reject(path: Path, old: DataType, new: DataType, registry: PluginRegistry) -> None:
    column = format_path(path)
    raise TypeChangeError(
        f"Column {column} is of type {old.type} and would become {new.type}, which no feature of the table allows: its "
        "files could not be read any more. Keep the type, or overwrite table and schema"
        + registry.remedies("type_change")
        + ".",
        column=column,
        from_type=old.type,
        to_type=new.type,
    )
