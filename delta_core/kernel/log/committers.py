"""Committers of stores, by entry point: what makes commits safe if a store itself does not.

An entry point of the group ``delta_core.committers``, named after a URI's scheme (``file`` for local paths), is a
function of a storage and the options that the table was opened with. It returns a committer if it is configured for
this store, else None. The committer may have a method ``recover()``, called before the log is listed: it publishes to
the log what was committed and is not there yet.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_core.errors import PluginConflictError, PluginError
from delta_core.runtime.entry_points import entry_points

if TYPE_CHECKING:
    from delta_core.engines.interface import Storage

__all__ = ["COMMITTERS_GROUP", "find_committer"]

COMMITTERS_GROUP = "delta_core.committers"


def find_committer(storage: Storage, options: Mapping[str, Any] | None) -> Any | None:
    """Return the committer that is configured for a store, None if the store's own put-if-absent is to do.

    Does no I/O.

    Parameters
    ----------
    storage : Storage
        The table's store.
    options : Mapping, optional
        The options of the file system.

    Raises
    ------
    PluginConflictError
        If two are configured.
    PluginError
        If a committer can't be imported.
    """
    scheme, separator, _ = storage.root.partition("://")
    found: dict[str, Any] = {}
    for point in _points().get(scheme.lower() if separator else "file", ()):
        try:
            made = point.load()(storage, options or {})
        except ImportError as e:
            raise PluginError(
                f"Committer {point.value!r} can't be imported: {e}. Reinstall or remove its package."
            ) from e
        if made is not None:
            found[point.value] = made
    if len(found) > 1:
        raise PluginConflictError(
            f"Committers {' and '.join(found)} are both configured for {storage.root}; configure one."
        )
    return next(iter(found.values()), None)


@functools.cache
def _points() -> Mapping[str, tuple[Any, ...]]:
    """Return the entry points by scheme."""
    points: dict[str, tuple[Any, ...]] = {}
    for point in entry_points(COMMITTERS_GROUP):
        points[point.name.lower()] = (*points.get(point.name.lower(), ()), point)
    return points
