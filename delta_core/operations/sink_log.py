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
_VERSION = "v1"
_REMEDY = (
    "Restore the file; to take the files that are there instead, pass use_sink_log=False (on the command line "
    "--no-sink-log)."
)


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
        A file of the log is not a file of the folder, or the log can't be read, has another version, or lacks a batch.
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
            f"{_REMEDY}",
            path=missing[0],
        )
    return pa.array([place != "" for place in found], pa.bool_())


def _batches(names: list[str]) -> list[str]:
    """Return the files that have the whole log: the last compacted one, and those after it.

    Raises
    ------
    InvalidArgumentError
        One of them is not there: its files would be taken for those of a batch that failed.
    """
    found = {int(m[1]): name for name in sorted(names) if (m := _BATCH.fullmatch(name)) is not None}
    first = max((n for n, name in found.items() if name.endswith(".compact")), default=0)
    numbers = [n for n in sorted(found) if n >= first]
    missing = next((n for n, there in enumerate(numbers, first) if n != there), None)
    if missing is not None:
        raise InvalidArgumentError(
            f"The log of the streaming query that wrote the folder ({_FOLDER}) lacks batch {missing}, before "
            f"{found[numbers[-1]]}. {_REMEDY}",
            path=f"{_FOLDER}/{missing}",
        )
    return [f"{_FOLDER}/{found[n]}" for n in numbers]


def _named(storage: Storage, names: list[str]) -> Iterator[str]:
    """Yield the files that were added and not deleted since, as the log spells them, decoded."""
    files: dict[str, None] = {}
    for name, data in zip(names, storage.read([RangeRequest(name) for name in names]), strict=True):
        version, *lines = bytes(data).decode(errors="replace").splitlines() or [""]
        if version != _VERSION:
            raise InvalidArgumentError(
                f"{name} is no log of a streaming query that this release reads: found the version {version[:100]!r}, "
                f"expected {_VERSION}. {_REMEDY}",
                path=name,
            )
        for line in lines:
            try:
                action = json.loads(line)
                path, kind = unquote(action["path"]), action["action"]
                if kind not in ("add", "delete"):
                    raise ValueError(kind)
            except (ValueError, KeyError, TypeError, AttributeError) as e:
                raise InvalidArgumentError(
                    f"{name} is no log of a streaming query: found the line {line[:100]!r}. {_REMEDY}", path=name
                ) from e
            if kind == "delete":
                files.pop(path, None)
            else:
                files[path] = None
    yield from files


def _place_of(path: str, wanted: dict[str, list[str]]) -> str:
    """Return the file of the log that a path from the root is the end of, empty if none is: a folder may be moved."""
    places = wanted.get(path.rpartition("/")[2], ())
    return next((place for place in places if place.endswith(f"/{path}")), "")
