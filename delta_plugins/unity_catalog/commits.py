"""Commits of managed tables through the catalog. Unity Catalog: Delta commits; Protocol: Catalog-managed tables."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, NoReturn

from delta_core.api import (
    LOG_DIRECTORY,
    STAGED_DIRECTORY,
    CatalogConflictError,
    CatalogError,
    CatalogResponseError,
    CatalogUnavailableError,
    CommitError,
    Conflict,
    Metadata,
    RangeRequest,
    StagedCommit,
    Storage,
    commit_name,
)
from delta_plugins.unity_catalog import rest
from delta_plugins.unity_catalog.columns import column_infos
from delta_plugins.unity_catalog.rest import Api

__all__ = ["FirstCommit", "UnityCommits"]

_PATH = "/delta/preview/commits"
#: The code of a catalog that takes no more commits of a table until those that it tracks are published.
_FULL = "RESOURCE_EXHAUSTED"
#: The code of a catalog in which another commit of the table is under way, which decides nothing yet.
_LOCKED = "UPDATE_REQUIREMENT_CONFLICT"


class UnityCommits:
    """The commits of a managed table, as the catalog has them: a `CommitSource`.

    Parameters
    ----------
    api : Api
        The REST API.
    name, table_id, location : str
        The table's full name, its id, and the URI of its root.
    properties : Mapping of str to str
        The recorded properties of the table.
    storage : Storage
        The table's store.
    """

    def __init__(
        self, api: Api, name: str, table_id: str, location: str, properties: Mapping[str, str], storage: Storage
    ) -> None:
        self._api = api
        self._name = name
        self._table = {"table_id": table_id, "table_uri": location}
        self._features = {k: v for k, v in properties.items() if k.startswith("delta.feature.")}
        self._storage = storage

    def __repr__(self) -> str:
        return f"UnityCommits({self._name!r})"

    def latest(self, since: int | None = None) -> tuple[int, list[StagedCommit]]:
        """Return the latest ratified version, and the ratified commits above ``since`` that are not published yet.

        Parameters
        ----------
        since : int, optional
            Only commits above this version are returned; all unless given.

        Raises
        ------
        CatalogError
            If the catalog does not report them.
        """
        start = 0 if since is None else since + 1
        out: dict[int, StagedCommit] = {}
        while True:
            latest, found = self._page(start)
            out |= {c.version: c for c in found}
            if not found or (last := max(c.version for c in found)) >= latest:
                return latest, [out[v] for v in sorted(out)]
            if last < start:
                self._malformed("a page has only commits below the version that it was to begin with")
            start = last + 1

    def _page(self, start: int) -> tuple[int, list[StagedCommit]]:
        found = self._api.get(_PATH, self._subject, body={**self._table, "start_version": start})
        commits = found.get("commits") or []
        if not isinstance(commits, list):
            self._malformed("commits is no list")
        # the first version is in the log when the table is registered; -1: no other one was ratified
        latest = max(0, self._number(found, "latest_table_version"))
        return latest, [self._commit(c) for c in commits]

    def _commit(self, found: Any) -> StagedCommit:
        if not isinstance(found, dict):
            self._malformed("a commit is no object")
        name = found.get("file_name")
        if not isinstance(name, str) or not name or "/" in name.removeprefix("_staged_commits/"):
            self._malformed("the file_name of a commit is no name of a file")
        name = name.removeprefix("_staged_commits/")
        return StagedCommit(self._number(found, "version"), name, self._number(found, "timestamp"))

    def _number(self, found: Mapping[str, Any], field: str) -> int:
        value = found.get(field)
        if isinstance(value, bool) or not isinstance(value, int):
            self._malformed(f"{field} is no whole number")
        return value

    def propose(self, version: int, commit: StagedCommit) -> object:
        """Propose a commit; sent again if an answer is lost, since the catalog ratifies a version once.

        Parameters
        ----------
        version : int
            The version that the commit is to become.
        commit : StagedCommit
            The file with its actions, which is written already, and its bytes.

        Returns
        -------
        Conflict or None
            `Conflict` if the catalog has a commit of the version; it may be this one if an answer was lost.

        Raises
        ------
        CommitError
            The catalog rejects the commit.
        CatalogError
            The catalog does not answer, or rejects a commit that it may have ratified before.
        """
        body = {**self._table, "commit_info": self._info(version, commit)}
        if (metadata := _metadata_of(commit.data or b"", self._features)) is not None:
            body["metadata"] = metadata
        num_lost = 0
        has_published = False
        while True:
            try:
                self._api.post(_PATH, self._subject, body)
            except CatalogError as e:
                if isinstance(e, CatalogConflictError) and e.facts.get("code") != _LOCKED:
                    return Conflict(version)
                if e.facts.get("code") == _FULL and not has_published:
                    has_published = True
                    self._publish_all()
                    continue
                if _may_have_acted(e):
                    num_lost += 1
                    if num_lost == rest.TRIES:
                        raise
                    time.sleep(rest.PAUSE * 2**num_lost)
                    continue
                if num_lost or isinstance(e, CatalogResponseError):
                    raise
                raise CommitError(
                    f"Version {version} of {self._name} was rejected: {e} Nothing was committed.",
                    version=version,
                    name=self._name,
                ) from e
            else:
                return None

    def _info(self, version: int, commit: StagedCommit) -> dict[str, Any]:
        path = f"{STAGED_DIRECTORY}/{commit.content!s}"
        ((size, modified_ms),) = self._storage.stat([path])
        return {
            "version": version,
            "timestamp": commit.timestamp_ms,
            "file_name": commit.content,
            "file_size": size,
            "file_modification_timestamp": modified_ms,
        }

    def _publish_all(self) -> None:
        """Publish what writers that failed have left: the catalog tracks a few unpublished commits only."""
        for commit in self.latest()[1]:
            path = f"{LOG_DIRECTORY}/{commit_name(commit.version)}"
            data = self._read(f"{STAGED_DIRECTORY}/{commit.content!s}")
            if self._storage.put_if_absent(path, data) == "exists" and self._read(path) != data:
                raise CommitError(
                    f"The catalog has no room for more commits of {self._name}, and version {commit.version} can't be "
                    f"published: {path} is another commit. Move the file elsewhere, and try again.",
                    version=commit.version,
                    name=self._name,
                )
            self.published(commit.version)

    def _read(self, path: str) -> bytes:
        (data,) = self._storage.read([RangeRequest(path)])
        return bytes(data)

    def published(self, version: int) -> None:
        """Report the catalog that every version up to this one is in the log.

        Parameters
        ----------
        version : int
            The last published version.

        Raises
        ------
        CatalogError
            If the catalog does not take it; the next report covers it too.
        """
        self._api.post(_PATH, self._subject, {**self._table, "latest_backfilled_version": version}, repeats=True)

    @property
    def _subject(self) -> str:
        return f"the commits of table {self._name}"

    def _malformed(self, why: str) -> NoReturn:
        self._api.malformed(self._subject, why)


class FirstCommit:
    """The commits of a table that is being created: version 0 goes into the log before the catalog has the table.

    Parameters
    ----------
    storage : Storage
        The store at the place that the catalog allocated for the table.
    """

    #: Commits are handed over themselves, none is staged.
    inline_below = 1 << 62

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._latest = -1

    def latest(self, since: int | None = None) -> tuple[int, list[StagedCommit]]:
        """Return the latest version, which is in the log; ``since`` as of `CommitSource`."""
        return self._latest, []

    def propose(self, version: int, commit: StagedCommit) -> object:
        """Put version 0 into the log.

        Parameters
        ----------
        version : int
            0.
        commit : StagedCommit
            The commit itself.
        """
        assert isinstance(commit.content, bytes)
        path = f"{LOG_DIRECTORY}/{commit_name(version)}"
        if self._storage.put_if_absent(path, commit.content) == "exists":
            return Conflict(version)
        self._latest = version
        return None

    def published(self, version: int) -> None:
        """Do nothing: version 0 is published; ``version`` as of `CommitSource`."""


def _may_have_acted(error: CatalogError) -> bool:
    """Whether a request that failed is sent again, since the catalog may act on it."""
    is_server = isinstance(status := error.facts.get("status"), int) and status >= 500
    return is_server or error.facts.get("code") == _LOCKED or isinstance(error, CatalogUnavailableError)


def _metadata_of(data: bytes, features: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the table's new definition, None if a commit does not change it. Unity Catalog: DeltaMetadata."""
    if b'"metaData"' not in data:
        return None
    found: dict[str, Any] = {}
    for line in data.splitlines():
        if b'"metaData"' in line or b'"protocol"' in line:
            found |= json.loads(line)
    if "metaData" not in found:
        return None
    metadata = Metadata.parse(found["metaData"], "the commit")
    listed = found.get("protocol", {}).get("writerFeatures") or ()
    features = {**features, **{f"delta.feature.{name}": "supported" for name in listed}}
    out: dict[str, Any] = {
        "schema": {"columns": column_infos(metadata.schema, metadata.partition_columns)},
        # the catalog replaces all properties that it has
        "properties": {"properties": {**features, **metadata.configuration}},
    }
    return {**out, "description": metadata.description} if metadata.description else out
