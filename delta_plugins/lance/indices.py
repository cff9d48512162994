"""The indices that a version lists. Protocol: IndexSection."""

from __future__ import annotations

from delta_core.api import RangeRequest
from delta_plugins.lance.manifest import read_section
from delta_plugins.lance.version_files import VersionFiles
from delta_plugins.lance.wire import Message, decode

__all__ = ["index_name", "list_indices"]


def list_indices(dataset: VersionFiles) -> list[Message]:
    """Return the messages IndexMetadata of a version; reads its manifest again.

    Raises
    ------
    CorruptTableError
        If the section can't be decoded.
    """
    manifest = dataset.manifest
    position = manifest.message["index_section"]
    if position is None:
        return []
    [data] = dataset.engine.storage.read([RangeRequest(manifest.path)])
    section = read_section(data, position, manifest.path, "index section")
    found: list[Message] = decode("IndexSection", section, f"Index section of {manifest.path}")["indices"]
    return found


def index_name(index: Message) -> str:
    """Return the type of an index, such as ``BTree``."""
    details = index["index_details"]
    if details is None:
        return "unknown"
    name: str = details["type_url"].rpartition(".")[2]
    return name.removesuffix("IndexDetails") or "unknown"
