"""The indices that a version keeps from the one before it, as encoded messages. Protocol: IndexSection."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.manifest import Manifest, read_section
from delta_plugins.lance.wire import UNKNOWN, Message, decode, encode

__all__ = ["after_moves", "covered_fragments", "decoded_index", "index_messages", "index_names", "of_fields"]

#: Kinds of indices that list rows by their stable ids; B-trees of version 0 do so too, later ones by addresses.
_WITH_IDS = {f"{n}IndexDetails" for n in ("Bitmap", "LabelList", "Inverted", "NGram", "Vector")}
_BTREE = "BTreeIndexDetails"


def index_messages(manifest: Manifest) -> list[bytes]:
    """Return the encoded messages of the indices of a version.

    Raises
    ------
    CorruptTableError
        If the section can't be decoded.
    """
    position = manifest.message["index_section"]
    if position is None:
        return []
    section = read_section(manifest.file, position, manifest.path, "index section")
    found: list[bytes] = decode("IndexEntries", section, f"Index section of {manifest.path}")["indices"]
    return found


def decoded_index(index: bytes) -> Message:
    """Return the message of an encoded index."""
    return decode("IndexMetadata", index, "An index of the manifest")


def index_names(indices: Iterable[bytes]) -> list[str]:
    """Return the names of indices, in their order."""
    return [decoded_index(i)["name"] for i in indices]


def of_fields(indices: Sequence[bytes], fields: Collection[int]) -> list[bytes]:
    """Return those indices all of whose columns are among some field ids."""
    return [i for i in indices if all(f in fields for f in decoded_index(i)["fields"])]


def covered_fragments(index: bytes, *, has_stable_ids: bool) -> tuple[RowSet | None, bool]:
    """Return the ids of the fragments that an encoded index has, and whether it stays valid if all of them are moved.

    None: it is not known which ones.
    """
    message = decoded_index(index)
    bitmap = message["fragment_bitmap"]
    return RowSet.from_roaring(bitmap, 32) if bitmap else None, has_stable_ids and _lists_ids(message)


def after_moves(
    indices: Sequence[bytes], moved: Sequence[tuple[Sequence[int], Sequence[int]]], *, has_stable_ids: bool
) -> list[bytes]:
    """Return the indices that stay valid when rows are moved to other fragments.

    An index that lists rows by their stable ids has the new fragments in place of the earlier ones. All others that
    have some of the fragments are left out: rows have other addresses now.

    Parameters
    ----------
    indices : sequence of bytes
        Encoded messages.
    moved : sequence of (sequence of int, sequence of int)
        Ids of fragments, and of those that have their rows now.
    has_stable_ids : bool
        Whether rows have stable ids.
    """
    groups = [(RowSet.from_positions(sorted(old)), RowSet.from_positions(sorted(new))) for old, new in moved]
    found = (_after_moves(i, groups, has_stable_ids) for i in indices)
    return [i for i in found if i is not None]


def _after_moves(index: bytes, groups: Sequence[tuple[RowSet, RowSet]], has_stable_ids: bool) -> bytes | None:
    message = decoded_index(index)
    bitmap = message["fragment_bitmap"]
    if not bitmap:
        return None  # it is not known which fragments it has
    before = after = RowSet.from_roaring(bitmap, 32)
    for old, new in groups:
        common = (before & old).cardinality
        if common and (common < old.cardinality or not has_stable_ids or not _lists_ids(message)):
            return None
        if common:
            after = (after - old) | new
    if after == before:
        return index
    return (
        None if message.get(UNKNOWN) else encode("IndexMetadata", {**message, "fragment_bitmap": after.to_roaring(32)})
    )


def _lists_ids(index: Message) -> bool:
    """Whether an index of a dataset with stable row ids lists rows by these."""
    kind = (index["index_details"] or {"type_url": ""})["type_url"].rpartition(".")[2]
    return kind in _WITH_IDS or (kind == _BTREE and not index["index_version"])
