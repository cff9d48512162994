"""Checks of what plugins return: the type of each field of a record, of each array, and of each action.

A record is checked once, when a hook returns it, by the annotations of its class. Nothing here takes time per file or
row: of an array, only its Arrow type and its length are checked.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pyarrow as pa
from msgspec import Struct

from delta_core.expressions.ast import Call, Cast, Column, FileConstant, FileStatistic, PartitionValue, PhysicalColumn
from delta_core.kernel.protocol.actions import ActionField, ActionKind
from delta_core.runtime.plugin_errors import contract_error

__all__ = ["Misfit", "check_array", "find_json_misfit", "find_misfit", "misfit_of_action", "shown"]

#: Records within records whose fields are checked too. Schemas are not: they can have very many columns.
_NESTED = (ActionField, ActionKind, Call, Cast, Column, FileConstant, FileStatistic, PartitionValue, PhysicalColumn)
#: Names that the modules of rules import for annotations of functions only, whose results are checked when they return.
_UNCHECKED = {"NDArray": list, "RowSet": object, "RowSets": object}
_SHOWN = 200
_NO_DEFAULT = object()


class Misfit(Struct, frozen=True):
    """A value of another type than expected.

    Parameters
    ----------
    where : str
        Its place, such as ``FillColumn.when``.
    found, expected : str
        The value, and what it should be.
    """

    where: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.where}={self.found}; expected {self.expected}"


#: Returns the first misfit in a value at a place, None if it fits.
_Check = Callable[[Any, str], "Misfit | None"]


def shown(value: Any) -> str:
    """Return a value for a message, cut off if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def find_misfit(record: Struct) -> Misfit | None:
    """Return the first field of a record whose value has another type than its annotation, None if all fit.

    Parameters
    ----------
    record : Struct
        A rule, or another record that a plugin returns.
    """
    kind = type(record)
    for name, default in _defaults(kind):
        value = getattr(record, name)
        if value is default or (type(value) is default and not value):
            continue
        found = _check_of_field(kind, name)(value, f"{kind.__name__}.{name}")
        if found is not None:
            return found
    return None


@cache
def _defaults(record: type[Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields and their defaults; of a default that is a new, empty container, the container's type."""
    names = record.__struct_fields__
    defaults = tuple(getattr(d, "factory", d) for d in record.__struct_defaults__)
    return tuple(zip(names, (_NO_DEFAULT,) * (len(names) - len(defaults)) + defaults, strict=True))


@cache
def _check_of_field(record: type[Struct], name: str) -> _Check:
    """Return the check of a field; made when it is needed first, because evaluating an annotation takes time."""
    hint = record.__annotations__[name]
    if hint == "str":
        return _instance_of(str)
    scope = vars(sys.modules[record.__module__])
    return _check_of(eval(hint, scope, _UNCHECKED) if isinstance(hint, str) else hint)  # noqa: S307 (our annotations)


def _anything(value: Any, where: str) -> Misfit | None:
    return None


@cache
def _check_of(hint: Any) -> _Check:
    """Return the check of an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return _anything
    if origin is Literal:
        return _one_of(arguments)
    if origin in (Union, UnionType):
        return _any_of(arguments)
    if origin is tuple:
        return _tuple_of(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_of(*arguments)
    if hint is Callable or origin is Callable or str(origin) == "<class 'collections.abc.Callable'>":
        return _function
    return _instance_of(hint if origin is None else origin)


def _one_of(values: tuple[Any, ...]) -> _Check:

    def check(value: Any, where: str) -> Misfit | None:
        fits = isinstance(value, str) and value in values
        return None if fits else Misfit(where, shown(value), _listed([repr(v) for v in values]))

    return check


def _any_of(hints: tuple[Any, ...]) -> _Check:
    # the check of a record's fields names the field that is wrong
    records: tuple[Any, ...] = tuple(h for h in hints if isinstance(h, type) and issubclass(h, Struct))
    checks = [_check_of(h) for h in hints if h not in records]

    def check(value: Any, where: str) -> Misfit | None:
        if isinstance(value, records):
            return find_misfit(value) if isinstance(value, _NESTED) else None
        fits = any(c(value, where) is None for c in checks)
        return None if fits else Misfit(where, shown(value), _listed([_name(h) for h in hints]))

    return check


def _tuple_of(hints: tuple[Any, ...]) -> _Check:
    of_any_length = len(hints) == 2 and hints[1] is Ellipsis
    checks = [_check_of(h) for h in hints if h is not Ellipsis]

    def check(value: Any, where: str) -> Misfit | None:
        if not isinstance(value, tuple) or not (of_any_length or len(value) == len(checks)):
            expected = f"a tuple of {_name(hints[0])}" if of_any_length else f"a tuple of {len(hints)} values"
            return Misfit(where, shown(value), expected)
        for i, part in enumerate(value):
            found = checks[0 if of_any_length else i](part, f"{where}[{i}]")
            if found is not None:
                return found
        return None

    return check


def _mapping_of(key: Any = Any, item: Any = Any) -> _Check:
    of_key, of_item = _check_of(key), _check_of(item)

    def check(value: Any, where: str) -> Misfit | None:
        if not isinstance(value, Mapping):
            return Misfit(where, shown(value), f"a mapping of {_name(key)} to {_name(item)}")
        for k, v in value.items():
            found = of_key(k, f"{where}: key") or of_item(v, f"{where}[{k!r}]")
            if found is not None:
                return found
        return None

    return check


def _function(value: Any, where: str) -> Misfit | None:
    return None if callable(value) else Misfit(where, shown(value), "a function")


def _instance_of(kind: type) -> _Check:
    is_nested = kind in _NESTED

    def check(value: Any, where: str) -> Misfit | None:
        # True is an int in Python, and another value in JSON and SQL
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            return Misfit(where, shown(value), _name(kind))
        return find_misfit(value) if is_nested else None  # type: ignore[arg-type]  # all of _NESTED are records

    return check


def _name(hint: Any) -> str:
    """Return an annotation as messages call it."""
    if hint is NoneType or hint is Any:
        return "None" if hint is NoneType else "any value"
    if not isinstance(hint, type) or get_origin(hint) is not None:
        return str(hint).replace("typing.", "")
    module = hint.__module__.partition(".")[0]
    # Arrow and Delta both have a DataType, and mixing them up is a common mistake
    return f"{module}.{hint.__name__}" if module == "pyarrow" else hint.__name__


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


# --- arrays --------------------------------------------------------------------------------


def check_array(values: Any, length: int, kind: pa.DataType, feature: str, hook: str, part: str) -> None:
    """Reject what a function of a rule returned, unless it is an array of a type and a length.

    Parameters
    ----------
    values : object
        The function's result.
    length : int
        The number of values that is expected.
    kind : pyarrow.DataType
        The type that is expected.
    feature, hook, part : str
        The feature and the hook of the rule, and the function, for the message.

    Raises
    ------
    HookContractError
        If it is something else.
    """
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        raise contract_error(feature, hook, part, f"returned {shown(values)}; expected a pyarrow.Array of {kind}")
    if len(values) != length or values.type != kind:
        raise contract_error(
            feature, hook, part, f"returned {len(values)} values of {values.type}; expected {length} of {kind}"
        )


# --- actions -------------------------------------------------------------------------------


def misfit_of_action(value: Any, kind: ActionKind) -> Misfit | None:
    """Return the first part of an action that its kind can't have, None if it fits.

    Parameters
    ----------
    value : object
        The action's fields, as JSON values.
    kind : ActionKind
        The kind, with the Arrow type that checkpoints store. Fields that the type lacks would be lost there.
    """
    if not isinstance(value, Mapping):
        return Misfit(kind.name, shown(value), "a dict of the action's fields")
    found = find_json_misfit(value, kind.name) if kind.type is None else _misfit_of_type(value, kind.type, kind.name)
    if found is not None:
        return found
    lacking = next((name for name in kind.key if value.get(name) is None), None)
    return None if lacking is None else Misfit(f"{kind.name}.{lacking}", "null", "a value: it identifies the action")


def _misfit_of_type(value: Any, kind: pa.DataType, where: str) -> Misfit | None:
    """Return the first part of a JSON value that is none of an Arrow type."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return _misfit_of_struct(value, kind, where)
    if pa.types.is_map(kind):
        if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
            return Misfit(where, shown(value), "a dict with keys of text")
        parts = ((v, kind.item_type, f"{where}[{k!r}]") for k, v in value.items())
        return next((f for p in parts if (f := _misfit_of_type(*p)) is not None), None)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if not isinstance(value, (list, tuple)):
            return Misfit(where, shown(value), "a list")
        elements = ((v, kind.value_type, f"{where}[{i}]") for i, v in enumerate(value))
        return next((f for p in elements if (f := _misfit_of_type(*p)) is not None), None)
    return None if _is_of_type(value, kind) else Misfit(where, shown(value), f"a value of {kind}")


def _misfit_of_struct(value: Any, kind: pa.DataType, where: str) -> Misfit | None:
    if not isinstance(value, Mapping):
        return Misfit(where, shown(value), "a dict")
    own = {f.name: f for f in kind}
    for name, part in value.items():
        if name not in own:
            return Misfit(f"{where}.{name}", shown(part), f"fields of {', '.join(own)} alone")
        found = _misfit_of_type(part, own[name].type, f"{where}.{name}")
        if found is not None:
            return found
    required = (f.name for f in own.values() if not f.nullable and value.get(f.name) is None)
    lacking = next(required, None)
    return None if lacking is None else Misfit(f"{where}.{lacking}", "null", "a value")


def _is_of_type(value: Any, kind: pa.DataType) -> bool:
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_integer(kind):
        is_signed = pa.types.is_signed_integer(kind)
        top = 1 << (kind.bit_width - is_signed)
        return isinstance(value, int) and not isinstance(value, bool) and (-top if is_signed else 0) <= value < top
    if pa.types.is_floating(kind):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return isinstance(value, str)
    return find_json_misfit(value, "") is None


def find_json_misfit(value: Any, where: str) -> Misfit | None:
    """Return the first part of a value that JSON can't contain as it is, None if there is none.

    Parameters
    ----------
    value : object
        The value.
    where : str
        Its place, for messages.
    """
    if isinstance(value, Mapping):
        odd = next((k for k in value if not isinstance(k, str)), None)
        if odd is not None:
            return Misfit(f"{where}: key", shown(odd), "keys of text")
        parts = ((v, f"{where}.{k}") for k, v in value.items())
        return next((f for p in parts if (f := find_json_misfit(*p)) is not None), None)
    if isinstance(value, (list, tuple)):
        elements = ((v, f"{where}[{i}]") for i, v in enumerate(value))
        return next((f for p in elements if (f := find_json_misfit(*p)) is not None), None)
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return None
    return Misfit(where, shown(value), "a JSON value")
