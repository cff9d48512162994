"""The manifests of versions: of the latest one, of a number, of a point in time, and of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from delta_core.api import CorruptTableError, RangeRequest, Storage, VersionNotFoundError, parse_ms
from delta_plugins.lance.manifest import Manifest, parse_manifest
from delta_plugins.lance.names import MANIFESTS, Versions, list_latest, list_versions, manifest_names, no_dataset

__all__ = ["manifest_path", "read_at", "read_latest", "read_version", "read_versions"]

#: Manifests are read for this many versions at a time.
_VERSIONS_AT_ONCE = 64
#: How often the latest version is looked for, if a cleanup removes it before it is read.
_MOST_LISTINGS = 5


def _wrong_version(path: str, expected: int, found: int) -> CorruptTableError:
    return CorruptTableError(
        f"Manifest {path} is damaged: it is of version {found}, but its name of version {expected}. Restore the file "
        "from a copy.",
        path=path,
        version=found,
    )


def manifest_path(below: str, name: str) -> str:
    """Return the path of a manifest below the root of the dataset."""
    return f"{below}/{MANIFESTS}/{name}" if below else f"{MANIFESTS}/{name}"


def read_version(storage: Storage, version: int, below: str) -> Manifest:
    """Read a version by the names that its manifest may have; the listing is needed for an error only.

    Raises
    ------
    TableNotFoundError
        If there is no dataset.
    VersionNotFoundError
        If there is no such version.
    CorruptTableError, UnsupportedFeatureError, SchemaError
        If the manifest can't be read.
    """
    for name in manifest_names(version) if version < 1 << 63 else ():
        try:
            [data] = storage.read([RangeRequest(manifest_path(below, name))])
        except FileNotFoundError:
            continue
        return _parsed(data, manifest_path(below, name), version)
    name = list_versions(storage, below).name_of(version)
    return _read_named(storage, name, below, version)


def _read_named(storage: Storage, name: str, below: str, version: int) -> Manifest:
    path = manifest_path(below, name)
    try:
        [data] = storage.read([RangeRequest(path)])
    except FileNotFoundError as e:
        raise VersionNotFoundError(
            f"Version {version} was removed while it was opened: {path} is not there any more. Open another version.",
            version=version,
        ) from e
    return _parsed(data, path, version)


def _parsed(data: bytes | memoryview, path: str, version: int) -> Manifest:
    found = parse_manifest(data, path)
    if found.version != version:
        raise _wrong_version(path, version, found.version)
    return found


def read_latest(storage: Storage, below: str, listed: Versions | None = None) -> Manifest:
    """Read the manifest of the latest version, of those that were listed before if there are any.

    Raises
    ------
    TableNotFoundError
        If there is no dataset.
    VersionNotFoundError
        If each version that was found was removed before it was read.
    CorruptTableError, UnsupportedFeatureError, SchemaError
        If the manifest can't be read.
    """
    for is_last in (False,) * (_MOST_LISTINGS - 1) + (True,):
        versions = list_latest(storage, below) if listed is None else listed
        if versions is None:
            raise no_dataset(storage, below)
        latest, listed = versions.latest, None
        try:
            return _read_named(storage, versions.name_of(latest), below, latest)
        except VersionNotFoundError:
            # a later version was committed since, and a cleanup removed this one
            if is_last:
                raise
    raise AssertionError


def read_versions(
    storage: Storage, versions: Versions, below: str, chosen: Sequence[int]
) -> Iterator[tuple[bytes | memoryview, Manifest]]:
    """Yield the bytes and the contents of manifests; many are read together.

    Raises
    ------
    VersionNotFoundError
        If one was removed meanwhile.
    CorruptTableError, UnsupportedFeatureError, SchemaError
        If a manifest can't be read.
    """
    for start in range(0, len(chosen), _VERSIONS_AT_ONCE):
        some = chosen[start : start + _VERSIONS_AT_ONCE]
        paths = [manifest_path(below, versions.names[v]) for v in some]
        try:
            found = storage.read([RangeRequest(p) for p in paths])
        except FileNotFoundError as e:
            raise VersionNotFoundError(
                f"A version from {some[0]} to {some[-1]} was removed while it was read: {e}. Try again.",
                version=some[0],
            ) from e
        for data, path, version in zip(found, paths, some, strict=True):
            yield data, _parsed(data, path, version)


def read_at(storage: Storage, versions: Versions, below: str, timestamp: Any) -> Manifest:
    """Return the latest version whose manifest was made until a point in time.

    Raises
    ------
    VersionNotFoundError
        If there is none.
    """
    until = parse_ms(timestamp)
    earliest: int | None = None
    for _, manifest in read_versions(storage, versions, below, [*reversed(versions.names)]):
        made = manifest.timestamp_us // 1000
        if made <= until:
            return manifest
        earliest = made if earliest is None else min(earliest, made)
    raise VersionNotFoundError(
        f"No version was committed until {timestamp}: the earliest one that is there is of {earliest} ms since the "
        "epoch.",
        timestamp=str(timestamp),
    )
