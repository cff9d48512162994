"""Ids of rows and the versions that rows were created and last updated in, as sequences of segments.

Protocol: RowIdSequence, RowDatasetVersionSequence, and the hidden columns of row lineage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import Struct

from delta_core.api import CorruptTableError, DataFileNotFoundError, InvalidArgumentError, RangeRequest, Storage
from delta_plugins.lance._metadata import Segments
from delta_plugins.lance.fragments import AS_COLUMN, EXTERNAL, INLINE, Fragments, Sequences
from delta_plugins.lance.wire import Message, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["LINEAGE_FIELDS", "IdMatches", "RowNumbers", "encode_ids", "encode_versions", "load_numbers", "segments_of"]

#: Which sequence: ids, or versions.
Kind = Literal["row_ids", "last_updated", "created"]
#: The field of the hidden column that has a sequence, if it is not in the manifest.
LINEAGE_FIELDS: dict[Kind, int] = {"row_ids": -3, "created": -4, "last_updated": -5}
_NAMES: dict[Kind, str] = {"row_ids": "row ids", "created": "created versions", "last_updated": "updated versions"}


class IdMatches(Struct, frozen=True):
    """Places of ids; an id has several if a row that was moved or updated is still in its earlier fragment, deleted.

    Parameters
    ----------
    request : int64[n]
        Which of the ids.
    fragment : int64[n]
        The index of the fragment.
    position : int64[n]
        The physical position of the row in it.
    """

    request: NDArray[np.int64]
    fragment: NDArray[np.int64]
    position: NDArray[np.int64]


class RowNumbers:
    """The ids, or the versions, of the rows of some fragments.

    Parameters
    ----------
    segments : Segments
        Those sequences that are in the manifest or in files.
    sequence_of : int64[n_fragments]
        The index of each fragment's sequence, -1 if it is not among them.
    fragment_of : int64[n_sequences]
        The reverse.
    """

    def __init__(self, segments: Segments, sequence_of: NDArray[np.int64], fragment_of: NDArray[np.int64]) -> None:
        self._segments = segments
        self._sequence_of = sequence_of
        self._fragment_of = fragment_of
        self._ranges: tuple[NDArray[Any], ...] | None = None

    def has(self, fragment: int) -> bool:
        """Whether the numbers of a fragment are here, rather than in a hidden column or nowhere."""
        return bool(self._sequence_of[fragment] >= 0)

    def numbers(self, fragment: int, start: int, stop: int) -> NDArray[np.uint64]:
        """Return the numbers of the rows from ``start`` to ``stop`` (not included) of a fragment."""
        return self._segments.numbers(int(self._sequence_of[fragment]), start, stop)

    def joined(self, fragments: NDArray[np.int64]) -> NDArray[np.uint64] | None:
        """Return the numbers of all rows of fragments, one after the other; None if they are not here for all."""
        sequences = self._sequence_of[fragments]
        return None if (sequences < 0).any() else self._segments.joined(sequences)

    def find(self, ids: NDArray[np.uint64]) -> IdMatches:
        """Return all places of ids, those of deleted rows too; takes time in proportion to the segments."""
        if self._ranges is None:
            self._ranges = self._segments.ranges()
        first, last, sequence, offset = self._ranges
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        begins = np.searchsorted(ordered, first, "left")
        counts = np.searchsorted(ordered, last, "right") - begins
        runs = np.repeat(np.arange(len(first)), counts)
        at = np.arange(len(runs)) - np.repeat(np.cumsum(counts) - counts, counts) + begins[runs]
        position = (ordered[at] - first[runs]).astype(np.int64) + offset[runs]
        return IdMatches(order[at], self._fragment_of[sequence[runs]], position)


def load_numbers(
    fragments: Fragments, kind: Kind, data: memoryview, storage: Storage, path: str, below: str = ""
) -> RowNumbers:
    """Load the ids, or the versions, of the rows of all fragments.

    Parameters
    ----------
    fragments : Fragments
        Of one version.
    kind : "row_ids", "last_updated" or "created"
        Which ones.
    data : memoryview
        The message of the manifest.
    storage : Storage
        Where files of sequences are.
    path : str
        The manifest, for errors.
    below : str
        The folder of the dataset below the storage's root.

    Raises
    ------
    CorruptTableError
        For a sequence that can't be decoded, or whose length differs from the rows of its fragment.
    DataFileNotFoundError
        If the file of a sequence is missing.

    Notes
    -----
    Reads the files of sequences, all together; there are none in datasets of current writers.
    """
    listed: Sequences = getattr(fragments, kind)
    inside = np.flatnonzero(listed.place == INLINE)
    outside = np.flatnonzero(listed.place == EXTERNAL)
    starts, sizes, source = listed.start[inside], listed.size[inside], data
    if len(outside):
        requests = [_request(listed, int(i), data, path, below) for i in outside]
        try:
            found = storage.read(requests)
        except FileNotFoundError as e:
            names = ", ".join(dict.fromkeys(repr(r.path) for r in requests[:3]))
            raise DataFileNotFoundError(
                f"A file of row ids that the manifest {path} names is not there, such as {names}. If the "
                "dataset was cleaned up since it was opened, open its latest version; otherwise restore the file.",
                path=requests[0].path,
            ) from e
        source = memoryview(b"".join([bytes(data), *(bytes(f) for f in found)]))
        more = np.array([len(f) for f in found], np.int64)
        starts = np.concatenate([starts, len(data) + np.cumsum(more) - more])
        sizes = np.concatenate([sizes, more])
    fragment_of = np.concatenate([inside, outside])
    try:
        segments = Segments(source, starts, sizes, kind != "row_ids")
    except CorruptTableError as e:
        raise _damaged(path, kind, int(fragments.id[fragment_of[e.facts["sequence"]]]), str(e)) from None
    rows = fragments.physical_rows[fragment_of]
    wrong = (rows >= 0) & (rows != segments.counts)
    if wrong.any():
        i = int(wrong.argmax())
        why = f"they are {segments.counts[i]}, but the fragment has {rows[i]} rows"
        raise _damaged(path, kind, int(fragments.id[fragment_of[i]]), why)
    sequence_of = np.full(len(fragments), -1, np.int64)
    sequence_of[fragment_of] = np.arange(len(fragment_of))
    return RowNumbers(segments, sequence_of, fragment_of)


def _request(listed: Sequences, i: int, data: memoryview, path: str, below: str) -> RangeRequest:
    name = bytes(data[int(listed.start[i]) : int(listed.start[i] + listed.size[i])])
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise CorruptTableError(
            f"Manifest {path} is damaged: the path {name!r} of a sequence of row ids is no UTF-8.", path=path
        ) from None
    return RangeRequest(
        f"{below}/{text}" if below else text, int(listed.file_start[i]), int(listed.file_size[i]) or None
    )


def _damaged(path: str, kind: Kind, fragment: int, why: str) -> CorruptTableError:
    return CorruptTableError(
        f"Manifest {path} is damaged: the {_NAMES[kind]} of fragment {fragment} can't be used, {why}. Restore the file "
        "from a copy.",
        path=path,
        fragment=fragment,
    )


def columns_of(fragments: Fragments, kind: Kind) -> NDArray[np.bool_]:
    """Return which fragments have a sequence as a hidden column of a data file."""
    place: NDArray[np.uint8] = getattr(fragments, kind).place
    return np.equal(place, AS_COLUMN)


# --- encoding ------------------------------------------------------------------------------


def encode_ids(ids: NDArray[np.uint64]) -> bytes:
    """Encode row ids as a RowIdSequence of one segment, the smallest one; ``ids`` are distinct, in the order of rows.

    Raises
    ------
    InvalidArgumentError
        If ids are not distinct.
    """
    return encode("RowIdSequence", {"segments": segments_of(ids)})


def encode_versions(versions: NDArray[np.uint64]) -> bytes:
    """Encode the versions that rows were created, or last updated, in: one for each row, as runs of equal ones.

    Protocol
    --------
    RowDatasetVersionSequence
    """
    starts = np.concatenate([[0], np.flatnonzero(versions[1:] != versions[:-1]) + 1])[: len(versions)]
    ends = [*starts[1:].tolist(), len(versions)]
    runs = [
        {"span": {"range": {"start": start, "end": end}}, "version": int(versions[start])}
        for start, end in zip(starts.tolist(), ends, strict=False)
    ]
    return encode("RowDatasetVersionSequence", {"runs": runs})


def segments_of(ids: NDArray[np.uint64]) -> Sequence[Message]:
    """Return the messages of the segments that hold ids, in their order: one, or none without ids.

    Raises
    ------
    InvalidArgumentError
        If an id occurs twice.
    """
    if not len(ids):
        return []
    if not (ids[1:] > ids[:-1]).all():
        if len(np.unique(ids)) != len(ids):
            raise InvalidArgumentError("Row ids are distinct; found one of them twice.")
        return [{"array": _encoded(ids)}]
    first, end = int(ids[0]), int(ids[-1]) + 1
    if end >> 64:
        return [{"sorted_array": _encoded(ids)}]
    span = {"start": first, "end": end}
    if end - first == len(ids):
        return [{"range": span}]
    num_holes = end - first - len(ids)
    sizes = {"holes": 24 + 4 * num_holes, "bitmap": 24 + -(-(end - first) // 8), "array": 24 + 2 * len(ids)}
    best = min(sizes, key=lambda k: sizes[k])
    if best == "array":
        return [{"sorted_array": _encoded(ids)}]
    present = np.zeros(end - first, np.bool_)
    present[(ids - ids[0]).astype(np.int64)] = True
    if best == "bitmap":
        return [{"range_with_bitmap": {**span, "bitmap": np.packbits(present, bitorder="little").tobytes()}}]
    holes = np.flatnonzero(~present).astype(np.uint64) + ids[0]
    return [{"range_with_holes": {**span, "holes": _encoded(holes)}}]


def _encoded(values: NDArray[np.uint64]) -> Message:
    base, last = int(values.min()), int(values.max())
    for bits in (16, 32):
        if last - base < 1 << bits:
            offsets = (values - np.uint64(base)).astype(f"<u{bits // 8}")
            return {f"u{bits}_array": {"base": base, "offsets": offsets.tobytes()}}
    return {"u64_array": {"values": values.astype("<u8").tobytes()}}
