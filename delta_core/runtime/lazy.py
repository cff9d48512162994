"""Names that are loaded from their modules on first use: the only place that imports modules by text.

A package does so with the names that it offers. A module named `parts` does it for the other modules of its package:
these import it, and write ``parts.read_checksum(...)``, if few tables or calls need the function. So a first read loads
nothing that it does not use. A package has a second such module (`file_parts`, `value_parts`) for those modules that
`parts` loads itself: one for both would be a cycle of imports.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["lazy_imports", "load_object"]

_lock = threading.RLock()


class lazy_imports:  # noqa: N801  # used like a function
    """A block of imports at the end of a module, each of whose names is loaded when it is first requested.

    The statements are ordinary ones, ``from home import name as name``, so that type checkers and tools see them. They
    import nothing: the module gets ``__getattr__``, ``__dir__`` and ``__all__``, with the names of the block beside
    those that ``__all__`` lists already.

    Parameters
    ----------
    package : str
        The module's ``__name__``.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._names = vars(sys.modules[package])
        self._homes: dict[str, _Late] = {}

    def __enter__(self) -> None:
        # held for the whole block, which imports nothing: another thread's block must not restore this one's function
        _lock.acquire()
        self._import = builtins.__import__
        builtins.__import__ = self._noted

    def __exit__(self, *_: object) -> None:
        builtins.__import__ = self._import
        _lock.release()
        names = self._names
        self._homes = {name: late for name, late in names.items() if isinstance(late, _Late)}
        for name in self._homes:
            del names[name]
        names["__all__"] = [*names.get("__all__", ()), *self._homes]
        names["__getattr__"], names["__dir__"] = self._load, self._listed

    def _noted(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if globals is self._names:
            return _Home(name, fromlist or ())
        return self._import(name, globals, locals, fromlist, level)

    def _load(self, name: str) -> Any:
        late = self._homes.get(name)
        if late is None:
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
        value = self._names[name] = late.load(self._package)
        return value

    def _listed(self) -> list[str]:
        return sorted({*self._names, *self._homes})


class _Home:
    """A module in a block of `lazy_imports`."""

    def __init__(self, module: str, names: Sequence[str]) -> None:
        # at once: hundreds of names at each start, each of which a method would be called for
        self.__dict__ = {name: _Late(module, name) for name in names}


class _Late:
    """A name of a module that is not loaded yet."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def load(self, package: str) -> Any:
        """Import the module and return its object of this name: a module of the package itself, if it is one."""
        if self._module == package:
            return importlib.import_module(f"{package}.{self._name}")
        return getattr(importlib.import_module(self._module), self._name)


def load_object(reference: str) -> Any:
    """Import an object by the text that a plugin or an entry point has for it.

    Parameters
    ----------
    reference : str
        ``module:attribute``, the attribute with dots in it or left out: then the module itself.

    Raises
    ------
    ImportError, AttributeError
        There is no such module, or nothing of that name in it.
    """
    module, _, attributes = reference.partition(":")
    found: Any = importlib.import_module(module.strip())
    for attribute in filter(None, attributes.strip().split(".")):
        found = getattr(found, attribute)
    return found
