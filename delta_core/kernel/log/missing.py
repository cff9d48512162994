"""Why there is no table at a place: for the message alone, after a log was not found."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from delta_core.engines.interface import Storage
from delta_core.errors import EngineError, did_you_mean
from delta_core.kernel.log.names import LOG_DIRECTORY

__all__ = ["why_no_table", "why_no_table_on_store"]

#: Of how many entries a folder's content is determined by.
_MOST = 10_000
#: The same for places on other stores: what one call lists.
_FEW = 1000


def why_no_table(place: str) -> str:
    """Return what is at a local path instead of a table, as a sentence; empty if that cannot be determined.

    A wrong path, a file, a part of a table and a folder without a log are distinguished.

    Parameters
    ----------
    place : str
        A local path.
    """
    path = Path(place)
    with contextlib.suppress(OSError):
        if path.is_file():
            return _part_of(path) or "It is a file; expected the folder that contains _delta_log."
        if not path.exists():
            return _of_missing(path)
        names = _names(path)
        if LOG_DIRECTORY not in names:
            return _part_of(path) or _of_folder(names)
    return ""


def why_no_table_on_store(storage: Storage) -> str:
    """Return what a store has at a table's place instead of a log, as a sentence; empty if that takes many calls.

    Parameters
    ----------
    storage : Storage
        The table's store.
    """
    try:
        names = storage.first_names(_FEW)
    except EngineError:
        return ""
    if names is None or any(n.startswith(LOG_DIRECTORY) for n in names):
        return ""
    if not names:
        return "The store has nothing at this place: check the path."
    data = sum(n.endswith(".parquet") for n in names)
    more = "at least " if len(names) == _FEW else ""
    found = f"; {more}{data} Parquet file{'s are' if data > 1 else ' is'} below it" if data else ""
    return f"The place has no {LOG_DIRECTORY}{found}."


def _of_missing(path: Path) -> str:
    parent = path.absolute().parent
    if not parent.is_dir():
        return f"There is no folder {str(parent)!r}."
    return f"There is no folder of this name.{did_you_mean(path.name, _names(parent))}"


def _of_folder(names: Sequence[str]) -> str:
    if not names:
        return "The folder is empty."
    data = sum(n.endswith(".parquet") for n in names)
    text = f"The folder has no {LOG_DIRECTORY}"
    return f"{text}; {data} Parquet file{'s are' if data > 1 else ' is'} in it." if data else f"{text}."


def _part_of(path: Path) -> str:
    """Return the advice to use the table's root for a path below it."""
    for above in path.absolute().parents:
        if (above / LOG_DIRECTORY).is_dir():
            return f"It is a part of the table at {str(above)!r}: use that path."
    return ""


def _names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry, _ in zip(entries, range(_MOST), strict=False)]
