"""Cleanup: versions of a branch that are removed, and files that no version needs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.api import (
    CommitError,
    CorruptTableError,
    FolderFiles,
    FoundFiles,
    InvalidArgumentError,
    PathSet,
    RangeRequest,
    UnsupportedFeatureError,
    check_number,
    delete_swept,
    garbage,
)
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, mask_of, one_array, strings_of
from delta_plugins.lance import flags
from delta_plugins.lance.fragments import EXTERNAL
from delta_plugins.lance.history import transaction_path
from delta_plugins.lance.index.listing import list_indices
from delta_plugins.lance.manifest import Manifest, parse_manifest
from delta_plugins.lance.names import MANIFESTS, is_detached, parse_versions, staged_version
from delta_plugins.lance.refs import Branch, Tag, branch_folder, check_not_a_branch, read_branches, read_tags
from delta_plugins.lance.scan import LanceScan
from delta_plugins.lance.schema import LanceField, blob_kind, walk_fields
from delta_plugins.lance.version_files import VersionFiles
from delta_plugins.lance.version_manifests import manifest_path, read_versions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Storage
    from delta_plugins.lance.dataset_version import DatasetVersion

__all__ = ["CleanupOptions", "clean_dataset"]

#: The age of versions that are removed, unless ages or numbers are given.
OLD = timedelta(days=14)
#: A writer may still commit files that are younger.
UNREFERENCED = timedelta(days=7)
#: How often a plan is made again because versions, tags or branches were added meanwhile.
_MOST_PLANS = 5
_TREE = "tree"
_SWEPT = ("data", "_deletions", "_transactions", "_indices", MANIFESTS)
#: Names of files that writers make, below the folder of a branch; all others stay. Stores write some under a temporary
#: name first: with a dot before it, or a number after it.
_KNOWN = (
    r"^(?:"
    r"data/[^/]+\.lance|data/[^/]+/[^/]+\.blob|_deletions/[^/]+\.(?:arrow|bin)|_transactions/[^/]+\.txn"
    r"|_indices/[0-9a-f-]{36}/.+|_versions/[^/]+\.manifest(?:-[0-9A-Za-z-]+)?"
    r"|(?:data|_deletions|_transactions|_versions)/(?:[^/]+/)?(?:\.[^/]*tmp[^/]*|[^/]+#\d+)"
    r")$"
)
_MANIFEST = r"(?:^|/)_versions/[^/]+\.manifest$"
_EVER = 1 << 62
#: Reads of external blobs name a kind of 3.
_EXTERNAL_BLOB = 3


class CleanupOptions(Struct, frozen=True):
    """Which versions and files go.

    Parameters
    ----------
    older_than : timedelta, optional
        Versions that were committed before this time, counted from now.
    keep_versions : int, optional
        The latest versions stay, at least one.
    unreferenced_older_than : timedelta, optional
        Files that no version ever had go if they are older; `UNREFERENCED` unless given.
    dry_run : bool
        Whether nothing is deleted.
    """

    older_than: timedelta | None = None
    keep_versions: int | None = None
    unreferenced_older_than: timedelta | None = None
    dry_run: bool = False

    def check(self) -> None:
        """Reject ages and numbers that are none.

        Raises
        ------
        InvalidArgumentError
            If one is.
        """
        check_number("keep_versions", self.keep_versions, 1)
        for name in ("older_than", "unreferenced_older_than"):
            age = getattr(self, name)
            if age is not None and not (isinstance(age, timedelta) and age >= timedelta(0)):
                raise InvalidArgumentError(f"Found {name}={age!r}, expected a timedelta from 0 on.")


class _References(Struct, frozen=True):
    """Files by their paths, and folders that count with all files in them."""

    files: PathSet
    folders: PathSet

    def add(self, dataset: VersionFiles) -> None:
        """Add all that a version refers to, and its manifest.

        Raises
        ------
        CorruptTableError
            If that can't be found out.
        """
        manifest = dataset.manifest
        paths = dataset.data_paths()
        self.files.add(paths)
        # files of blobs are in a folder with the name of the data file
        self.folders.add(pc.replace_substring_regex(paths, r"\.lance$", ""))
        listed = manifest.fragments
        deletions = np.flatnonzero(listed.deletion_kind >= 0).tolist()
        self.files.add(strings_of([dataset.deletion_path(i) for i in deletions]))
        named = [manifest.path]
        if manifest.message["transaction_file"]:
            named.append(transaction_path(dataset.below, manifest.message["transaction_file"]))
        for numbers in (listed.row_ids, listed.last_updated, listed.created):
            for i in np.flatnonzero(numbers.place == EXTERNAL).tolist():
                text = bytes(manifest.data[int(numbers.start[i]) : int(numbers.start[i] + numbers.size[i])])
                named.append(dataset.other_path(-1, text.decode(errors="replace")))
        self.files.add(strings_of(named))
        folders = []
        for index in list_indices(dataset):
            uuid = index["uuid"]
            if not uuid or len(uuid["uuid"]) != 16:
                raise CorruptTableError(
                    f"Manifest {manifest.path} has an index {index['name']!r} without a UUID: its files are not known. "
                    "Nothing was deleted. Restore the manifest from a copy.",
                    path=manifest.path,
                )
            base = -1 if index["base_id"] is None else index["base_id"]
            folders.append(dataset.other_path(base, f"_indices/{UUID(bytes=bytes(uuid['uuid']))}"))
        self.folders.add(strings_of(folders))

    def contain(self, paths: pa.Array) -> NDArray[np.bool_]:
        """Return which files are among them."""
        folders = pc.replace_substring_regex(paths, r"(?s)^((?:.*/)?(?:data|_indices)/[^/]+)/.*$", r"\1")
        found = self.files.contains(paths)
        return found | (self.folders.contains(folders) & mask_of(pc.not_equal(paths, folders)))


class _Swept:
    """The folders of a branch that are swept (`delta_core.operations.sweep.listing.SweptPlaces`)."""

    def __init__(self, below: str) -> None:
        self._below = below
        self._prefix = f"{below}/" if below else ""
        self.num_folders = 0
        self.empty: list[str] = []
        self.reserved: set[str] = set()

    def skips(self, folder: str) -> bool:
        """Whether a folder is neither one of those of the branch, nor above or below one."""
        if f"{self._below}/".startswith(f"{folder}/"):
            return False
        if not folder.startswith(self._prefix):
            return True
        return folder[len(self._prefix) :].split("/", 1)[0] not in _SWEPT

    def keeps(self, paths: pa.Array) -> NDArray[np.bool_]:
        """Return which files have other names than those of the format."""
        mine = pc.starts_with(paths, self._prefix)
        named = pc.match_substring_regex(pc.utf8_slice_codeunits(paths, len(self._prefix)), _KNOWN)
        found: NDArray[np.bool_] = ~mask_of(pc.and_(mine, named))
        return found

    def note(self, part: FolderFiles) -> None:
        """Take in what a listing found beside files."""
        self.empty += part.empty
        self.reserved.update(part.linked)
        self.num_folders += part.num_folders

    def forget(self) -> None:
        """Drop what was noted."""
        self.reserved, self.empty, self.num_folders = set(), [], 0


class _Listed(Struct, frozen=True):
    """The names that decide which versions stay.

    Parameters
    ----------
    manifests : Mapping of str to list of str
        The files in the folders of manifests, by the folder of the branch.
    tags, branches : Mapping
        See `refs`.
    """

    manifests: Mapping[str, list[str]]
    tags: Mapping[str, Tag]
    branches: Mapping[str, Branch]


class _Plan(Struct, frozen=True):
    """The result of looking."""

    listed: _Listed
    removed: list[int]
    files: FoundFiles
    manifests: FoundFiles
    folders: list[str]

    def paths(self) -> list[str]:
        """Return the files that go."""
        found = [b.column("path").to_pylist() for some in (self.files, self.manifests) for b in some.batches()]
        return sorted(p for part in found for p in part)


def clean_dataset(dataset: DatasetVersion, options: CleanupOptions) -> dict[str, Any]:
    """Remove versions, and files that no other version needs; `LanceDataset.cleanup` describes the result.

    Files of removed versions are deleted before their manifests: a run that was interrupted is completed by another.

    Parameters
    ----------
    dataset : DatasetVersion
        Its branch is cleaned.
    options : CleanupOptions
        Which versions and files go.

    Raises
    ------
    InvalidArgumentError
        For an age or a number that is none, or a branch that was opened by the path of its folder.
    CorruptTableError, UnsupportedFeatureError
        If a manifest, a tag or a branch can't be read, so that it is not known what it needs. Nothing was deleted.
    EngineError
        If files can't be deleted; others may be deleted by then.
    """
    options.check()
    run = _Cleanup(dataset, options)
    plan = run.plan()
    found: dict[str, Any] = {
        "removed_versions": plan.removed,
        "num_files": plan.files.num_files + plan.manifests.num_files,
        "num_bytes": plan.files.num_bytes + plan.manifests.num_bytes,
    }
    if options.dry_run:
        return {**found, "paths": plan.paths()}
    engine = dataset.engine
    for some in (plan.files, plan.manifests):
        delete_swept(engine, some.batches(), None)
    engine.storage.delete_folders(plan.folders)
    return found


class _Cleanup:
    """One cleanup."""

    def __init__(self, dataset: DatasetVersion, options: CleanupOptions) -> None:
        self._dataset = dataset
        self._options = options
        self._storage: Storage = dataset.storage
        self._below = dataset.files.below

    def plan(self) -> _Plan:
        """Return what goes; made again until no version, tag or branch was added meanwhile.

        Raises
        ------
        CommitError
            If there are always new ones.
        """
        for _ in range(_MOST_PLANS):
            plan = self._planned()
            if self._listed() == plan.listed:
                return plan
        raise CommitError(
            f"Versions, tags or branches were added while {_MOST_PLANS} plans were made. Nothing was deleted. Try "
            "again."
        )

    # --- versions --------------------------------------------------------------------------

    def _listed(self) -> _Listed:
        manifests = {"": list(self._storage.list_from(MANIFESTS).names)}
        folders: set[str] = set()
        tags, branches = read_tags(self._storage), read_branches(self._storage)
        for part in self._storage.walk(_skips_data, [_TREE]):
            if part.links_to_folders:
                raise UnsupportedFeatureError(
                    f"The folder {part.links_to_folders[0]!r} is a symbolic link: versions in it may need files. "
                    "Nothing was deleted. Replace the link by the folder.",
                    feature="symbolic links to branches",
                )
            for path in part.files.column("path").to_pylist():
                folder = path.rpartition("/")[0]
                if folder.endswith(f"/{MANIFESTS}"):
                    folders.add(folder)
        # by a listing, which a storage may have to prepare, not by the walk
        manifests |= {f.removesuffix(f"/{MANIFESTS}"): list(self._storage.list_from(f).names) for f in sorted(folders)}
        for name in branches:
            folder = branch_folder(name)
            if not _versions_of(manifests.get(folder, ()), folder):
                raise CorruptTableError(
                    f"Branch {name!r} has no version in {folder}: manifests may be lost. Nothing was deleted. Restore "
                    "them, or delete the branch.",
                    path=folder,
                )
        return _Listed({f: sorted(n) for f, n in manifests.items()}, tags, branches)

    def _pinned(self, listed: _Listed) -> set[int]:
        """Return the versions of the branch that tags name, or that branches began with."""
        tags = {(branch_folder(t.branch), t.version): f"Tag {n!r}" for n, t in listed.tags.items()}
        origins = {
            (branch_folder(b.parent_branch), b.parent_version): f"Branch {n!r}" for n, b in listed.branches.items()
        }
        there = {(f, v) for f, names in listed.manifests.items() for v in _versions_of(names, f)}
        # the origin of a branch may be gone: its manifests name what they need
        for pin, who in tags.items():
            if pin not in there:
                raise CorruptTableError(
                    f"{who} is of version {pin[1]} in {pin[0] or 'the main branch'}, which is not there: manifests may "
                    "be lost. Nothing was deleted. Restore the manifest, or delete the tag."
                )
        return {v for f, v in (*tags, *origins) if f == self._below}

    def _chosen(self, manifest: Manifest, latest: Sequence[int], pinned: set[int], now_us: int) -> bool:
        """Whether a version goes."""
        options = self._options
        if manifest.version in pinned or manifest.version in latest[-(options.keep_versions or 1) :]:
            return False
        if options.older_than is None and options.keep_versions is not None:
            # the number alone decides, whatever the clocks of writers were
            return True
        age = OLD if options.older_than is None else options.older_than
        return 0 < manifest.timestamp_us <= now_us - age // timedelta(microseconds=1)

    def _references(self, listed: _Listed) -> tuple[_References, _References, list[int], list[VersionFiles]]:
        """Return what stays, what only removed versions need, these versions, and those that stay and have blobs."""
        kept, gone = _References(PathSet(), PathSet()), _References(PathSet(), PathSet())
        pinned, now_us = self._pinned(listed), time.time_ns() // 1000
        removed: list[int] = []
        with_blobs: list[VersionFiles] = []
        for below, names in listed.manifests.items():
            versions = parse_versions(names, self._storage.uri(f"{below}/{MANIFESTS}"))
            found = [] if versions is None else list(versions.names)
            read = iter(()) if versions is None else read_versions(self._storage, versions, below, found)
            latest = found[-1] if found else 0
            for _, manifest in (*read, *self._detached(below, names), *self._staged(below, names, latest)):
                _check_known(manifest)
                check_not_a_branch(self._storage.root, manifest.base_paths.values())
                files = self._files(manifest, below)
                is_own = below == self._below and manifest.version in found
                if is_own and self._chosen(manifest, found, pinned, now_us):
                    removed.append(manifest.version)
                    gone.add(files)
                    continue
                kept.add(files)
                if any(blob_kind(f) == 2 for f in walk_fields(manifest.fields)):
                    with_blobs.append(files)
        return kept, gone, removed, with_blobs

    def _detached(self, below: str, names: Sequence[str]) -> Iterator[tuple[bytes | memoryview, Manifest]]:
        for name in filter(is_detached, names):
            path = manifest_path(below, name)
            [data] = self._storage.read([RangeRequest(path)])
            yield data, parse_manifest(data, path)

    def _staged(self, below: str, names: Sequence[str], latest: int) -> Iterator[tuple[bytes | memoryview, Manifest]]:
        """Yield manifests that a manifest store may have made, or may make, versions after the latest one."""
        for name in names:
            if (staged_version(name) or 0) > latest:
                path = manifest_path(below, name)
                try:
                    [data] = self._storage.read([RangeRequest(path)])
                except FileNotFoundError:  # it was copied to its own name: the plan is made again
                    continue
                yield data, parse_manifest(data, path)

    def _files(self, manifest: Manifest, below: str) -> VersionFiles:
        files = self._dataset.files
        return VersionFiles(files.engine, files.uri, manifest, below.removeprefix(f"{_TREE}/") or None, files.opening)

    # --- files -----------------------------------------------------------------------------

    def _planned(self) -> _Plan:
        listed = self._listed()
        kept, gone, removed, with_blobs = self._references(listed)
        places = _Swept(self._below)
        age = self._options.unreferenced_older_than
        cutoff = time.time_ns() // 1_000_000 - (UNREFERENCED if age is None else age) // timedelta(milliseconds=1)
        found = []
        for batch in garbage(self._dataset.engine, PathSet(), places, _EVER, None):
            paths = batch.column("path")
            was_of_version = gone.contain(paths)
            is_old = mask_of(pc.less(batch.column("modified_ms"), cutoff))
            is_manifest = mask_of(pc.match_substring_regex(paths, _MANIFEST))
            goes = ~kept.contain(paths) & (was_of_version | (is_old & ~is_manifest))
            found.append(batch.filter(bool_array(goes)))
        if with_blobs and any(b.num_rows for b in found):
            external = PathSet()
            for version in with_blobs:
                external.add(strings_of(sorted(_external_blobs(version))))
            found = [b.filter(bool_array(~external.contains(b.column("path")))) for b in found]
        files, manifests = FoundFiles(), FoundFiles()
        for batch in found:
            rest = _unreserved(batch, places.reserved)
            is_manifest = pc.match_substring_regex(rest.column("path"), _MANIFEST)
            manifests.add(rest.filter(is_manifest))
            files.add(rest.filter(pc.invert(is_manifest)))
        return _Plan(listed, removed, files, manifests, _emptied(files))


def _unreserved(batch: pa.RecordBatch, reserved: Iterable[str]) -> pa.RecordBatch:
    """Return the files that no symbolic link leads to, nor to a folder of theirs."""
    for place in reserved:
        paths = batch.column("path")
        inside = pc.or_(pc.equal(paths, place), pc.starts_with(paths, f"{place}/"))
        batch = batch.filter(pc.invert(inside))
    return batch


def _skips_data(folder: str) -> bool:
    """Whether a folder below that of branches has no manifests."""
    return folder.rpartition("/")[2] in {*_SWEPT, "_refs"} - {MANIFESTS}


def _versions_of(names: Sequence[str], below: str) -> list[int]:
    found = parse_versions(names, below)
    return [] if found is None else list(found.names)


def _check_known(manifest: Manifest) -> None:
    """Reject a version that may need files that are not known.

    Raises
    ------
    UnsupportedFeatureError
        For a feature that is not known, and for managed blobs.
    """
    writer = manifest.message["writer_feature_flags"]
    for flag in flags.unknown_files(writer):
        raise UnsupportedFeatureError(
            f"Manifest {manifest.path} has feature flag {flag}: the files that the version needs are not known. "
            "Nothing was deleted. Clean the dataset up with the library that wrote it.",
            path=manifest.path,
            flag=flag,
        )


def _emptied(files: FoundFiles) -> list[str]:
    """Return the folders of blobs and of indices that files are deleted of."""
    folders: set[str] = set()
    for batch in files.batches():
        paths = batch.column("path")
        above = pc.replace_substring_regex(paths, r"(?s)/[^/]*$", "")
        inside = pc.match_substring_regex(above, r"(?:^|/)(?:data|_indices)/[^/]+$")
        folders.update(pc.unique(above.filter(inside)).to_pylist())
    return sorted(folders)


def _external_blobs(files: VersionFiles) -> Iterator[str]:
    """Yield the paths of files that blobs of a version are in, beside those of data files and their folders."""
    tops = [f for f in files.manifest.fields if any(blob_kind(x) == 2 for x in walk_fields([f]))]
    for batch in LanceScan(files, [(f.name,) for f in tops]).read_batches():
        for field, column in zip(tops, batch.columns, strict=True):
            for base, uri in _external(field, column):
                yield files.external_path(base, uri, files.manifest.path, field.name)


def _external(field: LanceField, array: Any) -> Iterator[tuple[int, str]]:
    """Yield the base and the URI of each external blob in a column."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if blob_kind(field) == 2:
        kinds = array.field("kind")
        chosen = array.filter(pc.fill_null(pc.equal(kinds, _EXTERNAL_BLOB), False))
        for blob in chosen.to_pylist():
            yield blob["blob_id"], blob["blob_uri"]
        return
    if blob_kind(field) is not None or not field.children:
        return
    parts = array.flatten() if pa.types.is_struct(array.type) else [one_array(array.flatten())]
    for child, part in zip(field.children, parts, strict=True):
        yield from _external(child, part)
