"""timestampNtz: the type of timestamps without a time zone. Protocol: Timestamp without timezone."""

from collections.abc import Iterable

from delta_core.api import TIMESTAMP_NTZ, PrimitiveType, TableFeature, TableState, TypeDef, hookimpl, walk

__all__ = ["FEATURE"]

_NAMES = frozenset((TIMESTAMP_NTZ.name, *TIMESTAMP_NTZ.aliases))


def _is_active(table: TableState) -> bool:
    return any(isinstance(f.type, PrimitiveType) and f.type.type in _NAMES for _, f in walk(table.schema))


FEATURE = TableFeature(
    "timestampNtz", "reader+writer", "Columns may hold timestamps without a time zone.", active=_is_active
)


@hookimpl
def primitive_types() -> Iterable[TypeDef]:
    return (TIMESTAMP_NTZ,)
