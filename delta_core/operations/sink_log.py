"""The log that a streaming query of Spark keeps of the files that it wrote to a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import RangeRequest
from delta_core.errors import InvalidArgumentError

__all__ = ["files_of_sink"]

_FOLDER = "_spark_metadata"
_BATCH = re.compile(r"(\d+)(\.compact)?")


def files_of_sink(storage: Storage, paths: list[str]) -> pa.Array | None:
    """Return which files of a folder the log of a streaming query names; None if the folder has no such log.

    Other files are those of batches that failed, whose rows may be in another file too.

    Parameters
    ----------
    storage : Storage
        Of the folder.
    paths : list of str
        The files, from the root of the folder.

    Returns
    -------
    pyarrow.Array or None
        bool[len(paths)].

    Raises
    ------
    InvalidArgumentError
        A file of the log is not a file of the folder, or the log can't be read.
    """
    names = _batches(storage.list_from(_FOLDER).names)
    if not names:
        return None
    wanted: dict[str, list[str]] = {}
    for place in _named(storage, names):
        wanted.setdefault(place.rpartition("/")[2], []).append(place)
    found = [_place_of(path, wanted) for path in paths]
    missing = sorted({place for places in wanted.values() for place in places} - set(found))
    if missing:
        raise InvalidArgumentError(
            f"The log of the streaming query that wrote the folder ({_FOLDER}) names {missing[0]}, which is not there. "
            "Restore the file; to take the files that are there instead, pass use_sink_log=False.",
            path=missing[0],
        )
    return pa.array([place != "" for place in found], pa.bool_())


def _batches(names: list[str]) -> list[str]:
    """Return the files that have the whole log: the last compacted one, and those after it."""
    found = {int(m[1]): name for name in sorted(names) if (m := _BATCH.fullmatch(name)) is not None}
    last = max((n for n, name in found.items() if name.endswith(".compact")), default=-1)
    return [f"{_FOLDER}/{found[n]}" for n in sorted(found) if n >= last]


def _named(storage: Storage, names: list[str]) -> Iterator[str]:
    """Yield the files that were added and not deleted since, as the log spells them, decoded."""
    files: dict[str, None] = {}
    for name, data in zip(names, storage.read([RangeRequest(name) for name in names]), strict=True):
        for line in bytes(data).decode().splitlines()[1:]:
            try:
                action = json.loads(line)
                path = unquote(action["path"])
            except (ValueError, KeyError, TypeError) as e:
                raise InvalidArgumentError(
                    f"{name} is no log of a streaming query: found the line {line[:100]!r}.", path=name
                ) from e
            if action.get("action") == "delete":
                files.pop(path, None)
            else:
                files[path] = None
    yield from files


def _place_of(path: str, wanted: dict[str, list[str]]) -> str:
    """Return the file of the log that a path from the root is the end of, empty if none is: a folder may be moved."""
    places = wanted.get(path.rpartition("/")[2], ())
    return next((place for place in places if place.endswith(f"/{path}")), "")
