"""KeySet: which logical files were seen, by path and deletion vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError
from delta_core.kernels._dedup import Keys, unique_ids
from delta_core.kernels.arrow_buffers import (
    StringBuffers,
    int64_values,
    is_valid,
    plain_strings,
    string_array,
    string_buffers,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KeySet", "dv_unique_ids"]

Strings: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any]"


class KeySet:
    """A set of (path, deletion vector id or null): the identity of a logical file.

    Keys are compared in full, never by hash alone. Paths are compared as what they name: percent-decoded once (an
    escape that isn't one represents itself), and ``file:/x``, ``file:///x``, ``file://localhost/x`` and ``/x`` are one
    path.

    Notes
    -----
    The set refers to the arrays that new keys come in, whose bytes it does not copy. Each call takes linear time and
    releases the GIL. Any number of threads may query it concurrently; adding keys while another thread uses the set is
    rejected.

    Protocol
    --------
    Action Reconciliation
    """

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys = Keys()

    def __len__(self) -> int:
        return len(self._keys)

    def insert(self, paths: Strings, dv_ids: Strings | None = None) -> NDArray[np.bool_]:
        """Add keys and return which of them are new.

        Parameters
        ----------
        paths : string array, **shape (n,)**
            As they are in the log. Null = no file here: nothing is added.
        dv_ids : string array, **shape (n,)**, optional
            Unique ids of the deletion vectors, null = the file has none; None = all null.

        Returns
        -------
        bool[n]
            True in the row that is the first, in array order, to hold its key; False for null paths.

        Raises
        ------
        InvalidArgumentError
            Lengths differ, not strings, or another thread uses the set.
        """
        self._keys.reserve(len(paths))
        return _per_chunk(self._keys.insert, paths, dv_ids)

    def contains(self, paths: Strings, dv_ids: Strings | None = None) -> NDArray[np.bool_]:
        """Return which keys are in the set: bool of **shape (n,)**, False for null paths; otherwise as `insert`.

        Parameters
        ----------
        paths : string array or chunked array, **shape (n,)**
            As `insert` takes it.
        dv_ids : string array or chunked array, **shape (n,)**, optional
            As `insert` takes it.
        """
        return _per_chunk(self._keys.contains, paths, dv_ids)


def dv_unique_ids(
    storage_types: pa.Array[Any], paths_or_inline: pa.Array[Any], offsets: pa.Array[Any]
) -> pa.Array[Any]:
    """Return the `uniqueId` of every deletion vector: ``<storageType><pathOrInlineDv>[@<offset>]``.

    Parameters
    ----------
    storage_types, paths_or_inline : string arrays, **shape (n,)**
        Null = the file has no vector.
    offsets : int32 or int64 array, **shape (n,)**
        Null = the descriptor has none, and the id none either.

    Returns
    -------
    string array, **shape (n,)**
        Null = the file has no vector.

    Protocol
    --------
    Derived Fields
    """
    storage_types, paths_or_inline = plain_strings(storage_types), plain_strings(paths_or_inline)
    kinds, texts = string_buffers(storage_types), string_buffers(paths_or_inline)
    if kinds is None or texts is None:
        return pa.nulls(len(storage_types), pa.string())
    valid = is_valid(storage_types) & is_valid(paths_or_inline)
    return string_array(*unique_ids(kinds, texts, int64_values(offsets), is_valid(offsets).view(np.uint8)), valid)


def _per_chunk(
    call: Callable[[StringBuffers, StringBuffers | None], NDArray[np.uint8]], paths: Strings, dv_ids: Strings | None
) -> NDArray[np.bool_]:
    if dv_ids is not None and len(dv_ids) != len(paths):
        raise InvalidArgumentError(f"{len(paths)} paths come with {len(dv_ids)} deletion vector ids")
    results = []
    for path_chunk, id_chunk in _aligned(paths, dv_ids):
        buffers = string_buffers(path_chunk)
        if buffers is None:
            results.append(np.zeros(len(path_chunk), np.uint8))
        else:
            results.append(call(buffers, None if id_chunk is None else string_buffers(id_chunk)))
    return (results[0] if len(results) == 1 else np.concatenate([np.empty(0, np.uint8), *results])).view(np.bool_)


def _aligned(paths: Strings, dv_ids: Strings | None) -> Iterator[tuple[pa.Array[Any], pa.Array[Any] | None]]:
    """Yield the chunks of `paths`, each with the ids of its rows."""
    start = 0
    for path_chunk in paths.chunks if isinstance(paths, pa.ChunkedArray) else [paths]:
        if dv_ids is None:
            yield path_chunk, None
            continue
        ids: Any = dv_ids.slice(start, len(path_chunk))
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.chunk(0) if ids.num_chunks == 1 else pa.concat_arrays(ids.chunks or [pa.nulls(0)])
        yield path_chunk, ids
        start += len(path_chunk)
