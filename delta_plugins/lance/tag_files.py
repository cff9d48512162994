"""Files of tags that are replaced or deleted only if they are still as they were read, on stores with put-if-absent."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable
from contextlib import suppress

from delta_core.api import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    EngineError,
    RangeRequest,
    Rejected,
    Storage,
    Unsettled,
    VersionNotFoundError,
    publish_file,
)
from delta_plugins.lance.refs import TAGS, tag_path

__all__ = ["change_tag_file"]

#: A writer that claimed a file has this long to replace it; then it counts as killed.
_CLAIM_SECONDS = 600
#: How often a change is tried again, and how long it waits before, in s.
_ATTEMPTS, _PAUSE = 12, 0.02


def change_tag_file(storage: Storage, name: str, change: Callable[[bytes], bytes | None]) -> None:
    """Replace the file of a tag, or delete it.

    Of several writers that change the same content, one at a time claims it: it creates a file with a name that
    depends on the content, replaces the tag, and deletes its claim. A writer that loses tries again with the new
    content. A store that does not create files exclusively has no claims: there the last writer counts.

    Parameters
    ----------
    storage : Storage
        Of the dataset.
    name : str
        The tag.
    change : function(bytes) -> bytes or None
        Returns the new content from the old one, None to delete the file; called again for each attempt.

    Raises
    ------
    VersionNotFoundError
        If there is no such tag.
    CommitConflictError
        If other writers change it all the time, or one holds its claim.
    CommitStateUnknownError
        If it can't be found out whether the tag was changed, or claimed.
    CommitError
        If the store rejects new files.
    """
    path = tag_path(name)
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE * min(2**attempt, 32))
        before = _content(storage, path, name)
        after = change(before)
        claim = _claim(storage, name, before)
        if claim is None:
            continue
        try:
            is_same = _content(storage, path, name) == before
            if is_same:
                _replace(storage, path, before, after)
        except CommitStateUnknownError:
            raise  # a put may land later: until then no other writer changes this content
        except BaseException:
            _end(storage, claim)
            raise
        # a content that is another one now has claims of other names
        _end(storage, claim)
        if is_same:
            return
    raise CommitConflictError(
        f"Tag {name!r} is changed by other writers, or one that was interrupted left its file "
        f"{_claim_path(name, before)!r}, which counts for {_CLAIM_SECONDS // 60} minutes. The tag was not changed. "
        "Look at it, and try again.",
        tag=name,
    )


def _content(storage: Storage, path: str, name: str) -> bytes:
    try:
        [found] = storage.read([RangeRequest(path)])
    except FileNotFoundError:
        raise VersionNotFoundError(f"There is no tag {name!r}: it was deleted meanwhile.", tag=name) from None
    return bytes(found)


def _claim_path(name: str, content: bytes) -> str:
    # readers list files that end with .json
    stem = tag_path(name).rpartition("/")[2].removesuffix(".json")
    return f"{TAGS}/.{stem}.{hashlib.sha256(content).hexdigest()[:32]}.claim"


def _claim(storage: Storage, name: str, content: bytes) -> str | None:
    """Claim a content, and return the path of the claim; None if another writer has it.

    A store that does not create files exclusively has no claims, and returns an empty path.

    Raises
    ------
    CommitError
        If a failure keeps it open whether the store does.
    """
    path, mark = _claim_path(name, content), uuid.uuid4().bytes
    try:
        outcome = publish_file(storage, path, mark, folder=TAGS, is_ours=lambda d: bytes(d) == mark)
    except CommitError as e:
        # the cause of a failed request is the store's error; that of a store without the call is Python's
        failure = e.__cause__
        if failure is not None and not isinstance(failure.__cause__, (NotImplementedError, TypeError)):
            raise
        return ""
    if isinstance(outcome, Rejected):
        raise CommitError(f"Tag {name!r} could not be changed: {outcome.cause}", tag=name) from outcome.cause
    if isinstance(outcome, Unsettled):
        raise CommitStateUnknownError(
            f"Whether {path!r} was created is not known after {outcome.puts} tries. Tag {name!r} was not changed. "
            "Delete this file before you try again.",
            tag=name,
        )
    if outcome == "created":
        return path
    _end_old_claim(storage, path)
    return None


def _end(storage: Storage, claim: str) -> None:
    if claim:
        with suppress(EngineError):
            storage.delete([claim])


def _end_old_claim(storage: Storage, path: str) -> None:
    try:
        [(_, modified_ms)] = storage.stat([path])
    except FileNotFoundError:
        return
    if time.time() - modified_ms / 1000 > _CLAIM_SECONDS:
        storage.delete([path])


def _replace(storage: Storage, path: str, before: bytes, after: bytes | None) -> None:
    try:
        if after is None:
            storage.delete([path])
        else:
            storage.put(path, after)
    except EngineError as e:
        found: bytes | None = before
        try:
            [data] = storage.read([RangeRequest(path)])
            found = bytes(data)
        except FileNotFoundError:
            found = None
        except EngineError:
            pass
        if found != after:
            raise CommitStateUnknownError(
                f"Whether {path!r} was changed is not known: {e} List the tags before you try again."
            ) from e
