"""Which files of a table are written again together: bins of small files, and groups of bins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from numpy.typing import NDArray

from delta_core.expressions.ast import NUM_RECORDS
from delta_core.kernel.log.files import FileSet
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, one_array

__all__ = ["Group", "Groups", "Ints", "alone", "deleted_shares", "group_bins", "pack_bins", "partition_numbers"]

#: Bins of several partitions are written together up to this many bytes: a write has a cost of its own.
GROUP_BYTES = 64 << 20
#: Partitions that are written together at most: each has an open file.
GROUP_BINS = 256

Ints = NDArray[np.int64]


class Group(Struct):
    """Files that are written again by one task.

    Parameters
    ----------
    files : pyarrow.Table
        As they were read: columns of `intents.READ_FILE` and the fields of plugins.
    num_bins : int
        How many bins they are; each has a partition of its own.
    attempts : int
        How often the group was begun again since other writers changed its files.
    checked : int
        The last check of live files that found these: see `optimize`.
    syncs : list of function()
        The work that waits until the files that are written for it are synced.
    """

    files: pa.Table
    num_bins: int = 1
    attempts: int = 0
    checked: int = 0
    syncs: list[Callable[[], None]] = field(default_factory=list)


class Groups(Struct, frozen=True):
    """The plan of an optimize.

    Parameters
    ----------
    groups : list of Group
        One task each, in order.
    most_files : int
        The files of the largest bin.
    num_considered : int
        The files that were looked at.
    num_partitions : int
        The partitions in which files are written again.
    """

    groups: list[Group]
    most_files: int
    num_considered: int
    num_partitions: int


def partition_numbers(files: FileSet, columns: Sequence[str]) -> Ints:
    """Return a number for each file that two files share if their partition values are the same texts.

    Parameters
    ----------
    files : FileSet
        The files.
    columns : sequence of str
        Physical names of the partition columns.
    """
    numbers = np.zeros(files.count, np.int64)
    for column in files.columns([f"partition:{name}" for name in columns]).columns:
        text = pc.cast(column, pa.string()) if pa.types.is_dictionary(column.type) else column
        # null and the empty text are one value
        codes = one_array(pc.dictionary_encode(pc.fill_null(text, ""))).indices
        own = int64_values(codes)
        _, numbers = np.unique(numbers * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
    return numbers


def deleted_shares(files: FileSet, vectors: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return the share of its rows that each file's vector drops; 1 if the number of rows is not known."""
    if vectors.null_count == len(vectors):
        return np.zeros(len(vectors))
    found = one_array(vectors)
    dropped = int64_values(pc.fill_null(pc.struct_field(found, "cardinality"), 0))
    counts = int64_values(pc.fill_null(files.statistics([NUM_RECORDS]).column(0), 0))
    return np.where(dropped > 0, dropped / np.maximum(counts, 1), 0.0)


def pack_bins(order: Ints, partitions: Ints, sizes: Ints, target: int) -> Iterator[Ints]:
    """Yield runs of consecutive files of one partition that have about ``target`` bytes together.

    Parameters
    ----------
    order : int64[n]
        The numbers of the files, each partition's files in a row.
    partitions, sizes : int64
        By file number.
    target : int
        Bytes of a run; a file above it is a run by itself.
    """
    if not len(order):
        return
    own = partitions[order]
    ends = np.concatenate([np.flatnonzero(own[1:] != own[:-1]) + 1, [len(order)]])
    until = np.concatenate([[0], np.cumsum(sizes[order])])
    start = 0
    for end in ends.tolist():
        while start < end:
            stop = int(np.searchsorted(until, until[start] + target, side="right")) - 1
            stop = min(max(stop, start + 1), end)
            yield order[start:stop]
            start = stop


def alone(bins: Iterable[Ints]) -> list[list[Ints]]:
    """Return each bin as a group."""
    return [[one] for one in bins]


def group_bins(
    bins: Sequence[Ints], partitions: Ints, sizes: Ints, most_bytes: int | None = None
) -> Iterator[list[Ints]]:
    """Yield bins that are written together: small ones, at most one of each partition."""
    held: list[Ints] = []
    weight = 0
    most = GROUP_BYTES if most_bytes is None else most_bytes
    for one in bins:
        size = int(sizes[one].sum())
        is_next = bool(held) and partitions[held[-1][0]] == partitions[one[0]]
        if held and (is_next or weight + size > most or len(held) == GROUP_BINS):
            yield held
            held, weight = [], 0
        held.append(one)
        weight += size
    if held:
        yield held
