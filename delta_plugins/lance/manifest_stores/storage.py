"""A storage whose manifests are committed through a manifest store.

A commit has four steps: the manifest is put under a staged name, the store's entry of the version is put unless there
is one, the manifest is copied to its own name, and the entry is replaced by one with that name. From the second step on
the version is committed. A writer or a reader that finds an entry with a staged name does the last two steps before it
goes on. Only the latest version can have such an entry: a version is claimed after the one before was finished.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, cast

from delta_core.api import (
    LOG_DIRECTORY,
    CorruptTableError,
    EngineError,
    InvalidArgumentError,
    Listing,
    RangeRequest,
    Storage,
    TableNotFoundError,
    prove_exclusive,
)
from delta_plugins.lance.manifest_stores.entries import ManifestEntry, ManifestStore, staged_name
from delta_plugins.lance.names import MANIFESTS, manifest_version

__all__ = ["with_manifest_store"]

_log = logging.getLogger(__name__)


def with_manifest_store(storage: Storage, store: ManifestStore, base: str) -> Storage:
    """Return a storage whose manifests are committed through a manifest store; all other files are as before.

    Parameters
    ----------
    storage : Storage
        Of the dataset. Manifests are put there if it is able to put files; it need not create files exclusively.
    store : ManifestStore
        Decides which manifest a version has. It is pickled with the storage.
    base : str
        The path of the dataset in its bucket, without slashes at its ends, as all writers spell it.
    """
    return cast("Storage", _StoredManifests(storage, store, base))


class _StoredManifests:
    """See `with_manifest_store`."""

    def __init__(self, storage: Storage, store: ManifestStore, base: str) -> None:
        self._storage = storage
        self._manifests = store
        self._base = base
        #: Manifests are created once, whatever the store of the files does.
        self.store: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._storage, self._manifests, self._base)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_storage":
            raise AttributeError(name)
        return getattr(self._storage, name)

    # --- reading ---------------------------------------------------------------------------

    def list_from(self, directory: str, start: str = "", limit: int | None = None) -> Listing:
        """List a folder; the latest version is finished before, if the folder is one of manifests.

        Raises
        ------
        TableNotFoundError, CorruptTableError
            If the manifest of the latest entry is not there.
        """
        if directory != MANIFESTS and not directory.endswith(f"/{MANIFESTS}"):
            return self._storage.list_from(directory, start, limit)
        below = directory.removesuffix(MANIFESTS).rstrip("/")
        latest = self._manifests.latest(self._key(below))
        while latest is not None:
            name, _ = self._finish(below, latest)
            listing = self._storage.list_from(directory, start, limit)
            if name < start or name in listing.names:
                return listing
            if self._is_there(f"{directory}/{name}"):  # the listing lags, or has the first names only
                return Listing(sorted([*listing.names, name]), is_complete=listing.is_complete)
            before, latest = latest, self._manifests.latest(self._key(below))
            if latest == before:
                raise self._lost(below, before, bool(listing.names))
        return self._storage.list_from(directory, start, limit)

    def read(self, requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        """Read ranges; a manifest that is only staged is finished before."""
        try:
            return self._storage.read(requests)
        except FileNotFoundError:
            done = {self._complete(path) for path in {r.path for r in requests}}
            if True not in done:
                raise
            return self._storage.read(requests)

    def _complete(self, path: str) -> bool:
        """Finish the version of a manifest if it is claimed; whether something was done."""
        place = self._place(path)
        entry = None if place is None else self._manifests.get(self._key(place[0]), place[1])
        return entry is not None and place is not None and self._finish(place[0], entry)[1]

    # --- writing ---------------------------------------------------------------------------

    def put_if_absent(
        self, path: str, data: bytes | Iterable[bytes], *, durable: bool = True, ready: Callable[[], None] | None = None
    ) -> Literal["created", "exists"]:
        """Create a file; a manifest by the four steps.

        Raises
        ------
        EngineError
            If a step before the entry failed, or if it is not known whether the entry was put.
        """
        self._check_path(path)
        place = self._place(path)
        if place is None:
            prove_exclusive(self._storage, path.rpartition("/")[0])
            return self._storage.put_if_absent(path, data, durable=durable, ready=ready)
        return self._commit(*place, path, data if isinstance(data, bytes) else b"".join(data), ready)

    def put(self, path: str, data: bytes) -> None:
        """Write a file whole."""
        self._check_path(path)
        self._storage.put(path, data)

    def _check_path(self, path: str) -> None:
        if path.startswith(f"{LOG_DIRECTORY}/"):
            raise InvalidArgumentError(
                f"{self._manifests.name} commits versions of Lance datasets only, found {path} of a Delta table. Open "
                f"{self._storage.uri('')} instead; docs/stores.md describes commits of Delta tables through DynamoDB.",
                path=path,
            )

    def _commit(
        self, below: str, version: int, path: str, data: bytes, ready: Callable[[], None] | None
    ) -> Literal["created", "exists"]:
        key = self._key(below)
        latest = self._manifests.latest(key)
        if latest is not None:
            self._finish(below, latest)
        if (latest is not None and latest.version >= version) or self._is_there(path):
            return "exists"
        staged = f"{path}-{uuid.uuid4()}"
        self._storage.put(staged, data)
        if ready is not None:
            ready()
        entry = ManifestEntry(version, self._key(staged), len(data))
        if not self._manifests.claim(key, entry):
            # by another writer, or by a call of this one whose answer was lost
            winner = self._manifests.get(key, version)
            if winner is None or winner.path != entry.path:
                self._drop(staged)
                if winner is not None:
                    self._finish(below, winner)
                return "exists"
        try:
            self._finish(below, entry)
            # a writer that does not use the store may have put a manifest meanwhile: readers have seen that one
            return "created" if self._content(path) in (data, None) else "exists"
        except (EngineError, CorruptTableError) as e:
            _log.warning("Version %s of %s is committed; its next reader copies the manifest: %s", version, key, e)
            return "created"

    # --- steps -----------------------------------------------------------------------------

    def _finish(self, below: str, entry: ManifestEntry) -> tuple[str, bool]:
        """Copy a manifest to its name and settle its entry, unless that was done; return the name, and whether it was.

        Raises
        ------
        CorruptTableError
            If the entry names no manifest of its version, or the staged one is lost or has another size.
        EngineError
            If the manifest can't be copied.
        """
        key = self._key(below)
        name, staged = staged_name(key, entry, self._manifests.name)
        if staged is None:
            return name, False
        folder = f"{below}/{MANIFESTS}" if below else MANIFESTS
        path, source = f"{folder}/{name}", f"{folder}/{staged}"
        data = self._content(source)
        if data is None:
            data = self._content(path)
            if data is None:
                raise self._lost(below, entry, True)
        elif entry.size not in (None, len(data)):
            raise CorruptTableError(
                f"Staged manifest {self._key(source)} has {len(data)} bytes, but {self._manifests.name} has "
                f"{entry.size} for version {entry.version} of {key}. Restore the file from a copy.",
                path=source,
                version=entry.version,
            )
        elif self._put(path, data) == "exists":
            data = self._content(path) or data
        settled = ManifestEntry(entry.version, self._key(path), len(data))
        if not self._manifests.settle(key, settled):
            _log.warning("%s has no entry of version %s of %s any more.", self._manifests.name, entry.version, key)
        self._drop(source)
        return name, True

    def _put(self, path: str, data: bytes) -> Literal["created", "exists"]:
        """Put a manifest whose bytes an entry has settled, so that another put of them changes nothing.

        If the storage can put conditionally, nothing is overwritten that a writer without the store has put.
        """
        try:
            return self._storage.put_if_absent(path, data)
        except EngineError as e:
            if not isinstance(e.__cause__, NotImplementedError):
                raise
            self._storage.put(path, data)
            return "created"

    def _drop(self, path: str) -> None:
        try:
            self._storage.delete([path])
        except EngineError as e:
            _log.info("Staged manifest %s stays: %s", self._key(path), e)

    # --- names -----------------------------------------------------------------------------

    def _key(self, below: str) -> str:
        return "/".join(filter(None, (self._base, below)))

    def _place(self, path: str) -> tuple[str, int] | None:
        """Return the folder below the root and the version of a manifest; None for another file."""
        folder, _, name = path.rpartition("/")
        version = manifest_version(name) if folder == MANIFESTS or folder.endswith(f"/{MANIFESTS}") else None
        return None if version is None else (folder.removesuffix(MANIFESTS).rstrip("/"), version)

    def _content(self, path: str) -> bytes | None:
        try:
            [found] = self._storage.read([RangeRequest(path)])
        except FileNotFoundError:
            return None
        return bytes(found)

    def _is_there(self, path: str) -> bool:
        try:
            self._storage.stat([path])
        except FileNotFoundError:
            return False
        return True

    def _lost(self, below: str, entry: ManifestEntry, has_others: bool) -> CorruptTableError | TableNotFoundError:
        key, name = self._key(below), self._manifests.name
        if has_others:
            return CorruptTableError(
                f"Version {entry.version} of {key} is lost: {name} has an entry of it, but {entry.path} is not there. "
                "Restore the file from a copy, or delete the entry to go on with the version before.",
                path=entry.path,
                version=entry.version,
            )
        return TableNotFoundError(
            f"There is no dataset at {self._storage.uri(below)}, but {name} has entries of one that was there, up to "
            f"version {entry.version} of {key}. Delete the entries, or use another path.",
            path=self._storage.uri(below),
        )
