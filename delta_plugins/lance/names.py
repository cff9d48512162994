"""Names of manifests, and the versions that a listing shows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from delta_core.api import CorruptTableError, Storage, TableNotFoundError, VersionNotFoundError

__all__ = ["MANIFESTS", "Versions", "deletion_name", "list_versions", "manifest_names", "parse_versions"]

MANIFESTS = "_versions"
_LAST = (1 << 64) - 1
#: A detached version has the top bit set: no other version comes after it.
_DETACHED = 1 << 63
_SUFFIX = ".manifest"
#: Versions in a message, at most.
_SHOWN = 10


class Versions(Struct, frozen=True):
    """The versions of a dataset, or of a branch.

    Parameters
    ----------
    names : dict of int to str
        The file of each version, in ascending order of versions; relative to ``_versions``.
    scheme : 1 or 2
        1: files are named after the version; 2: after its difference to 2**64 - 1, so that the latest one comes first.
    """

    names: dict[int, str]
    scheme: int

    @property
    def latest(self) -> int:
        """The latest version."""
        return next(reversed(self.names))

    def name_of(self, version: int) -> str:
        """Return the file of a version.

        Raises
        ------
        VersionNotFoundError
            If there is no such version.
        """
        if version not in self.names:
            shown = [str(v) for v in self.names][-_SHOWN:]
            more = "" if len(self.names) <= _SHOWN else f"{len(self.names) - _SHOWN} earlier ones and "
            raise VersionNotFoundError(
                f"Version {version} is not there; there are {more}{', '.join(shown)}. It was removed by a cleanup, or "
                "was never written.",
                version=version,
            )
        return self.names[version]


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
    found: dict[int, dict[int, str]] = {1: {}, 2: {}}
    for name in names:
        text = name.removesuffix(_SUFFIX)
        if len(text) == len(name) or not re.fullmatch(r"0|[1-9][0-9]{0,18}|[0-9]{20}", text):
            continue
        number, scheme = int(text), 2 if len(text) == 20 else 1
        version = _LAST - number if scheme == 2 else number
        if 0 <= version < _DETACHED:
            found[scheme][version] = name
    if found[1] and found[2]:
        first, second = found[1][max(found[1])], found[2][max(found[2])]
        raise CorruptTableError(
            f"{where} has manifests of two naming schemes, such as {first} and {second}; expected one of them. Remove "
            "the files of the other one, which a faulty copy or writer left.",
            path=where,
        )
    scheme = 2 if found[2] else 1
    return Versions({v: found[scheme][v] for v in sorted(found[scheme])}, scheme) if found[scheme] else None


def list_versions(storage: Storage, below: str = "") -> Versions:
    """List the versions of a dataset, or of a branch whose files are in a folder below it.

    Raises
    ------
    TableNotFoundError
        If there is no manifest.
    CorruptTableError
        If both naming schemes occur.
    """
    folder = f"{below}/{MANIFESTS}" if below else MANIFESTS
    found = parse_versions(storage.list_from(folder).names, storage.uri(folder))
    if found is None:
        raise TableNotFoundError(
            f"There is no Lance dataset at {storage.uri(below)}: no manifest is in {MANIFESTS}/. Check the path.",
            path=storage.uri(below),
        )
    return found


def deletion_name(fragment: int, read_version: int, id: int, kind: int) -> str:
    """Return the path of a deletion file below the root; ``kind`` as in `fragments`."""
    return f"_deletions/{fragment}-{read_version}-{id}.{('arrow', 'bin')[kind]}"
