"""The members of the public API, found by program: names of the package, and classes that a table returns."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import delta_core
from delta_core import DeltaTable, transaction
from delta_core.kernel.scan import Scan

__all__ = ["OF_THE_KERNEL", "Member", "members", "methods", "public_objects"]

#: Members that no program calls: only commits and operations of the library do, with objects of the kernel.
OF_THE_KERNEL = {
    "Snapshot.check_id_of",
    "Snapshot.dropped_rows",
    "Snapshot.redefined",
    "SnapshotContents.reload",
    "Snapshot.row_sets",
    "SnapshotContents.tombstone_tables",
    "Snapshot.with_checkpoint",
    "Snapshot.with_checksum",
    "Snapshot.with_commits",
}


class Member(NamedTuple):
    """A class or function of the public API, or a public method or property of such a class."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.name


def _function(value: Any) -> Any:
    """Return what carries the docstring of a method or property."""
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return getattr(value, "func", value)  # of a cached property


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties, and ``__iter__``, of a class and of its bases in delta_core."""
    bases = [b for b in kind.__mro__ if b.__module__.startswith("delta_core")]
    found = {name: _function(value) for base in reversed(bases) for name, value in vars(base).items()}
    for name, function in found.items():
        if inspect.isfunction(function) and (name == "__iter__" or not name.startswith("_")):
            yield name, function


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return the module and the name that each name of a module is imported from, also for type checkers alone."""
    parsed = ast.parse(inspect.getsource(importlib.import_module(module)))
    statements = [n for n in ast.walk(parsed) if isinstance(n, ast.ImportFrom) and n.module]
    return {a.asname or a.name: (str(n.module), a.name) for n in statements for a in n.names}


def _returned(function: Any) -> Iterator[type]:
    """Yield the public classes of delta_core that an annotation names as returned."""
    module = importlib.import_module(function.__module__)
    for dotted in re.findall(r"[A-Za-z_][\w.]*", str(function.__annotations__.get("return", ""))):
        owner, _, name = dotted.rpartition(".")
        holder = vars(module).get(owner, module) if owner else module
        found = getattr(holder, name, None)
        if found is None and name in _imports(function.__module__):
            home, original = _imports(function.__module__)[name]
            found = getattr(importlib.import_module(home), original) if home.startswith("delta_core") else None
        if inspect.isclass(found) and found.__module__.startswith("delta_core") and not name.startswith("_"):
            yield found


def public_objects() -> dict[str, Any]:
    """Return the classes and functions of the package, and the classes that a table, its streams and scans return."""
    offered = {name: getattr(home, name) for home in (transaction, delta_core) for name in home.__all__}
    found = {name: value for name, value in offered.items() if inspect.isclass(value) or inspect.isfunction(value)}
    stream = next(kind for kind in _returned(DeltaTable.follow) if kind.__name__ == "TableStream")
    for kind in (DeltaTable, stream):
        for name, function in methods(kind):
            if name != "__iter__" or kind is stream:
                found |= {k.__name__: k for k in _returned(function)}
    return found | {k.__name__: k for k in _returned(Scan.explain)}


def members() -> list[Member]:
    """Return every member, those that two classes share once."""
    found: dict[str, Member] = {}
    for name, value in public_objects().items():
        found.setdefault(f"{value.__module__}.{value.__qualname__}", Member(name, inspect.getdoc(value) or ""))
        for method, function in methods(value) if inspect.isclass(value) else ():
            if method != "__iter__":
                own = Member(f"{function.__qualname__}", inspect.cleandoc(function.__doc__ or ""))
                found.setdefault(f"{function.__module__}.{function.__qualname__}", own)
    return [m for m in found.values() if m.name not in OF_THE_KERNEL]
