"""The live files of a version from the folder that processes share, with the commits above an older entry on top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from delta_core.errors import DeltaError, LogChangedError
from delta_core.expressions.ast import FileStatistic
from delta_core.kernel.log.cache_folder import CachedPart, SnapshotCache, StoredFiles, StoredPart
from delta_core.kernel.log.commit_chunks import CommitChunk
from delta_core.kernel.log.file_columns import PARTITION, Chunk, pick_all
from delta_core.kernel.log.files import FileSet, Part
from delta_core.kernel.log.names import is_unique
from delta_core.kernel.log.reconcile import reconcile
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, int64_values, nulls_of, number_array, one_array
from delta_core.kernels.json_actions import ParsedActions
from delta_core.runtime.entry_points import installed_version
from delta_core.runtime.processes import cached_property

if TYPE_CHECKING:
    from delta_core.engines.interface import CheckpointHandle
    from delta_core.kernel.log.file_columns import Mask
    from delta_core.kernel.plugins.registry import PluginSet
    from delta_core.kernel.plugins.state import TableState
    from delta_core.kernel.protocol.actions import ActionField

__all__ = ["cached_files"]

#: Columns that are as large as all others together, or that an ``add`` does not have.
_NOT_STORED = ("stats", "tags", "deletionTimestamp", "extendedFileMetadata")
_KEY = ("path", "dvId")
#: An entry is made again if later commits touch more than this share of its files.
_SHARE = 10

#: `source.LogContents`; that module loads this one.
LogContents = Any


class LoggedFiles(Protocol):
    """Makes the live files of a version from its log."""

    @property
    def log(self) -> Any:
        """The table's log, a `TableLog`."""
        ...

    @property
    def state(self) -> TableState:
        """The version's definition."""
        ...

    @property
    def plugins(self) -> PluginSet:
        """The plugins that serve its features."""
        ...

    @property
    def fields(self) -> tuple[ActionField, ...]:
        """The columns that features add to file actions."""
        ...

    def from_log(self, contents: LogContents) -> FileSet:
        """Return the live files of a version, as its log files have them.

        Parameters
        ----------
        contents : LogContents
            The version.
        """
        ...

    def renewable(self, files: FileSet, contents: LogContents) -> FileSet:
        """Return the files of a version as a set that can be made again.

        Parameters
        ----------
        files : FileSet
            The files.
        contents : LogContents
            The version.
        """
        ...


def cached_files(listing: LoggedFiles, cache: SnapshotCache, contents: LogContents) -> FileSet:
    """Return the live files of a version from the cache; what it lacks is read from the log, and stored.

    Parameters
    ----------
    listing : LoggedFiles
        Reads the files from the log.
    cache : SnapshotCache
        The folder.
    contents : LogContents
        The version, with the identities of its files.
    """
    if not cache.prepare():
        return listing.from_log(contents)
    run = listing.log.engine.map
    keys = _keys(listing, contents)
    present = cache.keys()
    for count in range(len(keys) - 1, -1, -1):
        if keys[count] in present and (found := cache.open(keys[count], run)) is not None:
            files, touched = _on_top(listing, cache, contents, found, count)
            if touched * _SHARE <= max(found.count, cache.least_files):
                return files
            break
    if _store(listing, cache, contents, keys[-1]) and (found := cache.open(keys[-1], run, is_own=True)) is not None:
        return _on_top(listing, cache, contents, found, len(keys) - 1)[0]
    return listing.from_log(contents)


def _keys(listing: LoggedFiles, contents: LogContents) -> list[str]:
    """Return the keys of the version's checkpoint alone, then with one more of the files above it each."""
    assert contents.identities is not None
    log, metadata = listing.log, contents.metadata
    made = (
        installed_version(),
        type(log.engine.logs).__qualname__,
        log.engine.storage.root,
        metadata.id,
        repr(contents.protocol),
        _names(listing),
        sorted((f.action, f.name, str(f.type)) for f in listing.fields),
        sorted(listing.plugins.features),
    )
    hashed = blake2b(repr(made).encode("utf-8", "surrogatepass"), digest_size=20)
    first = len(contents.identities) - len(contents.segment.deltas)
    for identity in contents.identities[:first]:
        hashed.update(repr(identity).encode("utf-8", "surrogatepass"))
    out = [hashed.hexdigest()]
    for identity in contents.identities[first:]:
        hashed.update(b"+" + repr(identity).encode("utf-8", "surrogatepass"))
        out.append(hashed.hexdigest())
    return out


def _names(listing: LoggedFiles) -> list[str]:
    """Return the columns that an entry has."""
    state = listing.state
    physical = dict(zip(state.schema.names, state.column_map.physical.names, strict=True))
    partitions = [PARTITION + physical.get(c, c) for c in state.partition_columns]
    own = [f.name for f in listing.fields if f.action == "add"]
    return list(dict.fromkeys([*(n for n in FILE_COLUMNS if n not in _NOT_STORED), *partitions, *own]))


def _store(listing: LoggedFiles, cache: SnapshotCache, contents: LogContents, key: str) -> bool:
    """Store the files of a version; whether that was done."""
    names = _names(listing)
    types = {f.name: f.type for f in listing.fields if f.action == "add"} | dict(FILE_COLUMNS)
    try:
        if contents.checkpoint is not None:
            sidecars = contents.checkpoint.sidecars().column("path").to_pylist()
            if not all(map(is_unique, sidecars)):  # another content may take their place
                return False
        parts = listing.from_log(contents).parts
        if sum(p.chunk.num_rows for p in parts) < cache.least_files:
            return False
        return cache.store(key, len(parts), _stored(parts, names, types), lambda: _is_unchanged(listing, contents))
    except DeltaError:  # the same error is raised for what needs the file; listing it may need less
        return False


def _is_unchanged(listing: LoggedFiles, contents: LogContents) -> bool:
    """Whether the files that were read are those that were identified before."""
    return bool(listing.log.is_unchanged(contents.segment, contents.identities))


def _stored(parts: Sequence[Part], names: Sequence[str], types: dict[str, pa.DataType]) -> Iterator[CachedPart]:
    for number, part in enumerate(parts):
        loaded = part.load(names)
        if not loaded or not len(loaded[0]):
            continue
        columns = dict(zip(names, loaded, strict=True))
        nulls = [n for n, c in columns.items() if c.null_count == len(c) and c.type == types.get(n)]
        table = pa.table({n: one_array(c) for n, c in columns.items() if n not in nulls})
        yield CachedPart(number, part.chunk.source, part.mask(), table, tuple(nulls))


def _on_top(
    listing: LoggedFiles, cache: SnapshotCache, contents: LogContents, found: StoredFiles, count: int
) -> tuple[FileSet, int]:
    """Return an entry's files after the commits above it, and the number of actions in these."""
    base, newer = _split(contents, count)
    source = _LogChunks(listing, cache, contents, base, found)
    types = {f.name: f.type for f in listing.fields if f.action == "add"}
    chunks = [CachedChunk(part, source, types) for part in found.parts]
    touched = newer.adds.num_rows + newer.removes.num_rows
    if not touched:
        parts = [Part(c, alive=c.alive) for c in chunks]
    else:
        deltas = contents.segment.deltas[count:]
        latest = reconcile(newer, {f.end_version for f in deltas if f.kind == "compacted"})
        parts = [Part(c, (latest.keys,), candidates=c.alive) for c in chunks]
        if newer.adds.num_rows:
            adds = CommitChunk(listing.log.engine.logs, deltas, newer.adds, listing.fields)
            parts.insert(0, Part(adds, alive=latest.adds))
    return listing.renewable(FileSet(parts, listing.log.engine.map), contents), touched


def _split(contents: LogContents, count: int) -> tuple[LogContents, ParsedActions]:
    """Return the version that the checkpoint and the first files above it make, and the actions of the later ones."""
    segment, tail = contents.segment, contents.tail
    tables = (tail.adds, tail.removes, tail.cdcs, tail.other_actions)
    if count == len(segment.deltas):
        return contents, ParsedActions(*(t.slice(0, 0) for t in tables))
    deltas = segment.deltas[:count]
    assert deltas or segment.checkpoint is not None
    last = deltas[-1].end_version if deltas or segment.checkpoint is None else segment.checkpoint.version
    older, newer = (ParsedActions(*(_between(t, last, is_newer) for t in tables)) for is_newer in (False, True))
    base = replace(segment, version=last, deltas=deltas)
    return replace(contents, segment=base, tail=older, identities=None), newer


def _between(table: pa.Table, last: int, is_newer: bool) -> pa.Table:
    versions = int64_values(table.column("version"))
    return pc.filter(table, bool_array(versions > last if is_newer else versions <= last))


class _LogChunks:
    """The chunks of the log that an entry was made of; the log is looked at when one is requested."""

    def __init__(
        self, listing: LoggedFiles, cache: SnapshotCache, contents: LogContents, base: LogContents, found: StoredFiles
    ) -> None:
        self._listing = listing
        self._cache = cache
        self._contents = contents
        self._base = base
        self._found = found

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The chunks.

        Raises
        ------
        LogChangedError
            If files of the log were replaced since the version was opened.
        """
        chunks = [p.chunk for p in self._listing.from_log(self._base).parts]
        sizes = {number: chunk.num_rows for number, chunk in enumerate(chunks)}
        if len(chunks) != self._found.num_chunks or any(sizes[p.number] != p.num_rows for p in self._found.parts):
            self._cache.discard(self._found.key)
            raise LogChangedError.of_replaced(self._listing.log.uri)
        if not _is_unchanged(self._listing, self._contents):
            raise LogChangedError.of_replaced(self._listing.log.uri)
        return chunks


class CachedChunk:
    """A chunk of the log whose columns of live rows are mapped into memory; all else is read from the log.

    Parameters
    ----------
    part : StoredPart
        The rows.
    log : _LogChunks
        The chunks of the log.
    types : dict of str to pyarrow.DataType
        The columns of plugins.
    """

    def __init__(self, part: StoredPart, log: _LogChunks, types: dict[str, pa.DataType]) -> None:
        self.source: str = part.source
        self.num_rows: int = part.num_rows
        self.alive: Mask = part.alive
        self._part = part
        self._log = log
        self._types = types
        self._of_all: dict[str, pa.Array] = {}

    @property
    def _chunk(self) -> Chunk:
        return self._log.chunks[self._part.number]

    @property
    def place(self) -> tuple[CheckpointHandle, int] | None:
        """The checkpoint file and its row group, if the rows come from one."""
        return self._chunk.place

    @property
    def has_statistics_columns(self) -> bool:
        """Whether the log has each statistic alone."""
        return self._chunk.has_statistics_columns

    @property
    def nbytes(self) -> int:
        """The bytes of the columns that it keeps beside the mapped ones."""
        chunks = self._log.__dict__.get("chunks")
        own = sum(int(c.nbytes) for c in list(self._of_all.values()))
        return own if chunks is None else own + chunks[self._part.number].nbytes

    @cached_property
    def _table(self) -> pa.Table:
        return self._part.table

    def _column(self, name: str) -> Any:
        """Return a column of the live rows; None if the entry does not have it."""
        if name in self._part.nulls:
            return nulls_of(self._part.num_live, self._types.get(name) or FILE_COLUMNS[name])
        index = self._table.schema.get_field_index(name)
        return None if index < 0 else one_array(self._table.column(index))

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns; rows that are no live files are null.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        """
        found = {n: self._of_all.get(n) for n in names}
        for name in [n for n, c in found.items() if c is None]:
            live = self._column(name)
            if live is None:
                continue
            found[name] = self._spread(live)
            if name in _KEY or name.startswith(PARTITION):
                self._of_all[name] = found[name]
        missing = [n for n, c in found.items() if c is None]
        if missing:
            found |= zip(missing, self._chunk.load(missing), strict=True)
        return [found[n] for n in names]

    def _spread(self, live: pa.Array) -> pa.Array:
        if self._part.num_live == self.num_rows:
            return live
        if live.null_count == len(live):
            return nulls_of(self.num_rows, live.type)
        places = np.cumsum(self.alive, dtype=np.int32) - 1
        return one_array(pc.take(live, number_array(np.maximum(places, 0), valid=self.alive)))

    def pick(self, names: Sequence[str], rows: Mask) -> list[pa.Array]:
        """Return columns of some rows.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        rows : bool, **shape (n,)**
            Whether each row of the chunk is requested.
        """
        is_all = rows is self.alive or np.array_equal(rows, self.alive)
        if not is_all and (rows & ~self.alive).any():
            return pick_all(self.load(names), rows)
        found = {n: self._column(n) for n in names}
        known = [n for n, c in found.items() if c is not None]
        if not is_all:
            found |= zip(known, pick_all([found[n] for n in known], rows[self.alive]), strict=True)
        missing = [n for n, c in found.items() if c is None]
        if missing:
            found |= zip(missing, self._chunk.pick(missing, rows), strict=True)
        return [found[n] for n in names]

    def statistics(
        self, leaves: Sequence[FileStatistic], rows: Mask | None, keep: bool = True, beside: Sequence[str] = ()
    ) -> list[pa.Array]:
        """Return statistics, which the log has.

        Parameters
        ----------
        leaves : sequence of FileStatistic
            The statistics.
        rows : bool, **shape (n,)**, or None
            Whether each row of the chunk is requested; None: all.
        keep : bool
            Whether the columns are kept for the next call.
        beside : sequence of str
            Columns that will be requested next, so that one pass may serve both.
        """
        return self._chunk.statistics(leaves, rows, keep, beside)
