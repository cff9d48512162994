"""A committer on DynamoDB that works together with the multi-cluster log store of Delta on Spark.

An entry of the DynamoDB table decides which writer has a version. A writer puts the commit's bytes under a temporary
name, then the entry unless there is one, then copies the bytes to the commit's name, and marks the entry complete. A
writer that finds an entry that is not complete, writer or reader, finishes it before going on: from the entry on, the
commit is.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Mapping
from typing import Any

from delta_core.api import (
    LOG_DIRECTORY,
    CommitError,
    CommitStateUnknownError,
    Committed,
    Conflict,
    EngineError,
    EntryTakenError,
    Outcome,
    Proposal,
    RangeRequest,
    Storage,
    commit_name,
    holds_transaction,
    is_dynamo_rejection,
)
from delta_plugins.dynamodb.items import Entry, EntryTable
from delta_plugins.dynamodb.options import Settings, read_settings

__all__ = ["DynamoCommitter", "committer"]

_log = logging.getLogger(__name__)
#: How often a step is tried that anybody may repeat, and how long to wait before, in s.
TRIES = 4
PAUSE = 0.05
#: Spellings of one scheme: an entry belongs to a path as it is spelled.
_SPELLINGS = ("s3", "s3a", "s3n")


def committer(storage: Storage, options: Mapping[str, Any]) -> DynamoCommitter | None:
    """Return the committer of a store, None if neither options nor environment name a table of DynamoDB."""
    settings = read_settings(options)
    return None if settings is None else DynamoCommitter(storage, settings)


class DynamoCommitter:
    """Commits through entries of a DynamoDB table, which is made if it is missing.

    Parameters
    ----------
    settings : Settings
        Which table, where, and the path that other writers use for this Delta table.
    """

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self._storage = storage
        self._settings = settings
        self._table = EntryTable(settings, settings.table_path or storage.root)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._storage, self._settings)

    def commit(self, proposal: Proposal) -> Outcome:
        """Publish a commit.

        Raises
        ------
        CommitError
            If store or DynamoDB fail before the version is claimed, the version before is missing, or entries are left
            of another table that lay here.
        """
        name = commit_name(proposal.version)
        entry = Entry(name, f".tmp/{name}.{uuid.uuid4()}")
        try:
            outcome = self._try_claim(entry, proposal)
        except EngineError as e:
            raise CommitError(
                f"Version {proposal.version} of {self._table.path} was not claimed: {e} Nothing was committed.",
                path=self._table.path,
                version=proposal.version,
            ) from e
        if outcome is not None:
            return outcome
        try:
            self._finish(entry)
            # a writer that does not require DynamoDB may have been there first: what lies in the log is the commit
            return self._outcome(proposal, self._data(name) or proposal.data)
        except EngineError as e:
            _log.warning(
                "Version %s of %s is committed; the next writer copies it: %s", proposal.version, self._table.path, e
            )
            return Committed(proposal.version, name)

    def _try_claim(self, entry: Entry, proposal: Proposal) -> Outcome | None:
        """Claim a version; return the outcome if it is another's, or ours from an earlier try."""
        found = self._data(entry.name)
        if found is not None:
            return self._outcome(proposal, found)
        if not self._is_open(proposal.version):
            return Conflict(proposal.version)
        self._storage.put(f"{LOG_DIRECTORY}/{entry.temporary}", proposal.data)
        if self._claim(entry, proposal):
            return None
        self._drop(entry)
        self._finish_winner(entry.name)
        return Conflict(proposal.version)

    def recover(self) -> None:
        """Finish the last commit if its writer did not."""
        entry = self._table.latest()
        if entry is not None and not entry.complete:
            self._finish(entry)

    @staticmethod
    def _outcome(proposal: Proposal, found: bytes) -> Outcome:
        ours = holds_transaction(found, proposal.txn_id)
        return Committed(proposal.version, commit_name(proposal.version)) if ours else Conflict(proposal.version)

    # --- before ---

    def _is_open(self, version: int) -> bool:
        """Whether a version that is not in the log may be claimed: the one before is there, and nothing of old."""
        if version == 0:
            return self._is_new()
        name = commit_name(version - 1)
        before = self._table.get(name)
        if before is not None and not before.complete:
            self._finish(before)
        elif self._data(name) is None:
            raise CommitError(
                f"Version {version - 1} of {self._table.path} is missing: {name} is neither in the log nor in DynamoDB "
                f"table {self._table.name!r}.",
                path=self._table.path,
                version=version,
            )
        elif before is None:
            self._check_spelling()
        return True

    def _is_new(self) -> bool:
        name = commit_name(0)
        old = self._table.get(name)
        if old is not None and old.complete:
            if self._data(name) is not None:  # finished a moment ago
                return False
            raise CommitError(
                f"DynamoDB table {self._table.name!r} has entries of a table that lay at {self._table.path} before: "
                "delete them, or use another path.",
                path=self._table.path,
                version=0,
            )
        self._check_spelling()
        return True

    def _check_spelling(self) -> None:
        """Reject to go on if others commit under another spelling of this path: nothing would keep us apart."""
        scheme, _, rest = self._table.path.partition("://")
        for other in _SPELLINGS if scheme in _SPELLINGS else ():
            if other != scheme and self._table.latest(f"{other}://{rest}") is not None:
                raise CommitError(
                    f"Other writers commit to this table as {other}://{rest}, and you as {self._table.path}: DynamoDB "
                    f"would not keep you apart. Open it as {other}://, or pass that path as the option "
                    "delta_dynamo_table_path.",
                    path=self._table.path,
                )

    # --- steps ---

    def _claim(self, entry: Entry, proposal: Proposal) -> bool:
        """Put an entry unless there is one; a put with a lost answer is put again, and known by its temporary name."""
        failure: EngineError | None = None
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE * 4 ** (attempt - 1))
            try:
                self._table.put(entry)
                return True
            except EntryTakenError:
                pass  # maybe by this very entry
            except EngineError as e:
                failure = e
                if attempt == 0 and is_dynamo_rejection(e.__cause__):
                    self._drop(entry)
                    raise
                continue
            try:
                present = self._table.get(entry.name)
                return present is not None and present.temporary == entry.temporary
            except EngineError as e:
                failure = e
        raise CommitStateUnknownError(
            f"Whether version {proposal.version} of {self._table.path} was committed is not known after {TRIES} tries: "
            f"{failure} Look for tempPath {entry.temporary} in DynamoDB table {self._table.name!r}; nothing was "
            "deleted.",
            version=proposal.version,
            txn_id=proposal.txn_id,
        ) from failure

    def _finish_winner(self, name: str) -> None:
        """Publish the commit that won to the log, so that it can be read."""
        entry = self._table.get(name)
        if entry is not None and not entry.complete:
            self._finish(entry)

    def _finish(self, entry: Entry) -> None:
        """Copy a commit to its name unless it is there, and mark its entry; anybody may, and several at once."""
        for attempt in range(TRIES):
            try:
                self._copy(entry)
                self._table.mark(entry.name)
                break
            except EngineError:
                if attempt == TRIES - 1:
                    raise
                time.sleep(PAUSE * 4**attempt)
        self._drop(entry)

    def _copy(self, entry: Entry) -> None:
        if self._data(entry.name) is not None:
            return
        data = self._data(entry.temporary)
        if data is not None:
            self._put(f"{LOG_DIRECTORY}/{entry.name}", data)
        # else another one has copied it meanwhile, and dropped the temporary file
        elif self._data(entry.name) is None:
            raise EngineError(
                f"The bytes of {entry.name} of {self._table.path} are neither there nor at {entry.temporary}, if "
                "DynamoDB has them."
            )

    def _put(self, path: str, data: bytes) -> None:
        """Put a commit whose bytes an entry has settled, so that another put of them changes nothing.

        If the store can put conditionally, nothing is overwritten that a writer without DynamoDB has put.
        """
        try:
            self._storage.put_if_absent(path, data)
        except EngineError as e:
            if not isinstance(e.__cause__, NotImplementedError):
                raise
            self._storage.put(path, data)

    def _drop(self, entry: Entry) -> None:
        try:
            self._storage.delete([f"{LOG_DIRECTORY}/{entry.temporary}"])
        except EngineError as e:
            _log.info("Temporary file %s of %s stays: %s", entry.temporary, self._table.path, e)

    def _data(self, name: str) -> bytes | None:
        try:
            (found,) = self._storage.read([RangeRequest(f"{LOG_DIRECTORY}/{name}")])
        except FileNotFoundError:
            return None
        return bytes(found)
