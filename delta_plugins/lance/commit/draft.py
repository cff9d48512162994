"""The next version of a dataset: the fragments of the version before it, changed, and what else its manifest has."""

from __future__ import annotations

import struct
import time
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from delta_core.api import InternalError
from delta_plugins.lance import flags
from delta_plugins.lance.fragments import AS_COLUMN, MOST_ROWS
from delta_plugins.lance.row_ids import encode_ids, encode_versions
from delta_plugins.lance.schema import LanceField, fields_of_schema, message_of, walk_fields
from delta_plugins.lance.wire import UNKNOWN, Message, decode, encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_plugins.lance.manifest import FileVersion, Manifest

__all__ = ["Draft", "NewFragment", "file_message", "fragment_message", "new_fragment"]

#: Version 0.2 of the container, which no reader checks.
_TAIL = struct.Struct("<QHH4s")
#: The number of the field of fragments, and the wire type of messages.
_FRAGMENTS, _BYTES = 2, 2
#: Positions of sections in the file of the version before, and what belongs to it alone.
_NOT_CARRIED = ("version_aux_data", "index_section", "earlier_transaction_section", "transaction_section", "tag")


@cache
def _release() -> str:
    """Return the installed release; finding it takes longer than to encode a manifest."""
    return version("delta-core-lake")


class NewFragment(Struct, frozen=True):
    """A fragment that a commit adds.

    Parameters
    ----------
    rows : int
        Its rows, at least one.
    files : sequence of Message
        Its data files, as messages.
    ids : uint64[k], optional
        The stable ids of its first rows, which were updated or moved; later rows get new ids.
    created : uint64[k], optional
        The versions that these rows were created in.
    updated : uint64[k], optional
        The versions that these rows were last updated in; by default the new version.
    id : int, optional
        An id that was reserved; by default the next one.
    lineage : Message, optional
        The encoded ids and versions of all rows, in place of ``ids``, ``created`` and ``updated``.
    """

    rows: int
    files: Sequence[Message]
    ids: NDArray[np.uint64] | None = None
    created: NDArray[np.uint64] | None = None
    updated: NDArray[np.uint64] | None = None
    id: int | None = None
    lineage: Message | None = None


def new_fragment(
    rows: int,
    files: Sequence[Message],
    ids: NDArray[np.uint64] | None,
    created: NDArray[np.uint64] | None,
    updated: NDArray[np.uint64] | None,
) -> NewFragment:
    """Return a new fragment; parameters as of `NewFragment`. If all rows were moved, what they keep is encoded."""
    if ids is None or created is None or updated is None or len(ids) < rows:
        return NewFragment(rows, files, ids, created, updated)
    return NewFragment(rows, files, lineage=_lineage_message(ids, created, updated))


def _lineage_message(ids: NDArray[np.uint64], created: NDArray[np.uint64], updated: NDArray[np.uint64]) -> Message:
    return {
        "inline_row_ids": encode_ids(ids),
        "inline_last_updated_at_versions": encode_versions(updated),
        "inline_created_at_versions": encode_versions(created),
    }


def file_message(
    path: str, fields: Sequence[int], columns: Sequence[int], version: FileVersion, size: int
) -> dict[str, Any]:
    """Return the message of a data file.

    Parameters
    ----------
    path : str
        Relative to the folder ``data``.
    fields, columns : sequence of int, **shape (n,)**
        Field ids, and the index of each one's column.
    version : tuple of int
        Of the file.
    size : int
        Bytes.
    """
    return {
        "path": path,
        "fields": list(fields),
        "column_indices": list(columns),
        "file_major_version": version[0],
        "file_minor_version": version[1],
        "file_size_bytes": size,
    }


def fragment_message(manifest: Manifest, index: int) -> Message:
    """Return the message of a fragment of a version.

    Parameters
    ----------
    manifest : Manifest
        The version.
    index : int
        Of the fragment.
    """
    listed = manifest.fragments
    field = manifest.data[int(listed.start[index]) : int(listed.stop[index])]
    [found] = decode("Manifest", field, f"Manifest {manifest.path}")["fragments"]
    message: Message = found
    if message.get(UNKNOWN):
        raise InternalError(
            f"A fragment of manifest {manifest.path} has fields that can't be kept.", path=manifest.path
        )
    return message


class Draft:
    """A version that is not committed yet.

    Parameters
    ----------
    base : Manifest, optional
        The version before it; None for the first one.
    indices : sequence of bytes
        The messages of its indices, encoded.
    stable_row_ids : bool
        Whether rows of a new dataset get ids that stay.

    Attributes
    ----------
    message : dict
        The manifest without fragments and fields.
    fields : tuple of LanceField
        The fields at the top of the schema.
    indices : list of bytes
        The messages of its indices, encoded.
    """

    def __init__(self, base: Manifest | None, indices: Sequence[bytes] = (), *, stable_row_ids: bool = False) -> None:
        self.base = base
        #: The version that fragments are copied from.
        self._source = base
        self.version = 1 if base is None else base.version + 1
        self.message: dict[str, Any] = {} if base is None else {**base.message}
        for name in (*_NOT_CARRIED, UNKNOWN):
            self.message.pop(name, None)
        self.fields: tuple[LanceField, ...] = () if base is None else base.fields
        self.indices = list(indices)
        self.has_stable_ids = stable_row_ids if base is None else base.has_stable_row_ids
        self._kept = np.ones(0 if base is None else len(base.fragments), np.bool_)
        self._pieces: dict[int, list[bytes]] = {}
        self._added: list[bytes] = []
        #: Fragments that come before one of the base, by its index.
        self._before: dict[int, list[bytes]] = {}
        self._has_deletions = self._has_lineage = False

    def restore(self, earlier: Manifest, indices: Sequence[bytes]) -> None:
        """Begin again with an earlier version; ids that were used since then are not used again."""
        before = self.message
        self._source = earlier
        self.message = {k: v for k, v in earlier.message.items() if k not in (*_NOT_CARRIED, UNKNOWN)}
        self._kept = np.ones(len(earlier.fragments), np.bool_)
        self.fields, self.indices = earlier.fields, list(indices)
        for name in ("max_fragment_id", "next_row_id", "max_allocated_field_id"):
            used = [int(m[name]) for m in (before, self.message) if m.get(name) is not None]
            self.message[name] = max(used, default=None)

    # --- fragments -------------------------------------------------------------------------

    @property
    def next_fragment(self) -> int:
        """The id of the next fragment."""
        most = self.message.get("max_fragment_id")
        listed = None if self.base is None else self.base.fragments.id
        found = -1 if most is None else int(most)
        if listed is not None and len(listed):
            found = max(found, int(listed.max()))
        return found + 1

    def index_of(self, fragment: int) -> int:
        """Return the index of a fragment of the base by its id, -1 if there is none."""
        return -1 if self._source is None else int(self._source.fragments.find(np.array([fragment], np.int64))[0])

    def remove(self, fragments: Collection[int]) -> None:
        """Remove fragments by id."""
        if len(fragments):
            self._kept[self._indices(fragments)] = False

    def remove_all(self) -> None:
        """Remove every fragment."""
        self._kept[:] = False

    def replace(self, fragment: int, messages: Sequence[Message]) -> None:
        """Put fragments, as messages, in the place of one by its id."""
        index = self._index(fragment)
        self._kept[index] = False
        self._pieces[index] = [self._encoded(m) for m in messages]

    def append(self, fragments: Sequence[NewFragment]) -> list[Message]:
        """Add fragments after all others, and return their messages."""
        messages = [self.complete(f) for f in fragments]
        self._added += [self._encoded(m) for m in messages]
        return messages

    def insert(self, messages: Sequence[Message]) -> None:
        """Add fragments, as messages, with ids that were reserved: fragments are listed by their ids."""
        listed = np.zeros(0, np.int64) if self._source is None else self._source.fragments.id
        for message in messages:
            after = np.flatnonzero(listed > message["id"])
            place = self._before.setdefault(int(after[0]), []) if len(after) else self._added
            place.append(self._encoded(message))

    def complete(self, fragment: NewFragment) -> Message:
        """Return the message of a new fragment, with its id and the ids and versions of its rows."""
        number = self.next_fragment if fragment.id is None else fragment.id
        self.message["max_fragment_id"] = max(number, self.next_fragment - 1)
        message: Message = {"id": number, "files": list(fragment.files), "physical_rows": fragment.rows}
        if self.has_stable_ids:
            message |= self._lineage(fragment) if fragment.lineage is None else fragment.lineage
        return message

    def _lineage(self, fragment: NewFragment) -> Message:
        kept = np.zeros(0, np.uint64) if fragment.ids is None else fragment.ids
        first, fresh = int(self.message.get("next_row_id", 0)), fragment.rows - len(kept)
        if len(kept):
            # ids of a table that was converted come from elsewhere
            first = max(first, int(kept.max()) + 1)
        self.message["next_row_id"] = first + fresh
        ids = np.concatenate([kept, np.arange(first, first + fresh, dtype=np.uint64)])
        now = np.full(fragment.rows, self.version, np.uint64)
        created, updated = now.copy(), now
        if fragment.created is not None:
            created[: len(kept)] = fragment.created
        if fragment.updated is not None:
            updated[: len(kept)] = fragment.updated
        return _lineage_message(ids, created, updated)

    def _indices(self, fragments: Collection[int]) -> NDArray[np.int64]:
        ids = np.fromiter(fragments, np.int64, len(fragments))
        found = np.full(len(ids), -1) if self._source is None else self._source.fragments.find(ids)
        if (found < 0).any():
            fragment = int(ids[found < 0][0])
            raise InternalError(f"Fragment {fragment} is not in version {self.version - 1}.", fragment=fragment)
        return found

    def _index(self, fragment: int) -> int:
        return int(self._indices([fragment])[0])

    def copied(self, fragments: Collection[int], number: int) -> bytes:
        """Return fragments by id, which follow one another, as the repeated field ``number`` of another message."""
        assert self._source is not None
        listed, at = self._source.fragments, self._indices(fragments)
        starts, stops = listed.start[at], listed.stop[at]
        data = np.frombuffer(_run(self._source.data, starts, stops), np.uint8).copy()
        sizes = stops - starts
        tags = np.cumsum(sizes) - sizes
        if not (data[tags] == _FRAGMENTS << 3 | _BYTES).all():
            raise InternalError(f"A fragment of manifest {self._source.path} has a tag that can't be copied.")
        data[tags] = number << 3 | _BYTES
        return data.tobytes()

    def _encoded(self, message: Message) -> bytes:
        self._has_deletions |= message.get("deletion_file") is not None
        self._has_lineage |= any(message.get(f"column_{n}") is not None for n in _LINEAGE)
        return encode("Manifest", {"fragments": [message]})

    @property
    def fragments(self) -> bytes:
        """The fragments' part of the message: runs of those that are kept are copied as they are."""
        if self._source is None:
            return b"".join(self._added)
        listed, data = self._source.fragments, self._source.data
        out: list[bytes | memoryview] = []
        start = 0
        for index in (*sorted({*np.flatnonzero(~self._kept).tolist(), *self._before}), len(listed)):
            if index > start:
                out.append(_run(data, listed.start[start:index], listed.stop[start:index]))
            out += self._before.get(index, ())
            out += self._pieces.get(index, ())
            start = index if index < len(listed) and self._kept[index] else index + 1
        return b"".join([*out, *self._added])

    # --- the file --------------------------------------------------------------------------

    def check_rows(self) -> None:
        """Check that ids of fragments fit 32 bits."""
        if int(self.message.get("max_fragment_id") or 0) >= MOST_ROWS:
            raise InternalError("The dataset has used all ids of fragments.")

    def encode(self, transaction: bytes, transaction_file: str) -> bytes:
        """Return the bytes of the manifest's file.

        Parameters
        ----------
        transaction : bytes
            The transaction's message.
        transaction_file : str
            The name of its file, empty if it has none.
        """
        self.check_rows()
        body = bytearray()
        message = dict(self.message)
        if self.indices:
            message["index_section"] = len(body)
            section = encode("IndexSection", {"indices": self.indices})
            body += struct.pack("<I", len(section)) + section
        message["transaction_section"] = len(body)
        body += struct.pack("<I", len(transaction)) + transaction
        position = len(body)
        reader, writer = self._flags(message)
        now = time.time_ns()
        message |= {
            "version": self.version,
            "fields": [message_of(f) for f in fields_of_schema(self.fields)],
            "timestamp": {"seconds": now // 10**9, "nanos": now % 10**9},
            "reader_feature_flags": reader,
            "writer_feature_flags": writer,
            "transaction_file": transaction_file,
            "writer_version": {"library": "delta_core", "version": _release()},
        }
        manifest = encode("Manifest", message) + self.fragments
        return bytes(body) + struct.pack("<I", len(manifest)) + manifest + _TAIL.pack(position, 0, 2, b"LANC")

    def _flags(self, message: Mapping[str, Any]) -> tuple[int, int]:
        """Return the flags of readers and of writers: those of what the version has, and those that stay once set."""
        both = 0
        if self._has_deletions or self._kept_deletions():
            both |= flags.DELETIONS
        if self.has_stable_ids:
            both |= flags.STABLE_ROW_IDS
        if self._has_lineage or self._kept_lineage():
            both |= flags.LINEAGE_COLUMNS
        earlier = [m.message for m in (self.base, self._source) if m is not None]
        if any(m["reader_feature_flags"] & flags.MIXED_VERSIONS for m in earlier):
            both |= flags.MIXED_VERSIONS
        config = flags.CONFIG if message.get("config") else 0
        stays = 0 if self.base is None else self.base.message["writer_feature_flags"] & flags.STAYING
        return both, both | config | stays

    def _kept_deletions(self) -> bool:
        return self._source is not None and bool((self._source.fragments.deletion_kind[self._kept] >= 0).any())

    def _kept_lineage(self) -> bool:
        if self._source is None:
            return False
        listed = self._source.fragments
        places = (listed.row_ids.place, listed.last_updated.place, listed.created.place)
        return any(bool((p[self._kept] == AS_COLUMN).any()) for p in places)

    # --- schema ----------------------------------------------------------------------------

    def next_field(self) -> int:
        """Return an id that no field has had, as far as the base shows: of its schema, its files or field 24."""
        used = [f.id for f in walk_fields(self.fields)]
        if self.base is not None:
            used += [f.id for f in walk_fields(self.base.fields)]
            used += [i for layout in self.base.fragments.layouts for i in layout.fields]
        used.append(int(self.message.get("max_allocated_field_id") or -1))
        return max(used, default=-1) + 1

    def set_fields(self, fields: tuple[LanceField, ...]) -> None:
        """Set the fields of the version; where ids are never used again, the highest one is noted."""
        self.fields = fields
        if self.base is not None and self.base.message["writer_feature_flags"] & flags.UNIQUE_FIELD_IDS:
            most = max([f.id for f in walk_fields(fields)], default=0)
            self.message["max_allocated_field_id"] = max(most, int(self.message.get("max_allocated_field_id") or 0))


_LINEAGE = ("row_ids", "last_updated_at_versions", "created_at_versions")


def _run(data: memoryview, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> bytes | memoryview:
    """Return fields that follow one another, joined; other fields may lie between them."""
    breaks = np.flatnonzero(starts[1:] != stops[:-1])
    if not len(breaks):
        return data[int(starts[0]) : int(stops[-1])]
    firsts, lasts = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(starts) - 1]])
    return b"".join([data[int(starts[a]) : int(stops[b])] for a, b in zip(firsts, lasts, strict=True)])
