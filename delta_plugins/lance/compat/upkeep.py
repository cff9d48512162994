"""Indices and cleanup of datasets, with pylance's names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from msgspec import Struct

from delta_core.api import InvalidArgumentError
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.compat.rejections import NotOfferedError, reject, translated
from delta_plugins.lance.dataset import LanceDataset as Dataset
from delta_plugins.lance.index.listing import index_name, list_indices
from delta_plugins.lance.schema import walk_paths

__all__ = ["CleanupStats", "UpkeepMethods"]

_KINDS = {"BTREE": "btree", "BITMAP": "bitmap", "ZONEMAP": "zonemap"}
_OLD = timedelta(days=14)


class CleanupStats(Struct, frozen=True):
    """The versions and bytes that a cleanup removed.

    Parameters
    ----------
    bytes_removed, old_versions : int
        Bytes of all files, and versions.
    """

    bytes_removed: int
    old_versions: int


class UpkeepMethods:
    """The calls of a dataset for its indices and its old versions."""

    ours: Dataset

    @translated
    def create_scalar_index(
        self,
        column: str,
        index_type: str,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        **others: Any,
    ) -> None:
        """Create an index of a column: BTREE, BITMAP or ZONEMAP.

        Raises
        ------
        CompatError
            For a column or a name that can't be used.
        NotOfferedError
            For other types, and arguments that are not offered.
        """
        reject("LanceDataset.create_scalar_index", {"train": None if train else train, **others})
        kind = _KINDS.get(index_type.upper()) if isinstance(index_type, str) else None
        if kind is None:
            raise NotOfferedError(
                f"LanceDataset.create_scalar_index was called with index_type={index_type!r:.80}, which is not "
                f"offered: choose one of {', '.join(_KINDS)}.",
                name="index_type",
            )
        self.ours.create_index(column, kind, name, replace)  # type: ignore[arg-type]

    @translated
    def drop_index(self, name: str) -> None:
        """Drop an index by its name."""
        self.ours.drop_index(name)

    @translated
    def list_indices(self) -> list[dict[str, Any]]:
        """Return the indices: name, type, UUID, columns, version and the ids of their fragments."""
        paths = {f.id: ".".join(p) for p, f in walk_paths(self.ours.manifest.fields)}
        found = []
        for index in list_indices(self.ours.files):
            bitmap = index["fragment_bitmap"]
            found.append(
                {
                    "name": index["name"],
                    "type": index_name(index),
                    "uuid": str(UUID(bytes=bytes(index["uuid"]["uuid"]))) if index["uuid"] else "",
                    "fields": [paths[f] for f in index["fields"] if f in paths],
                    "version": index["dataset_version"],
                    "fragment_ids": set(RowSet.from_roaring(bitmap, 32).positions().tolist()) if bitmap else set(),
                    "base_id": index["base_id"],
                }
            )
        return sorted(found, key=lambda i: i["name"])

    @translated
    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        **others: Any,
    ) -> CleanupStats:
        """Remove old versions and the files that no other version needs.

        Parameters
        ----------
        older_than : timedelta, optional
            The age of versions that are removed, two weeks unless this or ``retain_versions`` is passed.
        retain_versions : int, optional
            That many of the latest versions stay.
        delete_unverified : bool
            Whether files that are in no version go whatever their age: no writer may be at work.
        error_if_tagged_old_versions : bool
            Whether it is an error if one of these versions has a tag; tagged versions always stay.
        **others : object
            Not offered.

        Raises
        ------
        CompatError
            For a tagged version; nothing was deleted.
        NotOfferedError
            For arguments that are not offered.
        """
        reject("LanceDataset.cleanup_old_versions", others)
        if error_if_tagged_old_versions:
            self._check_tags(older_than, retain_versions)
        done = self.ours.cleanup(
            older_than=older_than,
            keep_versions=retain_versions,
            unreferenced_older_than=timedelta(0) if delete_unverified else None,
        )
        return CleanupStats(done["num_bytes"], len(done["removed_versions"]))

    def _check_tags(self, older_than: timedelta | None, retain_versions: int | None) -> None:
        age = _OLD if older_than is None and retain_versions is None else older_than or timedelta(0)
        latest = self.ours.latest()
        listed = latest.versions()
        kept: Sequence[int] = listed[-max(retain_versions or 1, 1) :]
        before_us = time.time_ns() // 1000 - age // timedelta(microseconds=1)
        for name, tag in latest.tags().items():
            if tag.branch != latest.branch or tag.version in kept or tag.version not in listed:
                continue
            if latest.checkout(tag.version).manifest.timestamp_us <= before_us:
                raise InvalidArgumentError(
                    f"Version {tag.version} is old, but has the tag {name!r}: nothing was deleted. Pass "
                    "error_if_tagged_old_versions=False, with which it stays, or delete the tag.",
                    version=tag.version,
                )
