"""Tags and branches: names of versions, and of datasets that began as a version. Protocol: folder ``_refs``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from msgspec import Struct

from delta_core.api import (
    CorruptTableError,
    InvalidArgumentError,
    RangeRequest,
    Storage,
    VersionNotFoundError,
    decode_json,
)

if TYPE_CHECKING:
    from delta_plugins.lance.manifest import BasePath

__all__ = [
    "MAIN",
    "TAGS",
    "Branch",
    "Tag",
    "branch_folder",
    "check_not_a_branch",
    "find_tag",
    "read_branches",
    "read_tags",
    "tag_of",
    "tag_path",
]

MAIN = "main"
"""The name of the branch that is the dataset itself."""
TAGS = "_refs/tags"
_BRANCHES = "_refs/branches"
_SUFFIX = ".json"


class Tag(Struct, frozen=True):
    """A name of a version.

    Parameters
    ----------
    version : int
        The version.
    branch : str, optional
        The branch that it is of, None for the main one.
    metadata : dict
        The metadata that its author added.
    created_at, updated_at : str, optional
        When it was created, and moved last, as ISO 8601 specifies it; None if the file lacks it.
    manifest_size : int
        Bytes of the version's manifest, 0 = not known.
    """

    version: int
    branch: str | None = None
    metadata: dict[str, Any] = {}
    created_at: str | None = None
    updated_at: str | None = None
    manifest_size: int = 0


class Branch(Struct, frozen=True):
    """A dataset that began as a version of another branch.

    Parameters
    ----------
    parent_branch : str, optional
        That branch, None for the main one.
    parent_version : int
        That version.
    created_at : int
        Seconds since the epoch; 0 = not known.
    """

    parent_branch: str | None
    parent_version: int
    created_at: int = 0


def branch_folder(branch: str | None) -> str:
    """Return the folder of a branch below the root of the dataset, empty for the main one."""
    return f"tree/{branch}" if branch not in (None, MAIN) else ""


def check_not_a_branch(root: str, bases: Iterable[BasePath]) -> None:
    """Reject a branch that was opened by the path of its folder: tags and branches of it are in the dataset above.

    Parameters
    ----------
    root : str
        The place that was opened.
    bases : iterable of BasePath
        Of a manifest in it: a branch names the dataset that it began in, maybe by another path to the same place.

    Raises
    ------
    InvalidArgumentError
        If it is a branch.
    """
    names = {b.path.rstrip("/").rpartition("/")[2] for b in bases if b.is_dataset_root}
    parts = root.rstrip("/").split("/tree/")
    for i in range(1, len(parts)):
        if parts[i - 1].rpartition("/")[2] in names:
            above, branch = "/tree/".join(parts[:i]), "/tree/".join(parts[i:])
            raise InvalidArgumentError(
                f"{root} is the folder of a branch: its tags, and the branches that began in it, are in {above}. "
                f"Nothing was changed. Open {above} with branch={branch!r}.",
                path=root,
            )


def tag_path(name: str) -> str:
    """Return the path of the file of a tag below the root of the dataset."""
    return f"{TAGS}/{quote(name, safe='')}{_SUFFIX}"


def _read(storage: Storage, folder: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the path and the content of each file of a folder, by the name that it is about."""
    names = [n for n in storage.list_from(folder).names if n.endswith(_SUFFIX) and not n.startswith(".")]
    paths = [f"{folder}/{n}" for n in names]
    found = {}
    for name, path, data in zip(names, paths, storage.read([RangeRequest(p) for p in paths]), strict=True):
        found[unquote(name.removesuffix(_SUFFIX))] = path, _object(path, bytes(data))
    return found


def _object(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = decode_json(data)
    except ValueError as e:
        raise _damaged(path, str(e)) from None
    if not isinstance(content, dict):
        raise _damaged(path, f"it has {type(content).__name__}, expected an object")
    return content


def _damaged(path: str, why: str) -> CorruptTableError:
    return CorruptTableError(
        f"Reference {path} is damaged: {why}. Restore the file from a copy, or create it again.", path=path
    )


def _number(path: str, content: dict[str, Any], key: str) -> int:
    value = content.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise _damaged(path, f"its {key} is {value!r}, expected a number from 0 on")
    return value


def _text(path: str, content: dict[str, Any], key: str) -> str | None:
    value = content.get(key)
    if value is not None and not isinstance(value, str):
        raise _damaged(path, f"its {key} is {value!r}, expected a text")
    return value


def _branch(path: str, content: dict[str, Any], key: str) -> str | None:
    value = _text(path, content, key)
    return None if value == MAIN else value


def _metadata(path: str, content: dict[str, Any]) -> dict[str, Any]:
    value = content.get("metadata")
    if value is not None and not isinstance(value, dict):
        raise _damaged(path, f"its metadata is {value!r}, expected an object")
    return value or {}


def read_tags(storage: Storage) -> dict[str, Tag]:
    """Return the tags of a dataset by name.

    Raises
    ------
    CorruptTableError
        If a file of a tag is damaged.
    """
    return {name: _tag(path, c) for name, (path, c) in _read(storage, TAGS).items()}


def tag_of(path: str, data: bytes) -> Tag:
    """Return a tag from the content of its file.

    Raises
    ------
    CorruptTableError
        If it is damaged.
    """
    return _tag(path, _object(path, data))


def _tag(path: str, content: dict[str, Any]) -> Tag:
    return Tag(
        _number(path, content, "version"),
        _branch(path, content, "branch"),
        _metadata(path, content),
        _text(path, content, "createdAt"),
        _text(path, content, "updatedAt"),
        _number(path, content, "manifestSize") if "manifestSize" in content else 0,
    )


def read_branches(storage: Storage) -> dict[str, Branch]:
    """Return the branches of a dataset by name; the main one is not among them.

    Raises
    ------
    CorruptTableError
        If a file of a branch is damaged.
    """
    return {
        name: Branch(
            _branch(path, c, "parentBranch"),
            _number(path, c, "parentVersion"),
            _number(path, c, "createAt") if "createAt" in c else 0,
        )
        for name, (path, c) in _read(storage, _BRANCHES).items()
    }


def find_tag(storage: Storage, name: str) -> Tag:
    """Return a tag.

    Raises
    ------
    VersionNotFoundError
        If there is no such tag.
    """
    tags = read_tags(storage)
    if name not in tags:
        listed = ", ".join(repr(t) for t in sorted(tags)) or "none"
        raise VersionNotFoundError(f"There is no tag {name!r}; there are: {listed}.", tag=name)
    return tags[name]
