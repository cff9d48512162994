"""From a table's place to the listing of its log, by way of ``_last_checkpoint``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from delta_core.kernel.log.hint import Hint
from delta_core.kernel.log.names import LOG_DIRECTORY, checkpoint_prefix, parse_names
from delta_core.kernel.plugins.plans import LogFile

if TYPE_CHECKING:
    from delta_core.engines.interface import Storage

__all__ = ["LogListing", "list_log"]


class LogListing(Struct, frozen=True):
    """The files of a log from one version on.

    Parameters
    ----------
    start : int
        The version at which the listing began; 0 for the whole log.
    """

    files: tuple[LogFile, ...]
    start: int
    hint: Hint | None


def list_log(storage: Storage, start: int = 0, hint: Hint | None = None) -> LogListing:
    """List the log from the files of version ``start`` on. One call (pages not counted).

    Parameters
    ----------
    storage : Storage
        The table's store.
    start : int
        The first version.
    hint : Hint, optional
        The hint that ``start`` was taken from.
    """
    found = storage.list_from(LOG_DIRECTORY, checkpoint_prefix(start) if start > 0 else "")
    files = parse_names(found.names, found.sizes, found.modified_ms)
    if found.tags is not None:
        tags = dict(zip(found.names, found.tags, strict=True))
        files = [replace(f, tag=tags[f.name]) for f in files]
    return LogListing(tuple(f for f in files if f.end_version >= start), start, hint)
