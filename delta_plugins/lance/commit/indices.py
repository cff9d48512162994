"""The indices that a version keeps from the one before it, as encoded messages. Protocol: IndexSection."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from delta_core.api import RangeRequest, Storage
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.manifest import Manifest, read_section
from delta_plugins.lance.wire import Message, decode

__all__ = ["index_messages", "index_names", "of_fields", "without_fragments"]


def index_messages(storage: Storage, manifest: Manifest, data: bytes | memoryview | None = None) -> list[bytes]:
    """Return the encoded messages of the indices of a version.

    Parameters
    ----------
    storage : Storage
        Where its manifest is.
    manifest : Manifest
        The version.
    data : bytes-like, optional
        The manifest's file; by default it is read if there are indices.

    Raises
    ------
    CorruptTableError
        If the section can't be decoded.
    """
    position = manifest.message["index_section"]
    if position is None:
        return []
    if data is None:
        [data] = storage.read([RangeRequest(manifest.path)])
    section = read_section(data, position, manifest.path, "index section")
    found: list[bytes] = decode("IndexEntries", section, f"Index section of {manifest.path}")["indices"]
    return found


def _decoded(index: bytes) -> Message:
    return decode("IndexMetadata", index, "An index of the manifest")


def index_names(indices: Iterable[bytes]) -> list[str]:
    """Return the names of indices, in their order."""
    return [_decoded(i)["name"] for i in indices]


def of_fields(indices: Sequence[bytes], fields: Collection[int]) -> list[bytes]:
    """Return those indices all of whose columns are among some field ids."""
    return [i for i in indices if all(f in fields for f in _decoded(i)["fields"])]


def without_fragments(indices: Sequence[bytes], fragments: Sequence[int]) -> list[bytes]:
    """Return those indices that have no row of some fragments."""
    moved = RowSet.from_positions(sorted(fragments))
    return [i for i in indices if not _meets(_decoded(i), moved)]


def _meets(index: Message, fragments: RowSet) -> bool:
    bitmap = index["fragment_bitmap"]
    # without a bitmap it is not known which fragments it has
    return not bitmap or bool((RowSet.from_roaring(bitmap, 32) & fragments).cardinality)
