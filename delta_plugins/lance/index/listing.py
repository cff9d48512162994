"""The indices that a version lists, and which of them can be used. Protocol: IndexSection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
from msgspec import Struct

from delta_core.api import CorruptTableError
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance import flags
from delta_plugins.lance.manifest import read_section
from delta_plugins.lance.row_ids import columns_of
from delta_plugins.lance.schema import walk_paths
from delta_plugins.lance.version_files import VersionFiles
from delta_plugins.lance.wire import Message, decode

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Index", "index_name", "list_indices", "listed_indices"]

#: The types that are used, those that answer most conditions first, and their versions.
VERSIONS: Mapping[str, tuple[int, ...]] = {
    "BTree": (0, 1),
    "Bitmap": (0,),
    "LabelList": (0, 1),
    "ZoneMap": (0,),
    "BloomFilter": (0,),
}
#: Types that list rows, by their ids; the others list zones of fragments.
OF_ROWS = ("BTree", "Bitmap", "LabelList")


class Index(Struct, frozen=True):
    """One index of a version, or one part of it: several parts with the same name are of different fragments.

    Parameters
    ----------
    name : str
        As the user chose it.
    kind : str
        Its type, such as ``BTree``.
    column : tuple of str
        The path of its column.
    folder : str
        Where its files are, relative to its base path.
    base : int
        Its base path, -1 = the dataset's own.
    has_addresses : bool
        Whether it lists rows by their addresses, rather than by their stable ids.
    fragments : bool[n_fragments]
        Those that it has all rows of.
    reason : str, optional
        Why it can't be used.
    sizes : Mapping of str to int
        The bytes of its files by their names, as far as its writer listed them.
    """

    name: str
    kind: str
    column: tuple[str, ...]
    folder: str
    base: int
    has_addresses: bool
    fragments: NDArray[np.bool_]
    reason: str | None = None
    sizes: Mapping[str, int] = {}


def list_indices(dataset: VersionFiles) -> list[Message]:
    """Return the messages IndexMetadata of a version.

    Raises
    ------
    CorruptTableError
        If the section can't be decoded.
    """
    manifest = dataset.manifest
    position = manifest.message["index_section"]
    if position is None:
        return []
    section = read_section(manifest.file, position, manifest.path, "index section")
    found: list[Message] = decode("IndexSection", section, f"Index section of {manifest.path}")["indices"]
    return found


def index_name(index: Message) -> str:
    """Return the type of an index, such as ``BTree``."""
    details = index["index_details"]
    if details is None:
        return "unknown"
    name: str = details["type_url"].rpartition(".")[2]
    return name.removesuffix("IndexDetails") or "unknown"


def listed_indices(dataset: VersionFiles) -> list[Index]:
    """Return the indices of a version, those of the same type together.

    Raises
    ------
    CorruptTableError
        If the section can't be decoded.
    """
    found = [_index(dataset, m) for m in list_indices(dataset)]
    kinds = list(VERSIONS)
    return sorted(found, key=lambda i: kinds.index(i.kind) if i.kind in VERSIONS else len(kinds))


def _index(dataset: VersionFiles, message: Message) -> Index:
    kind, manifest = index_name(message), dataset.manifest
    version = message["index_version"] or 0
    paths = {f.id: p for p, f in walk_paths(manifest.fields)}
    column = paths.get(message["fields"][0], ()) if len(message["fields"]) == 1 else ()
    has_addresses = not manifest.has_stable_row_ids or (kind == "BTree" and version == 1)
    is_covered = np.zeros(len(manifest.fragments), np.bool_)
    reason = _reason(dataset, message, kind, version, column)
    if reason is None:
        is_covered = _covered(dataset, message)
        if kind in OF_ROWS and not has_addresses:
            # their ids are not in memory
            is_covered &= ~columns_of(manifest.fragments, "row_ids")
        if not is_covered.any():
            reason = "it has no fragment of this version"
    uuid = message["uuid"]
    folder = f"_indices/{UUID(bytes=bytes(uuid['uuid']))}" if uuid and len(uuid["uuid"]) == 16 else ""
    base = -1 if message["base_id"] is None else message["base_id"]
    if reason is None and not folder:
        reason = "it has no UUID"
    sizes = {f["path"]: f["size_bytes"] for f in message["files"]}
    return Index(message["name"], kind, column, folder, base, has_addresses, is_covered, reason, sizes)


def _reason(dataset: VersionFiles, message: Message, kind: str, version: int, column: Sequence[str]) -> str | None:
    """Return why an index can't be used."""
    manifest = dataset.manifest
    if kind not in VERSIONS:
        return f"indices of type {kind} are not read"
    if version not in VERSIONS[kind]:
        return f"version {version} of the type {kind} is not read"
    if message["covering_fields"]:
        return "it has covering columns"
    for flag in (f for f in flags.FLAGS if f.bit & flags.CHANGED_INDICES):
        if manifest.message["reader_feature_flags"] & flag.bit:
            return f"the dataset has feature flag {flag.bit} ({flag.meaning})"
    if not manifest.ids_are_unique:
        return "its writer may have used ids of dropped fields again"
    if not column:
        return "it is not of one column of this version"
    if message["base_id"] is not None and message["base_id"] not in manifest.base_paths:
        return f"its base path {message['base_id']} is not listed"
    return None if message["fragment_bitmap"] else "it does not specify its fragments"


def _covered(dataset: VersionFiles, message: Message) -> NDArray[np.bool_]:
    """Return which fragments an index has the rows of."""
    manifest = dataset.manifest
    try:
        ids = RowSet.from_roaring(message["fragment_bitmap"], 32).positions()
    except CorruptTableError as e:
        raise CorruptTableError(
            f"Manifest {manifest.path} is damaged: the fragments of index {message['name']!r} can't be decoded, {e}. "
            "Restore the file from a copy.",
            path=manifest.path,
        ) from None
    at = manifest.fragments.find(ids)
    found = np.zeros(len(manifest.fragments), np.bool_)
    found[at[at >= 0]] = True
    return found
