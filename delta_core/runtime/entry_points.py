"""Entry points: what installed packages offer under the groups ``delta_core.*``, found in one look at ``sys.path``.

`importlib.metadata` finds the same, but importing it takes longer than all of the looking here. It serves if packages
are installed in other ways than as folders on ``sys.path``: in archives, or by an importer of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

from msgspec import Struct

from delta_core.runtime.lazy import load_object

__all__ = ["EntryPoint", "entry_groups", "entry_points", "installed_version"]

_OURS = "delta_core."
#: The name of our distribution, and the one that it had before. Both install the same packages: if both are
#: installed, metadata of the old one describes files that are gone.
_NAME, _FORMER_NAME = "delta_core_lake", "delta_core"


class EntryPoint(Struct, frozen=True):
    """A name under which a package offers an object.

    Parameters
    ----------
    value : str
        ``module:attribute``; without an attribute the module itself.
    folder : str
        The package's metadata.
    """

    name: str
    value: str
    group: str
    folder: str

    def load(self) -> Any:
        """Import and return the object."""
        return load_object(self.value.partition("[")[0])

    @property
    def dist(self) -> Any:
        """The `importlib.metadata.Distribution` that offers it."""
        from importlib.metadata import Distribution

        return Distribution.at(self.folder)


def entry_points(group: str) -> tuple[Any, ...]:
    """Return the entry points of a group; each has ``name``, ``value``, ``group``, ``dist`` and ``load()``.

    Of two packages of one name the first on ``sys.path`` counts. A process looks once a ``sys.path``.
    """
    return entry_groups().get(group, ())


@cache
def installed_version() -> str:
    """Return the version of our distribution."""
    ours = (p for points in entry_groups().values() for p in points if isinstance(p, EntryPoint))
    folder = next((p.folder for p in ours if _package_of(os.path.basename(p.folder)) == _NAME), None)
    for name in ("METADATA", "PKG-INFO"):
        if folder is None:
            break
        with suppress(OSError), open(os.path.join(folder, name), encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("Version: "):
                    return line[9:].strip()
    from importlib.metadata import version

    return version("delta-core-lake")


def entry_groups() -> Mapping[str, tuple[Any, ...]]:
    """Return our groups with their entry points."""
    return _groups(tuple(sys.path))


@cache
def _groups(path: tuple[str, ...]) -> Mapping[str, tuple[Any, ...]]:
    found: dict[str, list[Any]] = {}
    for point in _scan(path) if _is_plain(path) else _standard():
        if point.group.startswith(_OURS):
            found.setdefault(point.group, []).append(point)
    return {name: tuple(points) for name, points in found.items()}


def _is_plain(path: tuple[str, ...]) -> bool:
    finders = [f for f in sys.meta_path if f is not PathFinder and hasattr(f, "find_distributions")]
    return not finders and not any(os.path.isfile(p) or p.endswith(".egg") for p in path)


def _standard() -> Iterator[Any]:
    import importlib.metadata

    points = importlib.metadata.entry_points()
    found = [point for group in points.groups if group.startswith(_OURS) for point in points.select(group=group)]
    packages = [_normalized(point.dist.name) if point.dist is not None else "" for point in found]
    left_out = _FORMER_NAME if _NAME in packages else None
    yield from (point for point, package in zip(found, packages, strict=True) if package != left_out)


def _scan(path: tuple[str, ...]) -> Iterator[EntryPoint]:
    folders: dict[str, str] = {}
    for place in path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        start = os.path.join(place or ".", "")
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                folders.setdefault(_package_of(name), start + name)
    if _NAME in folders:
        folders.pop(_FORMER_NAME, None)
    for folder in folders.values():
        yield from _read(folder)


def _package_of(folder: str) -> str:
    return _normalized(folder[:-10].partition("-")[0])


def _normalized(package: str) -> str:
    # without a pattern, for a hundred packages at each start; nearly all names are as installers write them
    if package.isidentifier() and "__" not in package:
        return package.strip("_").lower()
    return "_".join(filter(None, package.replace("-", "_").replace(".", "_").split("_"))).lower()


def _read(folder: str) -> Iterator[EntryPoint]:
    try:
        # takes half as long as open(), for a hundred packages at each start
        file = os.open(f"{folder}/entry_points.txt", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return
    try:
        text = b""
        while more := os.read(file, 1 << 16):
            text += more
    except OSError:
        return
    finally:
        os.close(file)
    if b"delta_core." not in text:
        return
    group = ""
    for line in map(str.strip, text.decode().splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield EntryPoint(name.strip(), value.strip(), group, folder)
