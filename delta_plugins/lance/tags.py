"""The tags of a dataset: names of versions that are created, moved and deleted. Protocol: folder ``_refs/tags``."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from operator import index
from typing import Any, SupportsIndex

from msgspec import structs

from delta_core.api import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    InvalidArgumentError,
    Rejected,
    Storage,
    Unsettled,
    publish_file,
)
from delta_plugins.lance.arguments import checked_texts
from delta_plugins.lance.refs import TAGS, Tag, branch_folder, check_not_a_branch, find_tag, read_tags, tag_of, tag_path
from delta_plugins.lance.tag_files import change_tag_file
from delta_plugins.lance.version_manifests import read_latest, read_version

__all__ = ["Tags"]

#: Names that every reader of the format lists; a name of other characters is encoded, which some can't read again.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)


def _check_name(name: Any) -> None:
    is_text = isinstance(name, str) and _NAME.fullmatch(name) is not None
    if not is_text or name.startswith(".") or name.endswith((".", ".lock")) or ".." in name:
        raise InvalidArgumentError(
            f"Found the tag {name!r}; expected at most 200 letters and digits of ASCII, '.', '-' and '_', neither "
            "beginning nor ending with a dot, without two dots after each other, and not ending with '.lock'."
        )


def _now() -> str:
    seconds, nanos = divmod(time.time_ns(), 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09}Z"


class Tags(Mapping[str, Tag]):
    """The tags of a dataset by name, read at each use; a call returns all of them.

    Parameters
    ----------
    storage : Storage
        Of the dataset.
    here : function() -> (int, str or None)
        Returns the version and the branch that a tag names by default.

    Notes
    -----
    Each tag is a file of its own. It is created if there is none of its name, so that one of several writers gets the
    name. It is moved and deleted only as it was read (`tag_files.change_tag_file`): of several writers here, each one
    sees what the one before it did. pylance replaces and deletes files whatever they contain.
    """

    def __init__(self, storage: Storage, here: Callable[[], tuple[int, str | None]]) -> None:
        self._storage = storage
        self._here = here

    def __call__(self) -> dict[str, Tag]:
        """Return the tags by name."""
        return read_tags(self._storage)

    def list(self) -> dict[str, Tag]:
        """Return the tags by name, as a call does."""
        return self()

    def __getitem__(self, name: str) -> Tag:
        return self()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self())

    def __len__(self) -> int:
        return len(self())

    def __repr__(self) -> str:
        return f"Tags({self()!r})"

    def create(
        self,
        name: str,
        version: int | None = None,
        *,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Tag:
        """Create a tag.

        Parameters
        ----------
        name : str
            Its name, which no other tag of the dataset has.
        version : int, optional
            The version; by default that of the dataset as it is opened, or the latest one of ``branch``.
        branch : str, optional
            The branch of the version, ``main`` for the dataset's own; by default that of the dataset as it is opened.
        metadata : Mapping of str to str, optional
            Kept with the tag.

        Raises
        ------
        InvalidArgumentError
            If there is such a tag, or the name is none that every reader can list, or the dataset is a branch that
            was opened by the path of its folder.
        VersionNotFoundError
            If there is no such version.
        TableNotFoundError
            If there is no such branch.
        CommitError
            If it could not be written.
        CommitStateUnknownError
            If it can't be found out whether it was created.
        """
        _check_name(name)
        now = _now()
        made = self._made(version, branch, Tag(0, None, _texts(metadata), now, now))
        path, data = tag_path(name), _encoded(made)
        outcome = publish_file(self._storage, path, data, folder=TAGS, is_ours=lambda d: bytes(d) == data)
        if outcome == "exists":
            found = find_tag(self._storage, name)
            raise InvalidArgumentError(
                f"There is a tag {name!r} already, of version {found.version}. Choose another name, or move it with "
                "tags.update.",
                tag=name,
            )
        if isinstance(outcome, Rejected):
            raise CommitError(f"Tag {name!r} could not be written: {outcome.cause}") from outcome.cause
        if isinstance(outcome, Unsettled):
            raise CommitStateUnknownError(
                f"Whether tag {name!r} was created is not known after {outcome.puts} tries. List the tags before you "
                "try again."
            )
        return made

    def update(
        self,
        name: str,
        version: int | None = None,
        *,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_version: int | None = None,
    ) -> Tag:
        """Move a tag to another version.

        Parameters
        ----------
        name : str
            The tag.
        version, branch
            As of `create`.
        metadata : Mapping of str to str, optional
            In place of the metadata of the tag; by default they stay.
        expected_version : int, optional
            The version that the tag has to be of; by default any one.

        Raises
        ------
        InvalidArgumentError
            If the dataset is a branch that was opened by the path of its folder.
        VersionNotFoundError
            If there is no such tag, or no such version.
        TableNotFoundError
            If there is no such branch.
        CommitConflictError
            If the tag is of another version than the expected one, or other writers change it all the time.
        CommitError
            If it could not be written.
        CommitStateUnknownError
            If it can't be found out whether it was moved.
        """
        find_tag(self._storage, name)
        texts = None if metadata is None else _texts(metadata)
        target = self._made(version, branch, Tag(0, None, {}))
        made = target

        def moved(content: bytes) -> bytes:
            nonlocal made
            before = _checked(name, content, expected_version)
            kept = before.metadata if texts is None else texts
            made = structs.replace(target, metadata=kept, created_at=before.created_at, updated_at=_now())
            return _encoded(made)

        change_tag_file(self._storage, name, moved)
        return made

    def delete(self, name: str, *, expected_version: int | None = None) -> None:
        """Delete a tag; its version stays.

        Parameters
        ----------
        name : str
            The tag.
        expected_version : int, optional
            As of `update`.

        Raises
        ------
        VersionNotFoundError
            If there is no such tag.
        CommitConflictError, CommitError, CommitStateUnknownError
            As of `update`.
        """
        find_tag(self._storage, name)

        def none(content: bytes) -> None:
            _checked(name, content, expected_version)

        change_tag_file(self._storage, name, none)

    def _made(self, version: int | None, branch: str | None, tag: Tag) -> Tag:
        """Return a tag of a version that is there."""
        here, of = self._here()
        named = of if branch is None else branch
        below = branch_folder(named)
        if isinstance(version, bool) or not (version is None or isinstance(version, SupportsIndex)):
            raise InvalidArgumentError(f"Found {version!r} as the version of a tag, expected a whole number.")
        if version is None and branch is None:
            version = here
        manifest = (
            read_latest(self._storage, below) if version is None else read_version(self._storage, index(version), below)
        )
        check_not_a_branch(self._storage.root, manifest.base_paths.values())
        [(size, _)] = self._storage.stat([manifest.path])
        return Tag(manifest.version, named if below else None, tag.metadata, tag.created_at, tag.updated_at, size)


def _checked(name: str, content: bytes, expected_version: int | None) -> Tag:
    """Return a tag that is of the expected version."""
    found = tag_of(tag_path(name), content)
    if expected_version is not None and found.version != expected_version:
        raise CommitConflictError(
            f"Tag {name!r} is of version {found.version}, expected {expected_version}: another writer moved it. It was "
            "not changed.",
            tag=name,
            version=found.version,
        )
    return found


def _texts(metadata: Mapping[str, str] | None) -> dict[str, Any]:
    return checked_texts(metadata, "the metadata of a tag")


def _encoded(tag: Tag) -> bytes:
    content = {
        "branch": tag.branch,
        "version": tag.version,
        "createdAt": tag.created_at,
        "updatedAt": tag.updated_at,
        "manifestSize": tag.manifest_size,
        "metadata": tag.metadata,
    }
    return json.dumps({k: v for k, v in content.items() if v is not None or k == "branch"}, indent=2).encode()
