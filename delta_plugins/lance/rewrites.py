"""Fragments of a dataset written again: small ones joined, deleted rows left out, as two versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, structs

from delta_core.api import (
    FILE_NUMBER,
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    EngineError,
    MetadataChangedError,
    Units,
    UnsupportedOperationError,
    num_cores,
)
from delta_core.kernels.arrow_buffers import number_array
from delta_plugins.lance.changes import check_changeable, manifest_scheme
from delta_plugins.lance.chosen_rows import UnitRows
from delta_plugins.lance.commit.commits import CommittedVersion, commit_operation
from delta_plugins.lance.commit.conflicts import is_retryable
from delta_plugins.lance.commit.draft import NewFragment
from delta_plugins.lance.commit.indices import covered_fragments, index_messages
from delta_plugins.lance.commit.operations import Operation, ReserveFragments, Rewrite, RewriteGroup
from delta_plugins.lance.files import PAGE_BYTES
from delta_plugins.lance.schema import walk_fields
from delta_plugins.lance.write.fragments_writer import MAX_BYTES, MAX_ROWS, FragmentsWriter, check_file_version

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Expression, OptimizeOptions, Path, RowOrder
    from delta_plugins.lance.dataset_version import DatasetVersion
    from delta_plugins.lance.manifest import Manifest
    from delta_plugins.lance.row_ids import Kind

__all__ = ["BIN_FRAGMENTS", "TARGET_ROWS", "LanceRewrites"]

#: The new fragments of a bin: of those with as many, none has fewer rows than the target. If another writer changes a
#: fragment, its bin is written again.
BIN_FRAGMENTS = 16
#: The parameter with the rows of a new fragment.
TARGET_ROWS = "target_rows"

#: The numbers that moved rows keep, by metadata column.
_KEPT: Mapping[str, Kind] = {
    "_rowid": "row_ids",
    "_row_created_at_version": "created",
    "_row_last_updated_at_version": "last_updated",
}
#: Rows whose ids and versions are in memory together, about, and the most fragments that are read by one scan.
_ROWS_AT_ONCE, _FRAGMENTS_AT_ONCE = 1 << 20, 1 << 14
#: At most this share of the memory is a batch, and the pages that are collected.
_BATCHES, _PAGES = 16, 4
_LEAST_PAGE = 64 << 10
MEMORY_BYTES = 256 << 20
_MOST_TASKS = 4
#: Bits of a number.
_MOST_INDICES = 62


class WrittenFragments(Struct, frozen=True):
    """Fragments that are not part of the dataset yet (`delta_core.operations.rewrites.Rewritten`).

    Parameters
    ----------
    storage : Storage
        Of the dataset.
    fragments : sequence of NewFragment
        The fragments.
    paths : tuple of str
        Their data files, as the storage takes them.
    """

    storage: Any
    fragments: Sequence[NewFragment]
    paths: tuple[str, ...]

    @property
    def adds(self) -> pa.Table:
        """The fragments, with ``size`` in bytes."""
        sizes = [sum(f["file_size_bytes"] for f in n.files) for n in self.fragments]
        return pa.table({"size": pa.array(sizes, pa.int64())})

    @property
    def num_rows(self) -> int:
        """Their rows."""
        return sum(f.rows for f in self.fragments)

    def cleanup(self) -> None:
        """Delete the data files."""
        with suppress(EngineError):
            self.storage.delete(self.paths)


class LanceRewrites:
    """The `TableRewrites` of Lance.

    Parameters
    ----------
    dataset : LanceDataset
        The version to begin with.
    parameters : Mapping of str to object
        With `TARGET_ROWS`: a fragment ends after this number of rows, `fragments_writer.MAX_ROWS` unless given.
    options : OptimizeOptions
        How rows are written: a fragment ends with the page that makes its file longer than ``target_size``, and rows
        in memory take about ``max_spill_size`` bytes.
    """

    def __init__(self, dataset: DatasetVersion, parameters: Mapping[str, Any], options: OptimizeOptions) -> None:
        check_changeable(dataset)
        check_file_version(dataset.manifest)
        self.base: Any = dataset
        self.target_size = options.target_size or MAX_BYTES
        self.in_doubt = False
        self.is_spread = False
        self.num_tasks = min(num_cores(), _MOST_TASKS)
        self._dropped: list[str] = []
        self._max_rows = int(parameters.get(TARGET_ROWS, MAX_ROWS))
        self._options = options
        #: The versions that units were listed of.
        self._versions = {dataset.version: dataset}

    @property
    def facts(self) -> Mapping[str, Any]:
        """The indices that commits dropped, as ``droppedIndices``."""
        return {"droppedIndices": tuple(self._dropped)}

    # --- which fragments ---

    def check_predicate(self, predicate: Expression) -> None:
        """Reject every predicate: the rows of a fragment have nothing in common.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        raise UnsupportedOperationError("Fragments are not chosen by a predicate: leave it out.")

    def order_columns(self, names: Sequence[str]) -> tuple[Path, ...]:
        """Reject an order: rows stay in the order of the dataset.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        raise UnsupportedOperationError("The rows of a Lance dataset are not ordered: leave the columns out.")

    def units(self, predicate: Expression | None) -> Units:
        """Return all fragments, in the order of the manifest."""
        table = self._units(np.arange(len(self.base.manifest.fragments)))
        rows = table.column("rows").to_numpy()
        deleted = 1 - table.column("live_rows").to_numpy() / np.maximum(rows, 1)
        return Units(table, self.partitions(table), np.arange(len(rows)), deleted)

    def _units(self, indices: NDArray[np.int64]) -> pa.Table:
        """Return fragments by index.

        Columns are ``fragment`` (the index), ``id``, ``version``, ``size``, ``rows``, ``live_rows``, ``indices`` (a bit
        for each index that has the fragment) and ``lasting`` (the bits of indices that moved rows do not make invalid).
        """
        files, listed = self.base.files, self.base.manifest.fragments
        sizes = np.maximum(listed.stored_bytes(), 0)
        covered, lasting = self._indices(listed.id[indices])
        columns = {
            "indices": covered,
            "lasting": np.full(len(indices), lasting),
            "fragment": indices,
            "id": listed.id[indices],
            "version": np.full(len(indices), self.base.version),
            "size": sizes[indices],
            "rows": files.all_rows()[indices],
            "live_rows": files.live_rows()[indices],
        }
        return pa.table({n: number_array(np.ascontiguousarray(v, np.int64)) for n, v in columns.items()})

    def _indices(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """Return the bits of the indices that have fragments, by id, and the bits of those that stay."""
        manifest = self.base.manifest
        covered, lasting = np.zeros(len(ids), np.int64), 0
        # further indices divide no fragments: those that have a part of a bin are dropped
        for bit, message in enumerate(index_messages(manifest)[:_MOST_INDICES]):
            fragments, stays = covered_fragments(message, has_stable_ids=manifest.has_stable_row_ids)
            if fragments is not None:
                covered |= np.isin(ids, fragments.positions()).astype(np.int64) << bit
                lasting |= stays << bit
        return covered, lasting

    def partitions(self, units: pa.Table) -> NDArray[np.int64]:
        """Return 0 for all: any rows may be in one fragment."""
        return np.zeros(units.num_rows, np.int64)

    def num_rows(self, units: pa.Table) -> int:
        """Return the rows of units, deleted ones too."""
        return int(units.column("rows").to_numpy().sum())

    def deletions(self, units: pa.Table) -> tuple[int, int]:
        """Return how many of the units have deleted rows, and how many rows these are."""
        deleted = units.column("rows").to_numpy() - units.column("live_rows").to_numpy()
        return int((deleted > 0).sum()), int(deleted.sum())

    # --- rows ---

    def column_rows(self, units: pa.Table | None, columns: Sequence[Path]) -> UnitRows:
        """Return some columns of the rows of units."""
        chosen = self.units(None).table if units is None else units
        return UnitRows(self._version_of(chosen), chosen, list(columns))

    def moved(self, units: pa.Table, *, numbered: bool = False) -> pa.RecordBatchReader:
        """Return the rows of units with the ids and versions that they keep."""
        numbers = {FILE_NUMBER: number_array(np.arange(units.num_rows))} if numbered else {}
        table = units.append_column(FILE_NUMBER, numbers[FILE_NUMBER]) if numbered else units
        dataset = self._version_of(units)
        names = [*(_KEPT if dataset.manifest.has_stable_row_ids else ()), *numbers]
        return UnitRows(dataset, table, None, names, is_plain=False, carries=True).to_reader()

    def _version_of(self, units: pa.Table) -> DatasetVersion:
        return self._versions[units.column("version")[0].as_py()]

    def write(self, units: pa.Table, syncs: Any) -> WrittenFragments:
        """Write the rows of units again, in their order."""
        dataset = self._version_of(units)
        total = int(units.column("live_rows").to_numpy().sum())
        count = total // self._max_rows
        each, more = divmod(total, count) if count >= BIN_FRAGMENTS else (0, 0)
        writer = self._writer(dataset)
        if each:
            writer.first_rows = [each + (i < more) for i in range(count)]
        try:
            for some in _parts(units):
                for batch, numbers in self._rows(dataset, some):
                    writer.write(batch, *numbers)
            return self._finished(writer, total)
        except BaseException:
            writer.abandon()
            raise

    def _writer(self, dataset: DatasetVersion) -> FragmentsWriter:
        manifest = dataset.manifest
        columns = max(sum(1 for _ in walk_fields(manifest.fields)), 1)
        page = max(min(PAGE_BYTES, self._memory // _PAGES // columns), _LEAST_PAGE)
        return FragmentsWriter(
            dataset.storage,
            dataset.files.below,
            manifest.fields,
            manifest.file_version,
            manifest.message["schema_metadata"],
            max_rows=self._max_rows,
            max_bytes=self.target_size,
            page_bytes=page,
        )

    @property
    def _memory(self) -> int:
        """Bytes for the rows of one task."""
        return (self._options.max_spill_size or MEMORY_BYTES) // (self._options.max_concurrent_tasks or self.num_tasks)

    def _finished(self, writer: FragmentsWriter, expected: int) -> WrittenFragments:
        fragments = writer.finish()
        if writer.num_rows != expected:
            raise CommitError(
                f"{writer.num_rows} rows were read of fragments that have {expected} by their manifest. Nothing was "
                "changed; verify the dataset."
            )
        return WrittenFragments(self.base.storage, fragments, tuple(writer.paths))

    def _rows(self, dataset: DatasetVersion, units: pa.Table) -> Iterator[tuple[pa.RecordBatch, Sequence[Any]]]:
        """Yield rows, with the ids and versions that they keep."""
        batch_bytes = max(self._memory // _BATCHES, 1)
        if not dataset.manifest.has_stable_row_ids:
            rows = UnitRows(dataset, units, None, is_plain=False, batch_bytes=batch_bytes, carries=True)
            for batch in rows.read_batches():
                yield batch, ()
            return
        numbers = _numbers(dataset, units.column("fragment").to_numpy())
        names = () if numbers is not None else tuple(_KEPT)
        rows = UnitRows(dataset, units, None, names, is_plain=False, batch_bytes=batch_bytes, carries=True)
        start = 0
        for batch in rows.read_batches():
            if numbers is not None:
                yield batch, [n[start : start + batch.num_rows] for n in numbers]
                start += batch.num_rows
                continue
            kept = [batch.column(n).to_numpy() for n in _KEPT]
            yield batch.drop_columns(list(_KEPT)), kept

    def write_ordered(self, units: pa.Table, order: RowOrder, syncs: Any) -> None:
        """Return None: see `order_columns`."""

    def write_rows(self, rows: pa.Table, syncs: Any) -> WrittenFragments:
        """Write rows of `moved`, in this order."""
        writer = self._writer(self.base)
        try:
            for batch in rows.to_batches():
                kept = [batch.column(n).to_numpy() for n in _KEPT if n in batch.schema.names]
                writer.write(batch.drop_columns([n for n in _KEPT if n in batch.schema.names]), *kept)
            return self._finished(writer, rows.num_rows)
        except BaseException:
            writer.abandon()
            raise

    def join(self, parts: Sequence[WrittenFragments]) -> WrittenFragments:
        """Return what several calls wrote as that of one."""
        fragments = [f for p in parts for f in p.fragments]
        return WrittenFragments(self.base.storage, fragments, tuple(n for p in parts for n in p.paths))

    def described(self, written: WrittenFragments, describe: Callable[[pa.Table], pa.Table]) -> WrittenFragments:
        """Reject: fragments have no facts that a caller describes.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        raise UnsupportedOperationError("Fragments of Lance can't be described: leave describe out.")

    def delete(self, paths: Sequence[str]) -> None:
        """Delete data files that no version names."""
        with suppress(EngineError):
            self.base.storage.delete(paths)

    # --- commits ---

    def live(self, columns: Sequence[str]) -> LanceRewrites:
        """Return the fragments of `base`, which is this object."""
        return self

    def have(self, units: pa.Table) -> bool:
        """Whether all of these units are live, with the same files and deleted rows."""
        earlier, now = self._version_of(units).manifest, self.base.manifest
        if earlier.version == now.version:
            return True
        old, new = units.column("fragment").to_numpy(), now.fragments.find(units.column("id").to_numpy())
        if (new < 0).any():
            return False
        return _messages(earlier, old) == _messages(now, new)

    def now(self, units: pa.Table) -> pa.Table:
        """Return those of these units that are live, as they are now."""
        found = self.base.manifest.fragments.find(units.column("id").to_numpy())
        return self._units(found[found >= 0])

    def follow(self) -> bool:
        """Take the latest version as `base`; return whether it has the same columns, in the same kind of files."""
        before = self.base.manifest
        self.base = self.base.latest()
        self._versions[self.base.version] = self.base
        check_changeable(self.base)
        now = self.base.manifest
        return bool(now.fields == before.fields and now.file_version == before.file_version)

    def commit(
        self,
        done: Sequence[tuple[pa.Table, WrittenFragments]],
        syncs: Any,
        options: OptimizeOptions,
        metrics: Mapping[str, int],
    ) -> int:
        """Reserve ids for the new fragments, then put these in the place of the earlier ones: two versions."""
        # tasks end in any order, and rows stay in that of the dataset
        done = sorted(done, key=lambda d: d[0].column("fragment")[0].as_py())
        count = sum(len(w.fragments) for _, w in done)
        base = self.base.manifest
        latest, first = base, 0
        if count:
            latest = self._committed(ReserveFragments(count), base, options).manifest
            first = int(latest.message["max_fragment_id"]) - count + 1
        ids = iter(range(first, first + count))
        groups = [
            RewriteGroup(units.column("id").to_pylist(), [structs.replace(f, id=next(ids)) for f in written.fragments])
            for units, written in done
        ]
        # what was committed between both versions of the base may contradict the second one
        began = latest if latest.version == base.version + 1 else base
        self.in_doubt = True
        try:
            found = self._committed(Rewrite(began, groups), began, options)
        except (CommitConflictError, CommitError) as e:
            self.in_doubt = isinstance(e, CommitStateUnknownError)
            raise
        self.in_doubt = False
        self._dropped += [n for n in found.dropped_indices if n not in self._dropped]
        self.base = self.base.at(found.manifest)
        self._versions[self.base.version] = self.base
        return int(found.manifest.version) - int(base.version) - bool(count)

    def _committed(self, operation: Operation, base: Any, options: OptimizeOptions) -> CommittedVersion:
        try:
            return commit_operation(
                self.base.storage,
                operation,
                base,
                below=self.base.files.below,
                scheme=manifest_scheme(base.path),
                properties={k: str(v) for k, v in options.custom_metadata.items()},
                max_attempts=options.max_commit_retries + 1,
            )
        except CommitConflictError as e:
            if is_retryable(e):
                raise
            # the dataset is another one now: nothing is written again
            raise MetadataChangedError(e.message, **e.facts) from e


def _messages(manifest: Manifest, fragments: NDArray[np.int64]) -> list[bytes]:
    """Return the messages of fragments, given by index."""
    bounds = zip(manifest.fragments.start[fragments].tolist(), manifest.fragments.stop[fragments].tolist(), strict=True)
    return [bytes(manifest.data[a:b]) for a, b in bounds]


def _parts(units: pa.Table) -> Iterator[pa.Table]:
    """Yield units in parts of about as many rows as ids may be in memory."""
    until = np.cumsum(units.column("rows").to_numpy())
    bounds = [0]
    while bounds[-1] < units.num_rows:
        start = bounds[-1]
        before = int(until[start - 1]) if start else 0
        stop = int(np.searchsorted(until, before + _ROWS_AT_ONCE, "right"))
        bounds.append(min(max(stop, start + 1), start + _FRAGMENTS_AT_ONCE, units.num_rows))
    return (units.slice(a, b - a) for a, b in pairwise(bounds))


def _numbers(dataset: DatasetVersion, fragments: NDArray[np.int64]) -> list[NDArray[np.uint64]] | None:
    """Return the ids and the versions of the live rows of fragments; None if they have to be read from columns."""
    files, listed = dataset.files, dataset.manifest.fragments
    found = [files.numbers_of(kind).joined(fragments) for kind in _KEPT.values()]
    if any(n is None for n in found):
        return None
    rows = listed.physical_rows[fragments]
    is_live = np.ones(int(rows.sum()), np.bool_)
    ends = np.cumsum(rows)
    with_file = np.flatnonzero(listed.deletion_kind[fragments] >= 0)
    for i, deleted in zip(with_file.tolist(), files.deleted_rows(fragments[with_file].tolist()), strict=True):
        if deleted is not None:
            is_live[ends[i] - rows[i] : ends[i]] = ~deleted.mask(int(rows[i]))
    return [n if len(with_file) == 0 else n[is_live] for n in found if n is not None]
