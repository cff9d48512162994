"""The names of the `deltalake` package for programs and libraries that import them by that name.

`install_as_deltalake` registers them in the process, as PyMySQL does for MySQLdb: afterwards ``import deltalake`` and
``from deltalake.table import ...`` return this library's objects. The modules here mirror those of `deltalake` 1.6.6,
and have what public libraries import of them. ``python -m delta_core.as_deltalake`` installs them for a script.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from delta_core import deltalake_names
from delta_core.errors import UnsupportedOperationError

__all__ = ["VERSION", "install_as_deltalake", "is_installed"]

#: The version of `deltalake` whose names are here; libraries compare it with what they need.
VERSION = "1.6.6"
_NAME = "deltalake"
#: Modules by their name there, and the module here that has the names.
_MODULES = {
    "": "package",
    "_internal": "internal",
    "_util": "util",
    "exceptions": "exceptions",
    "fs": "fs",
    "fs.fs_handler": "fs",
    "query": "query",
    "schema": "schema",
    "table": "table",
    "transaction": "transaction",
    "warnings": "warnings",
    "writer": "writer",
    "writer._conversion": "writer",
    "writer._utils": "writer",
    "writer.convert_to": "writer",
    "writer.properties": "writer",
    "writer.writer": "writer",
}


def install_as_deltalake(*, arro3: bool = False) -> None:
    """Register this library under the name ``deltalake`` in this process; a second call does nothing.

    Parameters
    ----------
    arro3 : bool
        Whether `DeltaTable.get_add_actions`, `DeltaTable.load_cdf` and `QueryBuilder.execute` return tables and readers
        of `arro3`, as in `deltalake`, in all of the process; by default those of PyArrow.

    Raises
    ------
    MissingDependencyError
        If `arro3` is requested, and not installed.
    UnsupportedOperationError
        If the `deltalake` package was imported before: modules that hold its classes would not see those of this
        library.

    Examples
    --------
    >>> import subprocess, sys
    >>> program = "import delta_core; delta_core.install_as_deltalake(); import deltalake; print(deltalake.DeltaTable)"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip()
    "<class 'delta_core.table.delta_table.DeltaTable'>"
    """
    if arro3:
        deltalake_names.arro3_results.return_arro3()
    if is_installed():
        return
    found = sys.modules.get(_NAME)
    if found is not None:
        raise UnsupportedOperationError(
            f"Found the deltalake package {getattr(found, '__version__', '')} imported already, from "
            f"{getattr(found, '__file__', None)}. Import delta_core.as_deltalake before everything that imports "
            "deltalake, such as polars, dask_deltatable or dlt, or run the script by python -m delta_core.as_deltalake."
        )
    sys.meta_path.insert(0, _Finder())


def is_installed() -> bool:
    """Return whether ``deltalake`` is this library in this process."""
    return any(isinstance(f, _Finder) for f in sys.meta_path)


class _Finder(MetaPathFinder):
    """Finds the modules of `deltalake`, and what `importlib.metadata` reports of it."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        if package != _NAME or rest not in _MODULES:
            return None
        is_package = any(m.startswith(f"{rest}." if rest else "") and m != rest for m in _MODULES)
        return ModuleSpec(name, _Loader(_MODULES[rest]), origin="delta_core", is_package=is_package)

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """Return the distribution ``deltalake`` where it is requested by name."""
        if context is not None and context.name == _NAME:
            yield _Distribution()


class _Loader(Loader):
    """Fills a module with the names of one here."""

    def __init__(self, source: str) -> None:
        self._source = source

    def exec_module(self, module: ModuleType) -> None:
        source = getattr(deltalake_names, self._source)
        names = [n for n in dir(source) if not n.startswith("__") and n not in _OWN]
        module.__doc__ = source.__doc__
        vars(module).update((n, getattr(source, n)) for n in names)
        vars(module)["__all__"] = list(source.__all__)
        vars(module)["__version__"] = VERSION

        def missing(name: str) -> Any:
            raise AttributeError(
                f"module {module.__name__!r}, which is delta_core in this process, has no attribute {name!r}. "
                "docs/moving-from-deltalake.md lists what it does not have."
            )

        vars(module)["__getattr__"] = missing


class _Distribution(Distribution):
    """The facts of `importlib.metadata` about ``deltalake``."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).parent / str(path)


#: Names that modules here have for themselves.
_OWN = frozenset({"annotations"})
