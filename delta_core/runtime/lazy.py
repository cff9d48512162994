"""Names that are loaded from their modules on first use: the only place that imports modules by text.

A package does so with the names that it offers. A module named `parts` does it for the other modules of its package:
these import it, and write ``parts.read_checksum(...)``, if few tables or calls need the function. So a first read loads
nothing that it does not use. A package has a second such module (`file_parts`, `value_parts`) for those modules that
`parts` loads itself: one for both would be a cycle of imports. All of them have the same names three times, for type
checkers, in ``__all__`` and with the modules to load; tests compare these.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names", "load_object"]


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : Mapping of str to str
        Modules, and the names that each returns, with blanks between them. A module that returns its own last name
        returns itself.

    Raises
    ------
    AttributeError
        By what is returned, for a name that no module returns.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(home)
        value = module if home == f"{package}.{name}" and not hasattr(module, name) else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *home_of})


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
