"""Entries of a manifest store: the manifest of each version of a dataset, and what a store has to offer."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from delta_core.api import CorruptTableError
from delta_plugins.lance.names import MANIFESTS, manifest_names, staged_version

__all__ = ["ManifestEntry", "ManifestStore", "staged_name"]


class ManifestEntry(Struct, frozen=True):
    """The manifest of one version.

    Parameters
    ----------
    version : int
        The version.
    path : str
        The manifest in its bucket: under its own name, or, until it is copied, under a staged one.
    size : int or None
        Its bytes, None if they are not known.
    """

    version: int
    path: str
    size: int | None = None


class ManifestStore(Protocol):
    """A store of entries that puts an entry only if there is none.

    Every method is one call. ``base`` is the path of a dataset, or of the folder of a branch, in its bucket, without
    slashes at its ends. A failure raises EngineError.

    Attributes
    ----------
    name : str
        How messages name the store.
    """

    name: str

    def get(self, base: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version, None if there is none; entries that were put before are seen.

        Raises
        ------
        CorruptTableError
            If the entry is damaged.
        """
        ...

    def latest(self, base: str) -> ManifestEntry | None:
        """Return the entry of the latest version below 2**63, None if there is none; as `get` does."""
        ...

    def claim(self, base: str, entry: ManifestEntry) -> bool:
        """Put an entry if there is none of its version, and return whether it was put.

        Raises
        ------
        EngineError
            If it is not known whether the entry was put, or if it was certainly not put: its cause is a
            PermissionError then.
        """
        ...

    def settle(self, base: str, entry: ManifestEntry) -> bool:
        """Put an entry in place of the one of its version, and return False if there is none."""
        ...


def staged_name(base: str, entry: ManifestEntry, store: str) -> tuple[str, str | None]:
    """Return the name of a manifest in its folder, and the name that it is staged under; None if it is not.

    Raises
    ------
    CorruptTableError
        If the entry names another file.
    """
    folder = f"{base}/{MANIFESTS}/" if base else f"{MANIFESTS}/"
    name = entry.path.removeprefix(folder)
    if len(name) < len(entry.path):
        for final in manifest_names(entry.version):
            if name == final:
                return final, None
            if name.startswith(final) and staged_version(name) == entry.version:
                return final, name
    raise CorruptTableError(
        f"The entry of version {entry.version} of {base} in {store} is damaged: it names {entry.path!r}, expected "
        f"{manifest_names(entry.version)[0]} in {folder}, or that name with an id. Correct the entry.",
        path=entry.path,
        version=entry.version,
    )
