"""The live files of a version, made from its log files when they are requested."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, TypeVar

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.engine import Engine
from delta_core.errors import CheckpointError
from delta_core.kernel.log import parts
from delta_core.kernel.log.commit_chunks import CommitChunk
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.reconcile import reconcile
from delta_core.kernel.log.source import LogContents, TableLog, concat_actions
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import ActionField, DomainMetadata
from delta_core.kernels.json_actions import ParsedActions

__all__ = ["LiveFileListing", "LaterCommits", "domains_of", "fields_of", "read_of", "touched_files"]

T = TypeVar("T")


class LaterCommits(Struct, frozen=True):
    """Commits on top of files that are loaded, oldest first; looked at when the files are requested."""

    files: FileSet
    actions: ParsedActions
    commits: tuple[LogFile, ...]

    def then(self, actions: ParsedActions, commits: tuple[LogFile, ...]) -> LaterCommits:
        """Return these commits and the next ones."""
        return LaterCommits(self.files, concat_actions(self.actions, actions), (*self.commits, *commits))

    def files_after(self, engine: Engine, fields: tuple[ActionField, ...]) -> FileSet:
        """Return the files that are live after the commits."""
        found = reconcile(self.actions)
        chunk = CommitChunk(engine.logs, self.commits, self.actions.adds, fields)
        return self.files.refreshed([(chunk, found.adds)], found.keys)


class LiveFileListing(Struct, frozen=True):
    """Makes the live files of a version. They hold it, and so not the snapshot, which holds them."""

    log: TableLog
    state: TableState
    plugins: PluginSet
    fields: tuple[ActionField, ...]

    def of(self, contents: LogContents) -> FileSet:
        """Return the live files of a version, from the shared cache if the table was opened with one."""
        if self.log.cache is None or contents.identities is None:
            return self.from_log(contents)
        return parts.cached_files(self, self.log.cache, contents)

    def from_log(self, contents: LogContents) -> FileSet:
        """Return the live files of a version, as its log files have them."""
        logs, found = self.log.engine.logs, contents.reconciled
        chunks: list[Any] = []
        if contents.tail.adds.num_rows:
            adds = CommitChunk(logs, contents.segment.deltas, contents.tail.adds, self.fields)
            chunks.append((adds, (), found.adds))
        if contents.checkpoint is not None:
            older = contents.checkpoint.chunks(self.fields, self.sidecars)
            chunks += [(c, (found.keys,), None) for c in older]
        files = FileSet.of_chunks(chunks, self.log.engine.map)
        return self.renewable(files, contents)

    def renewable(self, files: FileSet, contents: LogContents) -> FileSet:
        """Return the files of a version as a set that can be made again."""
        return files.renewable(partial(self.renewed, contents), touched_files(contents))

    def renewed(self, contents: LogContents) -> FileSet:
        """Return the same files from a fresh listing."""
        return read_of(self.log, self.log.again(contents), self.of)[0]

    def sidecars(self, checkpoint: str, actions: pa.Table) -> Any:
        """Return the sidecars of a checkpoint, as the feature that owns them reports them."""
        return self.plugins.single("checkpoint_sidecars", table=self.state, checkpoint=checkpoint, actions=actions)


def read_of(log: TableLog, contents: LogContents, read: Callable[[LogContents], T]) -> tuple[T, LogContents]:
    """Run what reads the log's files; if it fails on a checkpoint, again on what replaces that."""
    for attempt in count(1):
        try:
            return read(contents), contents
        except CheckpointError as e:
            contents = log.instead_of(contents, e, attempt)
    raise AssertionError  # counting does not end


def touched_files(contents: LogContents) -> pa.Table:
    """Return the files that the commits above the checkpoint add or remove: ``path`` and ``dvId``."""
    return pa.concat_tables([t.select(["path", "dvId"]) for t in (contents.tail.adds, contents.tail.removes)])


def fields_of(plugins: PluginSet) -> tuple[ActionField, ...]:
    """Return the columns that features add to file actions."""
    return tuple(f for feature in plugins.features.values() for f in feature.fields)


def domains_of(contents: LogContents) -> dict[str, str]:
    """Return every domain's configuration, removed ones left out."""
    where = f"version {contents.segment.version}"
    found = [DomainMetadata.parse(v, where) for v in contents.newest("domainMetadata", "domain").values()]
    return {d.domain: d.configuration for d in found if not d.removed}
