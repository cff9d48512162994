"""Which type changes are widenings, and whether a schema lists others."""

from collections.abc import Mapping
from typing import Any

from delta_core.api import (
    DataType,
    PrimitiveType,
    Schema,
    SchemaError,
    TypeChangeError,
    format_path,
    parse_decimal,
    walk,
)

__all__ = ["TYPE_CHANGES", "check_type_changes", "is_readable", "is_widening"]

TYPE_CHANGES = "delta.typeChanges"
_INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
#: Whole digits of the decimals to which a column may change: by these every reader has room for what files store.
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
#: Whole digits that hold every value.
_LEAST_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_FURTHER_CHANGES = frozenset(
    {
        ("float", "double"),
        ("byte", "double"),
        ("short", "double"),
        ("integer", "double"),
        ("date", "timestamp_ntz"),
        ("date", "timestampNtz"),
        ("date", "timestampNTZ"),
    }
)
_KNOWN = frozenset({*_INTEGERS, "float", "double", "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"})


def is_widening(old: str, new: str) -> bool:
    """Whether every value of a primitive type is one of the other. Protocol: Type Widening, the supported changes."""
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS[old] < _INTEGERS[new]
    target = parse_decimal(new)
    if target is None:
        return (old, new) in _FURTHER_CHANGES
    precision, scale = target
    source = parse_decimal(old)
    if source is not None:
        more_digits, more_scale = precision - source[0], scale - source[1]
        return more_digits >= more_scale >= 0 and (more_digits, more_scale) != (0, 0)
    return old in _DIGITS and precision - _DIGITS[old] >= scale >= 0


def is_readable(old: str, new: str) -> bool:
    """Return whether every value of a primitive type is one of the other, also if the protocol lists no such change."""
    target = parse_decimal(new)
    narrow = target is not None and old in _LEAST_DIGITS and target[0] - target[1] >= _LEAST_DIGITS[old]
    return narrow or is_widening(old, new)


def check_type_changes(schema: Schema) -> None:
    """Reject a schema that lists a type change which is not a widening.

    Raises
    ------
    TypeChangeError
        For a change that the feature does not allow; the message names the column and the change.
    SchemaError
        If ``delta.typeChanges`` is not a list of changes.

    Protocol
    --------
    Reader Requirements for Type Widening
    """
    for path, f in walk(schema):
        changes = f.metadata.get(TYPE_CHANGES)
        if changes is None:
            continue
        if not isinstance(changes, (list, tuple)):
            raise SchemaError(f"Column {format_path(path)} has {TYPE_CHANGES}={changes!r}, expected a list.")
        for change in changes:
            _check(format_path(path), change, f.type)


def _check(column: str, change: Any, now: DataType) -> None:
    old, new = (change.get(k) if isinstance(change, Mapping) else None for k in ("fromType", "toType"))
    if not isinstance(old, str) or not isinstance(new, str):
        raise SchemaError(f"Column {column} has a type change {change!r}, expected one with fromType and toType.")
    if not is_readable(old, new) and not _leads_nowhere(old, new, change, now):
        where = f"{column}.{change['fieldPath']}" if change.get("fieldPath") else column
        raise TypeChangeError(
            f"Column {where} was changed from {old} to {new}, which feature typeWidening does not provide here: files "
            "written before the change can't be read as the new type for certain. Rewrite the table with the engine "
            "that made the change, or upgrade delta-core-lake.",
            feature="typeWidening",
            column=where,
            from_type=old,
            to_type=new,
        )


def _leads_nowhere(old: str, new: str, change: Mapping[str, Any], now: DataType) -> bool:
    """Return whether a change names a type that does not exist, while the column's own type takes the old values.

    No file holds such a type; each file's own type is checked against the column's when it is read.
    """
    if new in _KNOWN or parse_decimal(new) is not None or change.get("fieldPath") or not isinstance(now, PrimitiveType):
        return False
    return old == now.type or is_readable(old, now.type)
