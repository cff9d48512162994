"""What a package called ``deltalake`` has: each public callable and the parameters of its signature."""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

__all__ = ["Surface", "public_surface"]

#: The parameters of each callable by its dotted name, with ``*`` before those by keyword only; None for other values.
Surface = dict[str, list[str] | None]

_MODULES = ("", "schema", "exceptions", "query", "table", "transaction", "writer", "writer.properties", "fs")
_SPECIAL = ("__arrow_c_schema__", "__datafusion_table_provider__")


def public_surface() -> Surface:
    """Return the callables, properties and classes of the ``deltalake`` that this process imports."""
    return dict(sorted(_everything()))


def _everything() -> Iterator[tuple[str, list[str] | None]]:
    seen: set[int] = set()
    for name in _MODULES:
        module = importlib.import_module(f"deltalake.{name}" if name else "deltalake")
        for attribute in _exported(module):
            value = getattr(module, attribute)
            if id(value) in seen:
                continue
            seen.add(id(value))
            if inspect.isclass(value):
                yield attribute, None if issubclass(value, enum.Enum) else _parameters(value)
                for member in (n for n in dir(value) if not n.startswith("_") or n in _SPECIAL):
                    yield f"{attribute}.{member}", _parameters(inspect.getattr_static(value, member))
            elif callable(value):
                yield attribute, _parameters(value)


def _exported(module: Any) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            n
            for n, v in vars(module).items()
            if (inspect.isclass(v) or inspect.isfunction(v)) and v.__module__ == module.__name__
        ]
    return sorted(n for n in names if not n.startswith("_"))


def _parameters(value: Any) -> list[str] | None:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if not callable(value):
        return None
    try:
        found = inspect.signature(value).parameters.values()
    except (ValueError, TypeError):
        return []
    return [
        {p.KEYWORD_ONLY: "*", p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        for p in found
        if p.name not in ("self", "cls")
    ]
