"""Dropped rows to vector files and descriptors, and what commits with vectors keep to."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_core.api import DELETION_VECTOR, EncodedRows, InvalidArgumentError, TableState, UnsupportedOperationError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import number_array, one_array, strings_of
from delta_core.kernels.roaring import DV_FILE_VERSION, DV_MAGIC
from delta_core.kernels.row_set import RowSet, RowSets
from delta_plugins.deletion_vectors import z85

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import AttemptView

__all__ = ["INLINE_BELOW", "SWITCH", "check_commit", "encode", "inline_below"]

NAME = "deletionVectors"
SWITCH = "delta.enableDeletionVectors"
INLINE_BELOW = "delta_core.inlineVectorsBelow"
#: Above this Delta on Spark can't read the change feed of inline vectors.
_MOST_INLINE = 65_536
#: Offsets in descriptors have 32 bits.
_LARGEST_FILE = 2**31 - 1
#: Size and checksum around a vector in its file.
_FRAME = 8
#: Statistics that `check_commit` need not parse: a count first, and bounds that are not tight last.
_SOUND = r'^\{"numRecords":\d+,.*,?"tightBounds":false\}$'


def inline_below(table: TableState) -> int:
    """Return the size, in bytes, below which vectors are put into the log; 0, none, unless the table requires it.

    Raises
    ------
    InvalidArgumentError
        If the property is no such number of bytes.
    """
    text = table.property(INLINE_BELOW, "0") or "0"
    if not text.isdecimal() or int(text) > _MOST_INLINE:
        raise InvalidArgumentError(
            f"Table property {INLINE_BELOW} is {text!r}; expected bytes from 0 to {_MOST_INLINE}.",
            property=INLINE_BELOW,
        )
    return int(text)


def encode(rows: Sequence[RowSet], prefix: str, inline: int = 0) -> EncodedRows:
    """Return one vector file for all row sets, and their descriptors in the same order.

    Parameters
    ----------
    rows : sequence of RowSet
        The deleted rows of each file.
    prefix : str
        The directory below the table's root; empty for none.
    inline : int
        Vectors of fewer bytes go into their descriptors.

    Raises
    ------
    InvalidArgumentError
        If the file would exceed what descriptors can name.

    Protocol
    --------
    Deletion Vector File Storage Format
    """
    sets = rows if isinstance(rows, RowSets) else RowSets(rows)
    data, sizes = sets.to_blocks(DV_MAGIC)
    in_log = sizes < inline
    texts = [z85.encode(data[end - size - 4 : end - 4], pad=True) for end, size in _inline_ends(sizes, in_log)]
    if in_log.any():
        data, _ = sets.take(np.flatnonzero(~in_log)).to_blocks(DV_MAGIC)
    if len(data) + 1 > _LARGEST_FILE:
        raise InvalidArgumentError(
            f"The vectors of {len(rows)} files take {len(data) + 1} bytes, more than one vector file holds. Drop the "
            "rows in several commits."
        )
    name = uuid.uuid4()
    paths = np.zeros(len(sizes), np.int32)
    paths[in_log] = np.arange(1, len(texts) + 1)
    blocks = np.where(in_log, 0, sizes + _FRAME)
    offsets = 1 + np.cumsum(blocks) - blocks
    columns = [
        pc.take(strings_of(["u", "i"]), number_array(in_log.astype(np.int32))),
        pc.take(strings_of([prefix + z85.encode(name.bytes), *texts]), number_array(paths)),
        number_array(offsets.astype(np.int32), valid=~in_log),
        number_array(sizes.astype(np.int32)),
        number_array(sets.cardinalities().astype(np.int64)),
    ]
    descriptors = pa.StructArray.from_arrays(columns, fields=list(DELETION_VECTOR))
    if not data:
        return EncodedRows(None, b"", descriptors)
    path = "/".join(p for p in (prefix, f"deletion_vector_{name}.bin") if p)
    return EncodedRows(path, bytes([DV_FILE_VERSION]) + data, descriptors)


def _inline_ends(sizes: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Iterable[tuple[int, int]]:
    """Return where each chosen block ends, and the size of its payload."""
    ends = np.cumsum(sizes + _FRAME)
    return zip(ends[chosen].tolist(), sizes[chosen].tolist(), strict=True)


def check_commit(attempt: AttemptView) -> None:
    """Reject adds with vectors that lack a count of rows or claim tight bounds, and new vectors if none are allowed.

    Raises
    ------
    InvalidArgumentError
        If the statistics of an add with a vector lack ``numRecords``, or do not have ``tightBounds=false``.

    Protocol
    --------
    Writer Requirement for Deletion Vectors
    """
    vectors = attempt.adds.column("deletionVector")
    if vectors.null_count == len(vectors):
        return
    files = attempt.adds.select(["path", "stats"]).filter(vectors.is_valid())
    known = pc.match_substring_regex(files.column("stats"), _SOUND)
    doubtful = files.filter(pc.invert(pc.fill_null(known, False)))
    for path, text in zip(doubtful.column("path").to_pylist(), doubtful.column("stats").to_pylist(), strict=True):
        _check_statistics(path, text)
    if not attempt.table.is_active(NAME):
        _check_old(attempt, files.column("path"))


def _check_statistics(path: str, text: str | None) -> None:
    stats = json.loads(text) if text else {}
    count = stats.get("numRecords")
    if not isinstance(count, int) or count < 0:
        raise InvalidArgumentError(
            f"The add of {path} has a deletion vector but no numRecords in its statistics.", path=path
        )
    if stats.get("tightBounds") is not False:
        raise InvalidArgumentError(
            f"The add of {path} has a deletion vector, and statistics that claim tight bounds; expected false.",
            path=path,
        )


def _check_old(attempt: AttemptView, paths: pa.ChunkedArray) -> None:
    changed = pc.filter(paths, pc.is_in(paths, value_set=one_array(attempt.removes.column("path"))))
    if len(changed):
        path = min(changed.to_pylist())
        raise UnsupportedOperationError(
            f"The commit passes {path} a new deletion vector, but {SWITCH} is not true. Set it, or rewrite the file.",
            path=path,
            property=SWITCH,
        )
