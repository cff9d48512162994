"""Names of manifests, and the versions that a listing shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from delta_core.api import CorruptTableError, Storage, TableNotFoundError, VersionNotFoundError

__all__ = [
    "blob_file_name",
    "MANIFESTS",
    "Versions",
    "deletion_name",
    "has_manifests",
    "is_detached",
    "list_latest",
    "list_versions",
    "manifest_names",
    "manifest_version",
    "no_dataset",
    "parse_versions",
    "staged_version",
]

MANIFESTS = "_versions"
_LAST = (1 << 64) - 1
#: A detached version has the top bit set: no other version comes after it.
_DETACHED = 1 << 63
_SUFFIX = ".manifest"
_STAGED = re.compile(r"(.+\.manifest)-[0-9A-Za-z-]+")
#: Of the numbers in names of scheme 2.
_DIGITS = 20
#: Versions in a message, at most.
_SHOWN = 10
#: Names of manifests that are requested first, a page of most stores: in scheme 2 those of the latest versions.
_FIRST = 1000


class Versions:
    """The versions of a dataset, or of a branch.

    Parameters
    ----------
    listed : sequence of str
        The files of manifests, all of one scheme, in any order; relative to ``_versions``.
    scheme : 1 or 2
        1: files are named after the version; 2: after its difference to 2**64 - 1, so that the latest one comes first.

    Notes
    -----
    Only the latest version is looked at before others are requested.
    """

    def __init__(self, listed: Sequence[str], scheme: int) -> None:
        self._listed = listed
        self.scheme = scheme

    @cached_property
    def names(self) -> dict[int, str]:
        """The file of each version, in ascending order of versions."""
        found = {v: n for n in self._listed if (v := manifest_version(n)) is not None}
        return {v: found[v] for v in sorted(found)}

    @cached_property
    def latest(self) -> int:
        """The latest version."""
        found = manifest_version(min(self._listed)) if self.scheme == 2 else None
        return next(reversed(self.names)) if found is None else found

    def name_of(self, version: int) -> str:
        """Return the file of a version.

        Raises
        ------
        VersionNotFoundError
            If there is no such version.
        """
        if version == self.latest:
            return manifest_names(version)[2 - self.scheme]
        if version not in self.names:
            shown = [str(v) for v in self.names][-_SHOWN:]
            more = "" if len(self.names) <= _SHOWN else f"{len(self.names) - _SHOWN} earlier ones and "
            raise VersionNotFoundError(
                f"Version {version} is not there; there are {more}{', '.join(shown)}. It was removed by a cleanup, or "
                "was never written.",
                version=version,
            )
        return self.names[version]


def manifest_version(name: str) -> int | None:
    """Return the version that a file is of, None if it is no manifest of one."""
    text = name.removesuffix(_SUFFIX)
    if len(text) == len(name) or not (text.isascii() and text.isdigit()):
        return None
    if len(text) == _DIGITS:
        found = _LAST - int(text)
    elif len(text) > _DIGITS or text != str(int(text)):
        return None
    else:
        found = int(text)
    return found if 0 <= found < _DETACHED else None


def is_detached(name: str) -> bool:
    """Whether a file in the folder of manifests is that of a detached version, which no other version comes after."""
    text = name.removesuffix(_SUFFIX)
    return len(text) < len(name) and text[:1] == "d" and text[1:].isdigit()


def staged_version(name: str) -> int | None:
    """Return the version of a manifest that is staged for a manifest store, under its name and an id; else None."""
    found = _STAGED.fullmatch(name)
    return None if found is None else manifest_version(found[1])


def manifest_names(version: int) -> tuple[str, str]:
    """Return the names that the file of a version has in scheme 2 and in scheme 1."""
    return f"{_LAST - version:020d}{_SUFFIX}", f"{version}{_SUFFIX}"


def parse_versions(names: Iterable[str], where: str) -> Versions | None:
    """Return the versions that file names show, None if no file is a manifest.

    Detached versions (``d...``) and files with other names, such as hints and temporary files, do not count.

    Raises
    ------
    CorruptTableError
        If both naming schemes occur.
    """
    numbered = [n for n in names if "0" <= n < ":"]
    if {*map(len, numbered)} == {_DIGITS + len(_SUFFIX)} and manifest_version(min(numbered)) is not None:
        # names of this length are of scheme 2, or no manifests
        return Versions(numbered, 2)
    valid = [n for n in numbered if manifest_version(n) is not None]
    first = [n for n in valid if len(n) < _DIGITS + len(_SUFFIX)]
    if first and len(first) < len(valid):
        second = next(n for n in valid if len(n) == _DIGITS + len(_SUFFIX))
        raise CorruptTableError(
            f"{where} has manifests of two naming schemes, such as {first[0]} and {second}; expected one of them. "
            "Remove the files of the other one, which a faulty copy or writer left.",
            path=where,
        )
    return Versions(valid, 1 if first else 2) if valid else None


def has_manifests(storage: Storage) -> bool:
    """Whether a place has manifests of Lance: one listing."""
    try:
        return list_latest(storage) is not None
    except CorruptTableError:  # manifests of two naming schemes: a dataset, which can't be opened
        return True


def list_latest(storage: Storage, below: str = "") -> Versions | None:
    """List the versions of a dataset, or of a branch in a folder below it; of many maybe only the latest ones.

    None if there is no manifest. One listing, and of names of scheme 2 only the first ones; `Versions.latest` is known.

    Raises
    ------
    CorruptTableError
        If both naming schemes occur among the names that were listed.
    """
    folder = _folder(below)
    listing = storage.list_from(folder, "0", _FIRST)
    found = parse_versions(listing.names, storage.uri(folder))
    if listing.is_complete or (found is not None and found.scheme == 2):
        return found
    return parse_versions(storage.list_from(folder, "0").names, storage.uri(folder))


def no_dataset(storage: Storage, below: str = "") -> TableNotFoundError:
    """Return the error of a place without manifests."""
    return TableNotFoundError(
        f"There is no Lance dataset at {storage.uri(below)}: no manifest is in {MANIFESTS}/. Check the path.",
        path=storage.uri(below),
    )


def _folder(below: str) -> str:
    return f"{below}/{MANIFESTS}" if below else MANIFESTS


def list_versions(storage: Storage, below: str = "") -> Versions:
    """List the versions of a dataset, or of a branch whose files are in a folder below it.

    Raises
    ------
    TableNotFoundError
        If there is no manifest.
    CorruptTableError
        If both naming schemes occur.
    """
    folder = _folder(below)
    found = parse_versions(storage.list_from(folder, "0").names, storage.uri(folder))
    if found is None:
        raise no_dataset(storage, below)
    return found


def deletion_name(fragment: int, read_version: int, id: int, kind: int) -> str:
    """Return the path of a deletion file below the root; ``kind`` as in `fragments`."""
    return f"_deletions/{fragment}-{read_version}-{id}.{('arrow', 'bin')[kind]}"


def blob_file_name(number: int) -> str:
    """Return the name of a file of blobs, in the folder of its data file: the bits of its number, lowest one first."""
    return f"{number:032b}"[::-1] + ".blob"
