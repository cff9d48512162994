"""Commits through a catalog: staged or sent inline, ratified, then published in order. Protocol: Commit Protocol."""

from __future__ import annotations

import uuid

from delta_core.api import (
    LOG_DIRECTORY,
    STAGED_DIRECTORY,
    CommitError,
    CommitSource,
    CommitStateUnknownError,
    Committed,
    Conflict,
    LogError,
    Proposal,
    RangeRequest,
    StagedCommit,
    Storage,
    commit_name,
)

__all__ = ["CatalogCommitter"]


class CatalogCommitter:
    """Proposes commits to a catalog.

    Parameters
    ----------
    catalog : CommitSource
        With an attribute ``inline_below``, commits of fewer bytes are sent to it as they are.
    """

    def __init__(self, catalog: CommitSource, storage: Storage) -> None:
        self._catalog = catalog
        self._storage = storage
        self._inline_below: int = getattr(catalog, "inline_below", 0)

    def commit(self, proposal: Proposal) -> Committed | Conflict:
        """Stage a commit and let the catalog decide; a staged file that did not win is deleted again.

        Raises
        ------
        CommitError
            If the catalog rejects it: nothing was committed.
        CommitStateUnknownError
            If the catalog did not answer, and querying it for its commits did not report.
        """
        staged = self._stage(proposal)
        try:
            outcome = self._catalog.propose(proposal.version, staged)
        except CommitStateUnknownError as e:
            won = self._find_out(proposal, staged, e)
        except CommitError:
            self._discard(staged)
            raise
        except Exception as e:  # noqa: BLE001  (a catalog's client raises what it likes)
            won = self._find_out(proposal, staged, e)
        else:
            # a client that proposes twice may be reported that its own commit took the version
            won = not isinstance(outcome, Conflict) or self._find_out(proposal, staged, None)
        if won:
            path = None if isinstance(staged.content, bytes) else f"{_BELOW_LOG}/{staged.content}"
            return Committed(proposal.version, path)
        self._discard(staged)
        return Conflict(proposal.version)

    def _discard(self, staged: StagedCommit) -> None:
        if isinstance(staged.content, str):
            self._storage.delete([f"{STAGED_DIRECTORY}/{staged.content}"])

    def _stage(self, proposal: Proposal) -> StagedCommit:
        if len(proposal.data) < self._inline_below:
            return StagedCommit(proposal.version, proposal.data, proposal.timestamp_ms, proposal.data)
        name = f"{proposal.version:020d}.{uuid.uuid4()}.json"
        self._storage.put_if_absent(f"{STAGED_DIRECTORY}/{name}", proposal.data)
        return StagedCommit(proposal.version, name, proposal.timestamp_ms, proposal.data)

    def _has_won(self, proposal: Proposal, staged: StagedCommit) -> bool | None:
        """Return whether a commit is its version; None while the version is not taken."""
        latest, commits = self._catalog.latest(staged.version - 1)
        for commit in commits:
            if commit.version == staged.version:
                return commit.content == staged.content
        if latest < staged.version:
            return None
        # published, and forgotten by the catalog
        return self._read(f"{LOG_DIRECTORY}/{commit_name(staged.version)}") == proposal.data

    def _find_out(self, proposal: Proposal, staged: StagedCommit, cause: Exception | None) -> bool:
        try:
            found = self._has_won(proposal, staged)
        except Exception as e:  # noqa: BLE001  (as above)
            cause, found = cause or e, None
        if found is None:
            # to delete the staged file would be to delete the version, if the catalog has only not listed it yet
            why = (
                str(cause or "").rstrip(".")
                or f"it reports that version {proposal.version} is taken, and does not list it"
            )
            raise CommitStateUnknownError(
                f"Whether the catalog ratified version {proposal.version} is not known: {why}. Query it for txnId "
                f"{proposal.txn_id} before trying again; nothing was deleted.",
                version=proposal.version,
                txn_id=proposal.txn_id,
            ) from cause
        return found

    def publish(self, version: int) -> None:
        """Copy every ratified commit up to a version into the log, oldest first, and report the catalog.

        Protocol: Publishing Commits.

        Raises
        ------
        LogError
            The log has another commit in the place of one: it is not reported, so that the catalog keeps its own.
        """
        _, commits = self._catalog.latest(None)
        for commit in sorted(commits, key=lambda c: c.version):
            if commit.version > version:
                break
            path, data = f"{LOG_DIRECTORY}/{commit_name(commit.version)}", self._content(commit)
            if self._storage.put_if_absent(path, data) == "exists" and self._read(path) != data:
                raise LogError(
                    f"{path} is not the commit that the catalog ratified as version {commit.version}, which is not "
                    "published: the log was damaged, or the catalog restored from a backup. Readers get the commit "
                    "from the catalog. Move the file elsewhere; the next commit publishes the catalog's.",
                    version=commit.version,
                    path=path,
                )
            self._catalog.published(commit.version)

    def _content(self, commit: StagedCommit) -> bytes:
        if isinstance(commit.content, bytes):
            return commit.content
        path = commit.content if "/" in commit.content else f"{STAGED_DIRECTORY}/{commit.content}"
        return self._read(path)

    def _read(self, path: str) -> bytes:
        (data,) = self._storage.read([RangeRequest(path)])
        return bytes(data)


_BELOW_LOG = STAGED_DIRECTORY.removeprefix(f"{LOG_DIRECTORY}/")
