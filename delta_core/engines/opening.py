"""The engine of a place: made by the entry point that a caller names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from delta_core.engines.engine import Engine
from delta_core.errors import MissingDependencyError
from delta_core.runtime.entry_points import entry_points

__all__ = ["ENGINES_GROUP", "make_engine"]

ENGINES_GROUP = "delta_core.engines"


def make_engine(
    name: str,
    uri: str,
    storage_options: Mapping[str, Any] | None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> Engine:
    """Make the engine that an entry point names.

    Parameters
    ----------
    name : str
        The name of an entry point of the group ``delta_core.engines``.
    uri : str
        The place of the table.
    storage_options : Mapping, optional
        Options of the file system: credentials, endpoints.
    allow_external : sequence of str or False, optional
        Prefixes of places outside the root that may be read, as for `open_snapshot`.

    Raises
    ------
    MissingDependencyError
        If no installed package provides the engine.
    """
    points = entry_points(ENGINES_GROUP)
    found = next((p for p in points if p.name == name), None)
    if found is None:
        names = ", ".join(sorted(p.name for p in points)) or "none"
        raise MissingDependencyError(f"No engine {name!r} is installed; there is: {names}.", engine=name)
    more = {} if allow_external is None else {"allow_external": allow_external}
    engine: Engine = found.load()(uri, storage_options, **more)
    return engine
