"""Reading rows of a version: projection, deleted rows, metadata columns, predicates, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from delta_core.api import (
    CorruptTableError,
    DataFileError,
    InvalidArgumentError,
    PlannedRows,
    UnsupportedFeatureError,
    num_cores,
    run_ordered,
    run_quick,
)
from delta_core.kernels.arrow_buffers import bool_array, number_array, one_array
from delta_plugins.lance import flags, index
from delta_plugins.lance.blobs import (
    BlobFile,
    Blobs,
    Located,
    check_readable_blobs,
    locate_all,
    locate_blobs,
    slices_by_size,
    with_bytes,
)
from delta_plugins.lance.encoded import EncodedTests, plan_tests
from delta_plugins.lance.explain import explain_scan
from delta_plugins.lance.fragments import AS_COLUMN
from delta_plugins.lance.joining import join_parts
from delta_plugins.lance.predicates import Predicate, bind_predicate
from delta_plugins.lance.projection import METADATA, Columns, FilePart, ShapePlan, plan_shape, select_fields
from delta_plugins.lance.row_ids import LINEAGE_FIELDS, Kind
from delta_plugins.lance.schema import LanceField, arrow_field, blob_kind, registered, walk_fields
from delta_plugins.lance.small_fragments import SmallFragments
from delta_plugins.lance.version_files import VersionFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Expression, ScanReport, Texts
    from delta_plugins.lance.files import DataFile, LeafTest
    from delta_plugins.lance.index import IndexPlan

__all__ = ["BATCH_ROWS", "FragmentReader", "LanceScan", "RowReader"]

#: Rows of a batch.
BATCH_ROWS = 1 << 16
#: Threads that wait for a remote store.
_REMOTE_THREADS = 16
#: The most bytes of finished batches of later fragments, and the most batches that the current fragment is ahead.
_BUDGET_BYTES, _AHEAD = 64 << 20, 2
#: Deleted rows are loaded for this many fragments at a time.
_FRAGMENTS_AT_ONCE = 256
#: Small fragments of a local dataset are read by one task, and their rows joined: the most fragments, rows, and bytes
#: of files.
_JOINED_FRAGMENTS, _JOINED_ROWS, _JOINED_BYTES = 256, 1 << 13, 16 << 20
#: Ranges of fewer rows than this, on average, are not read one by one.
_SHORT_RANGE = 32
#: Bytes of the columns of a condition that are evaluated at once; a call for fewer takes longer than the values.
_WINDOW_BYTES = 2 << 20
#: Rows whose encoded values are tested before the rows that pass are read.
_TESTED_ROWS = 1 << 20
_SEQUENCES: Mapping[str, Kind] = {
    "_rowid": "row_ids",
    "_row_created_at_version": "created",
    "_row_last_updated_at_version": "last_updated",
}

Arrays = list[Any]
Task = Callable[[], Iterator[pa.RecordBatch]]


class _Window(NamedTuple):
    """Rows of a fragment, and the arrays of requested fields for them.

    Parameters
    ----------
    start, stop : int
        Which of the rows that were requested of the fragment.
    positions : int64[n], optional
        Their physical positions; None if these are ``start`` to ``stop``.
    arrays : list of pyarrow.Array
        One for each column.
    """

    start: int
    stop: int
    positions: NDArray[np.int64] | None
    arrays: Arrays

    def at(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the physical positions of some of the rows."""
        found: NDArray[np.int64] = self.start + indices if self.positions is None else self.positions[indices]
        return found


class RowReader:
    """Reads requested columns of any rows of a version.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    fields : sequence of LanceField
        Requested fields.
    metadata : sequence of str
        Names of `projection.METADATA`, after the fields.
    blobs : "descriptor" or "bytes"
        The form of columns of blobs: where the bytes are, or the bytes.

    Raises
    ------
    UnsupportedFeatureError
        For blobs of a dataset that has managed ones; for bytes of blobs in lists.
    InvalidArgumentError
        For a metadata column that is not known, or has the name of a requested column.
    """

    def __init__(
        self,
        dataset: VersionFiles,
        fields: Sequence[LanceField],
        metadata: Sequence[str] = (),
        blobs: Blobs = "descriptor",
    ) -> None:
        if blobs not in ("descriptor", "bytes"):
            raise InvalidArgumentError(f"blobs is {blobs!r}, expected 'descriptor' or 'bytes'.")
        self.dataset = dataset
        self.fields = tuple(fields)
        self.metadata = _checked(metadata, self.fields)
        _check_blobs(dataset, self.fields)
        self.has_bytes = blobs == "bytes" and any(blob_kind(f) for f in walk_fields(self.fields))
        if self.has_bytes:
            check_readable_blobs(self.fields)
        self._hidden = [
            LanceField(LINEAGE_FIELDS[_SEQUENCES[m]], -1, m, "uint64") for m in self.metadata if m in _SEQUENCES
        ]
        self._shapes: dict[int, ShapePlan] = {}
        listed = [arrow_field(f, blobs=blobs) for f in self.fields] + [pa.field(m, pa.uint64()) for m in self.metadata]
        self.storage_schema = pa.schema(listed, metadata=dict(dataset.manifest.message["schema_metadata"]) or None)
        self.schema: pa.Schema = registered(self.storage_schema)

    def plan(self, fragment: int) -> ShapePlan:
        """Return how the fields are read of a fragment; made once for all fragments whose files are alike."""
        fragments = self.dataset.manifest.fragments
        shape = int(fragments.shape[fragment])
        found = self._shapes.get(shape)
        if found is None:
            layouts = [fragments.layouts[i] for i in fragments.shapes[shape]]
            manifest = self.dataset.manifest
            found = plan_shape(layouts, [*self.fields, *self._hidden], manifest.path, manifest.ids_are_unique)
            self._shapes[shape] = found
        return found

    def batch(self, arrays: Arrays, num_rows: int) -> list[pa.RecordBatch]:
        """Return arrays as batches with the schema of the read; several if arrays are in chunks."""
        if not arrays:
            return [pa.RecordBatch.from_struct_array(pa.nulls(num_rows, pa.struct([])))]
        if any(isinstance(a, pa.ChunkedArray) for a in arrays):
            table = pa.Table.from_arrays(arrays, schema=self.storage_schema)
            return [registered(b) for b in table.to_batches()]
        return [registered(pa.RecordBatch.from_arrays(arrays, schema=self.storage_schema))]

    def empty(self) -> pa.Table:
        """Return the table without rows."""
        return self.schema.empty_table()


class FragmentReader:
    """Reads rows of one fragment.

    Parameters
    ----------
    reader : RowReader
        The columns that are read.
    fragment : int
        The index of the fragment.
    opened : FragmentReader, optional
        Another reader of the fragment, whose files this one shares.
    """

    def __init__(self, reader: RowReader, fragment: int, opened: FragmentReader | None = None) -> None:
        self._reader = reader
        self._dataset = reader.dataset
        self._fragment = fragment
        self._plan = reader.plan(fragment)
        self._files: dict[int, DataFile] = {} if opened is None else opened._files

    def num_rows(self) -> int:
        """Return the rows that the fragment has, deleted ones too."""
        return self._dataset.physical_rows(self._fragment)

    def live_positions(self) -> NDArray[np.int64] | None:
        """Return the positions of rows that are not deleted; None if none is."""
        if self._dataset.manifest.fragments.deletion_kind[self._fragment] < 0:
            return None
        deleted = self._dataset.deleted_rows([self._fragment])[0]
        return None if deleted is None else np.flatnonzero(~deleted.mask(self.num_rows()))

    @property
    def has_joined_fields(self) -> bool:
        """Whether a field is joined from several files, which may contradict each other in deleted rows."""
        return any(len(sources) > 1 for sources in self._plan.sources)

    def read(self, positions: NDArray[np.int64]) -> Arrays:
        """Return the columns of the reader for rows at positions, which rise."""
        found = [self._opened(p).read(p.fields, p.column_of, positions) for p in self._plan.parts]
        return self._columns(positions, 0, len(positions), found)

    def can_test(self, tests: EncodedTests) -> bool:
        """Whether each column of tests is in one file; several may contradict each other (`joining`)."""
        return all(len(self._plan.sources[test.column]) < 2 for test in tests.leaves())

    def passing(self, test: LeafTest, rows: tuple[int, int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of some rows whose values of a column pass; see `can_test`."""
        sources = self._plan.sources[test.column]
        if not sources:
            positions = np.arange(*rows) if isinstance(rows, tuple) else rows
            return positions if test.passes_null else positions[:0]
        part = self._plan.parts[sources[0][0]]
        return self._opened(part).passing(test, part.column_of, rows)

    def windows(self, positions: NDArray[np.int64] | None, batch_rows: int) -> Iterator[_Window]:
        """Yield the columns of the reader for rows at positions (None: all), in windows of at most ``batch_rows``."""
        total = self.num_rows() if positions is None else len(positions)
        parts = [iter(self._opened(p).batches(p.fields, p.column_of, positions, batch_rows)) for p in self._plan.parts]
        for start in range(0, total, batch_rows):
            stop = min(start + batch_rows, total)
            chosen = None if positions is None else positions[start:stop]
            found = [next(p) for p in parts]
            yield _Window(start, stop, chosen, self._columns(chosen, start, stop, found))

    def batches(self, arrays: Arrays, num_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield arrays of the reader as batches; if bytes of blobs are read, of few enough rows for memory."""
        if not self._reader.has_bytes:
            yield from self._reader.batch(arrays, num_rows)
            return
        arrays, fields, files = [one_array(a) for a in arrays], self._reader.fields, self._blob_files()
        located: dict[int, list[Located]] = {}
        for field, array in zip(fields, arrays, strict=False):
            located |= locate_all(self._dataset, self._fragment, field, array, files)
        storage = self._dataset.engine.storage
        for rows in slices_by_size(located.values(), num_rows):
            blobs = {i: b[rows] for i, b in located.items()}
            some = [a[rows] for a in arrays]
            for i, field in enumerate(fields):
                some[i] = with_bytes(storage, field, some[i], blobs)
            yield from self._reader.batch(some, rows.stop - rows.start)

    def rows_within(self, most_bytes: int) -> int:
        """Return how many rows of the columns, whichever they are, take about ``most_bytes``; at least one."""
        parts = self._plan.parts
        share = max(most_bytes // max(len(parts), 1), 1)
        found = [self._opened(p).rows_within(p.fields, p.column_of, share) for p in parts]
        return min(found, default=most_bytes)

    def together(self, small: SmallFragments, fragments: NDArray[np.int64]) -> Arrays | None:
        """Return the columns of all rows of small fragments of the same shape; see `SmallFragments.read`."""
        found = small.read(fragments, self._plan)
        if found is None:
            return None
        rows = int(self._dataset.manifest.fragments.physical_rows[fragments].sum())
        return self._columns(None, 0, rows, found)

    def blobs(self, positions: NDArray[np.int64]) -> list[BlobFile | None]:
        """Return the blobs of rows at positions, which rise, of the only column of the reader."""
        [field], array = self._reader.fields, one_array(self.read(positions)[0])
        while not blob_kind(field):
            [field] = field.children
            [array] = array.flatten()
        found = locate_blobs(self._dataset, self._fragment, field, array, self._blob_files())
        return [None if isinstance(b, bytes) else b for b in found]

    def _blob_files(self) -> Mapping[int, int]:
        """Return which of the fragment's files has each field."""
        return {field: part.file for part in reversed(self._plan.parts) for field in part.column_of}

    def _opened(self, part: FilePart) -> DataFile:
        found = self._files.get(part.file)
        if found is None:
            found = self._files[part.file] = self._dataset.open_file(self._fragment, part.file)
            expected = self.num_rows()
            if found.num_rows != expected:
                path = self._dataset.file_path(self._fragment, part.file)
                raise DataFileError(
                    f"Data file {path!r} has {found.num_rows} rows, but fragment "
                    f"{self._dataset.manifest.fragments.id[self._fragment]} has {expected}. Restore the file or the "
                    "manifest from a copy.",
                    path=path,
                )
        return found

    def _columns(self, positions: NDArray[np.int64] | None, start: int, stop: int, found: Sequence[Arrays]) -> Arrays:
        """Return the arrays of all requested columns from those of the files."""
        reader, plan = self._reader, self._plan
        arrays = [self._field(i, found, stop - start) for i in range(len(reader.fields))]
        if not reader.metadata:
            return arrays
        positions = np.arange(start, stop) if positions is None else positions
        hidden = {f.name: len(reader.fields) + i for i, f in enumerate(reader._hidden)}
        for name in reader.metadata:
            kind = _SEQUENCES.get(name)
            if kind is not None and getattr(self._dataset.manifest.fragments, kind).place[self._fragment] == AS_COLUMN:
                arrays.append(self._hidden_column(name, plan.sources[hidden[name]], found))
            else:
                numbers = self._dataset.row_numbers(name, kind, self._fragment, positions)
                arrays.append(number_array(numbers))
        return arrays

    def _hidden_column(self, name: str, sources: Sequence[tuple[int, int]], found: Sequence[Arrays]) -> pa.Array:
        if len(sources) != 1:
            raise CorruptTableError(
                f"Manifest {self._dataset.manifest.path} is damaged: {name} of fragment "
                f"{self._dataset.manifest.fragments.id[self._fragment]} is a hidden column, which no data file has.",
                path=self._dataset.manifest.path,
            )
        [(part, number)] = sources
        return found[part][number]

    def _field(self, i: int, found: Sequence[Arrays], num_rows: int) -> Any:
        field, sources = self._reader.fields[i], self._plan.sources[i]
        if not sources:
            return pa.nulls(num_rows, arrow_field(field).type)
        if len(sources) == 1:
            [(part, number)] = sources
            return found[part][number]
        parts = [(self._plan.parts[p].fields[n], one_array(found[p][n])) for p, n in sources]
        paths = " and ".join(
            repr(self._dataset.file_path(self._fragment, self._plan.parts[p].file)) for p, _ in sources
        )
        return join_parts(field, parts, paths)


def _checked(metadata: Sequence[str], fields: Sequence[LanceField]) -> tuple[str, ...]:
    if isinstance(metadata, str):
        raise InvalidArgumentError(f"metadata is the text {metadata!r}, expected a sequence of names.")
    for name in metadata:
        if name not in METADATA:
            raise InvalidArgumentError(
                f"There is no metadata column {name!r}; there are {', '.join(METADATA)}.", column=name
            )
        if any(f.name == name for f in fields):
            raise InvalidArgumentError(f"The metadata column {name!r} has the name of a column.", column=name)
    return tuple(dict.fromkeys(metadata))


def _check_blobs(dataset: VersionFiles, fields: Sequence[LanceField]) -> None:
    if dataset.manifest.message["reader_feature_flags"] & flags.MANAGED_BLOBS:
        blob = next((f for f in walk_fields(fields) if blob_kind(f)), None)
        if blob is not None:
            raise UnsupportedFeatureError(
                f"Column {blob.name!r} has blobs, and the dataset has feature flag {flags.MANAGED_BLOBS} (managed "
                "blobs): they can't be read. Request other columns.",
                feature="managed blobs",
                flag=flags.MANAGED_BLOBS,
            )


class LanceScan(PlannedRows):
    """A planned read of a version, to be read many times; Arrow libraries take it as a stream.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    columns : sequence of str or path, optional
        See `projection.select_fields`.
    predicate : str, filters, Expression or pyarrow expression, optional
        Only rows for which it is true.
    limit : int, optional
        The most rows to return.
    metadata : sequence of str
        Metadata columns, after the others: ``_rowid``, ``_rowaddr``, ``_row_created_at_version`` and
        ``_row_last_updated_at_version``.
    batch_rows : int
        The largest batch, in rows.
    blobs : "descriptor" or "bytes"
        The form of columns of blobs: structs that specify where the bytes are, or the bytes. Batches with
        bytes have fewer rows if their blobs are large.
    use_indices : bool
        Whether scalar indices may answer the predicate, or parts of it; the rows are the same.
    """

    #: About the most bytes of a batch; None: whatever ``batch_rows`` rows take.
    _batch_bytes: int | None = None

    def __init__(
        self,
        dataset: VersionFiles,
        columns: Columns = None,
        predicate: Any = None,
        *,
        limit: int | None = None,
        metadata: Sequence[str] = (),
        batch_rows: int = BATCH_ROWS,
        blobs: Blobs = "descriptor",
        use_indices: bool = True,
    ) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidArgumentError(f"Found limit {limit!r}, expected a whole number from 0 on.")
        if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
            raise InvalidArgumentError(f"Found batch_rows {batch_rows!r}, expected a whole number from 1 on.")
        self._dataset = dataset
        self._limit = limit
        self._batch_rows = batch_rows
        self._use_indices = use_indices
        self._arguments = columns, predicate, limit, tuple(metadata), batch_rows, blobs, use_indices
        tops = dataset.manifest.fields
        self._reader = RowReader(dataset, select_fields(tops, columns), metadata, blobs)
        self._predicate = bind_predicate(predicate, tops, dataset.engine.evaluator)
        self._tested: RowReader | None = None
        self._found: IndexPlan | None = None
        self._encoded: EncodedTests | None = None
        self._rest: RowReader | None = None
        self._small: SmallFragments | None = None
        if self._predicate is not None:
            evaluator = dataset.engine.evaluator
            self._tested = self._reader_of(self._predicate)
            self._encoded = plan_tests(self._predicate, self._tested.fields, evaluator)
            rest = self._predicate if self._encoded is None else self._encoded.rest
            if rest is not None:
                # parts that are tested on encoded values can always be evaluated
                rest.check()
            if self._encoded is not None and rest is not None:
                self._rest = self._reader_of(rest)

    def _reader_of(self, predicate: Predicate) -> RowReader:
        """Return the reader of the columns that a condition needs."""
        fields = self._dataset.manifest.fields
        return RowReader(self._dataset, [f for f in fields if f.name in predicate.names])

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._reader.schema

    @property
    def storage_schema(self) -> pa.Schema:
        """The schema of the rows with storage types in place of extension types."""
        return self._reader.storage_schema

    @property
    def predicate(self) -> Expression | None:
        """The predicate, bound to the columns of the dataset."""
        return None if self._predicate is None else self._predicate.expression

    @property
    def source(self) -> VersionFiles:
        """The version that is read."""
        return self._dataset

    def __repr__(self) -> str:
        return f"LanceScan({self._dataset!r}, {self._predicate or 'all rows'})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _scan_again, (self._dataset, *self._arguments)

    def read_batches(self, texts: Texts = "plain", *, is_collected: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the rows as batches, in the order of the fragments; closing the iterator stops the reading."""
        left = self._limit
        if left == 0:
            return
        for batch in self._all():
            if left is not None and batch.num_rows >= left:
                yield batch.slice(0, left)
                return
            if batch.num_rows:
                yield batch
                left = None if left is None else left - batch.num_rows

    def count(self) -> int:
        """Return how many rows there are; without a predicate no data file is read."""
        if self._predicate is None:
            total = self._dataset.count()
        else:
            total = sum(len(p) for i in self._fragments() for _, p in self._passing(i))
        return total if self._limit is None else min(total, self._limit)

    def explain(self, run: bool = False) -> ScanReport:
        """Return how the rows are read; with ``run`` also what reading them took."""
        return explain_scan(
            self._dataset,
            self._predicate,
            self.schema.names,
            self._limit,
            self if run else None,
            self._indices(),
            () if self._encoded is None else self._encoded.tested,
        )

    def _indices(self) -> IndexPlan | None:
        """Return what indices leave for the predicate; looked up once."""
        if self._found is None and self._predicate is not None and self._use_indices:
            self._found = index.plan_indices(self._dataset, self._predicate)
        return self._found

    def _all(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows; fragments are read on threads if that is worth it."""
        if self._limit is not None:
            # what threads read ahead would often not be needed
            for i in self._fragments():
                yield from self._of_fragment(i)
            return
        is_local = self._dataset.engine.storage.local_path(self._dataset.manifest.path) is not None
        self._small = SmallFragments(self._dataset) if is_local else None
        most = _JOINED_FRAGMENTS if is_local and not self._reader.has_bytes else 1
        tasks: Iterator[Task] = (partial(self._of_fragments, g) for g in self._grouped(most))
        if is_local:
            yield from run_quick(tasks)
        workers = num_cores() if is_local else _REMOTE_THREADS
        budget = _BUDGET_BYTES if self._batch_bytes is None else 2 * self._batch_bytes
        yield from run_ordered(tasks, workers, budget, _AHEAD)

    def _of_fragment(self, fragment: int) -> Iterator[pa.RecordBatch]:
        if self._predicate is not None:
            for reader, passing in self._passing(fragment):
                yield from reader.batches(reader.read(passing), len(passing))
            return
        reader = FragmentReader(self._reader, fragment)
        positions = self._first(self._live(reader, fragment))
        if self._limit is not None and positions is None and self._limit < reader.num_rows():
            positions = np.arange(self._limit)
        batch_rows = self._batch_rows
        if self._batch_bytes is not None:
            batch_rows = min(batch_rows, reader.rows_within(self._batch_bytes))
        is_dense = positions is not None and _is_dense(positions, reader.num_rows())
        if positions is not None and is_dense and self._limit is None and not reader.has_joined_fields:
            yield from self._filtered(reader, positions, batch_rows)
            return
        for window in reader.windows(positions, batch_rows):
            yield from reader.batches(window.arrays, window.stop - window.start)

    def _filtered(
        self, reader: FragmentReader, positions: NDArray[np.int64], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows at positions: all rows are decoded, which is faster than many short ranges."""
        is_left = np.zeros(reader.num_rows(), np.bool_)
        is_left[positions] = True
        for window in reader.windows(None, batch_rows):
            chosen = is_left[window.start : window.stop]
            mask = bool_array(chosen)
            yield from reader.batches([a.filter(mask) for a in window.arrays], int(chosen.sum()))

    def _of_fragments(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of fragments; those of several small ones are joined."""
        if len(fragments) == 1:
            yield from self._of_fragment(fragments[0])
            return
        together = self._together(fragments)
        if together is not None:
            yield from together
            return
        found = [b for i in fragments for b in self._of_fragment(i) if b.num_rows]
        if found:
            yield from pa.Table.from_batches(found).combine_chunks().to_batches()

    def _together(self, fragments: Sequence[int]) -> list[pa.RecordBatch] | None:
        """Return the rows of fragments whose files can be read together; None if they have to be read one by one."""
        small, reader = self._small, self._reader
        if small is None or self._predicate is not None or reader.metadata or reader.has_bytes:
            return None
        numbers = np.asarray(fragments, np.int64)
        shapes = self._dataset.manifest.fragments.shape[numbers]
        if not small.are_small[numbers].all() or (shapes != shapes[0]).any():
            return None
        first = FragmentReader(reader, fragments[0])
        live = small.live_rows(numbers)
        arrays = None if first.has_joined_fields and live is not None else first.together(small, numbers)
        if arrays is None:
            return None
        if live is None:
            return reader.batch(arrays, int(self._dataset.manifest.fragments.physical_rows[numbers].sum()))
        return reader.batch([a.filter(live) for a in arrays], live.true_count)

    def _grouped(self, most: int) -> Iterator[list[int]]:
        """Yield the indices of fragments, of small ones at most ``most`` together."""
        manifest = self._dataset.manifest
        rows = manifest.fragments.physical_rows
        most_rows = min(self._batch_rows, _JOINED_ROWS) if manifest.rows_are_known else 0
        most_bytes = _JOINED_BYTES if self._batch_bytes is None else min(self._batch_bytes, _JOINED_BYTES)
        sizes = manifest.fragments.stored_bytes()
        group: list[int] = []
        total = stored = 0
        for i in self._fragments():
            size = int(rows[i]) if rows[i] >= 0 else most_rows
            of_files = int(sizes[i]) if sizes[i] >= 0 else most_bytes
            if group and (len(group) == most or total + size > most_rows or stored + of_files > most_bytes):
                yield group
                group, total, stored = [], 0, 0
            group.append(i)
            total, stored = total + size, stored + of_files
        if group:
            yield group

    def _first(self, positions: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        return positions if positions is None or self._limit is None else positions[: self._limit]

    def _fragments(self) -> Iterator[int]:
        """Yield the indices of the fragments that are read."""
        yield from self._listed(range(len(self._dataset.manifest.fragments)))

    def _listed(self, fragments: range) -> Iterator[int]:
        """Yield the indices of fragments that may have rows; deleted rows are loaded for many of them at a time."""
        left = self._may_pass(fragments)
        for start in range(0, len(left), _FRAGMENTS_AT_ONCE):
            some = left[start : start + _FRAGMENTS_AT_ONCE]
            self._dataset.deleted_rows(some if self._limit is None else some[:1])
            yield from some

    def _may_pass(self, fragments: Sequence[int]) -> Sequence[int]:
        """Return those of some fragments that indices leave rows of, all of them without indices."""
        indices = self._indices()
        return fragments if indices is None else indices.left(fragments)

    def _passing(self, fragment: int) -> Iterator[tuple[FragmentReader, NDArray[np.int64]]]:
        """Yield the positions of rows of a fragment for which the predicate is true, window by window."""
        predicate, tested = self._predicate, self._tested
        assert predicate is not None
        assert tested is not None
        rows = FragmentReader(tested, fragment)
        reader = FragmentReader(self._reader, fragment, rows)
        positions, is_tested = self._left(rows, fragment)
        if is_tested:
            assert positions is not None
            positions = positions if self._limit is None else positions[: self._limit]
            found: Iterable[NDArray[np.int64]] = (positions,)
        elif self._encoded is not None and rows.can_test(self._encoded):
            found = self._passing_encoded(self._encoded, rows, positions, fragment)
        else:
            found = _passing_windows(predicate, tested.fields, rows.windows(positions, self._window_rows(rows)))
        for passing in found:
            for start in range(0, len(passing), self._batch_rows):
                yield reader, passing[start : start + self._batch_rows]

    def _passing_encoded(
        self, tests: EncodedTests, rows: FragmentReader, positions: NDArray[np.int64] | None, fragment: int
    ) -> Iterator[NDArray[np.int64]]:
        """Yield the positions of rows that pass; columns are decoded for rows that passed on encoded values."""
        total = rows.num_rows() if positions is None else len(positions)
        step = max(self._batch_rows, _TESTED_ROWS) if self._limit is None else self._batch_rows
        rest = None if self._rest is None else FragmentReader(self._rest, fragment, rows)
        for start in range(0, total, step):
            stop = min(start + step, total)
            window = (start, stop) if positions is None else positions[start:stop]
            passing = tests.positions(window, rows.passing)
            if rest is None or self._rest is None or tests.rest is None:
                yield passing
            elif len(passing):
                windows = rest.windows(passing, self._window_rows(rest))
                yield from _passing_windows(tests.rest, self._rest.fields, windows)

    def _window_rows(self, reader: FragmentReader) -> int:
        """Return for how many rows a condition is evaluated at once: more than those of a batch if they are short."""
        if self._limit is not None:
            return self._batch_rows
        return max(self._batch_rows, min(reader.rows_within(_WINDOW_BYTES), _TESTED_ROWS))

    def _live(self, reader: FragmentReader, fragment: int) -> NDArray[np.int64] | None:
        """Return the positions of the rows of a fragment that are read; None for all."""
        return reader.live_positions()

    def _left(self, rows: FragmentReader, fragment: int) -> tuple[NDArray[np.int64] | None, bool]:
        """Return the rows of a fragment that may pass (None: all), and whether indices prove that all of them do."""
        indices = self._indices()
        found = None if indices is None else indices.positions(fragment)
        if indices is None or found is None:
            return self._live(rows, fragment), False
        deleted = self._dataset.deleted_rows([fragment])[0]
        if deleted is not None and len(found):
            found = found[~deleted.mask(rows.num_rows())[found]]
        return found, indices.is_exact(fragment) or not len(found)


def _is_dense(positions: NDArray[np.int64], num_rows: int) -> bool:
    """Whether positions are most of all rows, in ranges that are short."""
    if 2 * len(positions) < num_rows:
        return False
    num_ranges = int(np.count_nonzero(np.diff(positions) > 1)) + 1
    return num_ranges * _SHORT_RANGE > len(positions)


def _passing_windows(
    predicate: Predicate, fields: Sequence[LanceField], windows: Iterable[_Window]
) -> Iterator[NDArray[np.int64]]:
    """Yield the positions of rows for which a condition is true; windows have the fields that it needs."""
    for window in windows:
        columns = {f.name: one_array(a) for f, a in zip(fields, window.arrays, strict=True)}
        passing = predicate.passing(columns, window.stop - window.start)
        if len(passing):
            yield window.at(passing)


def _scan_again(
    dataset: VersionFiles,
    columns: Columns,
    predicate: Any,
    limit: int | None,
    metadata: Sequence[str],
    batch_rows: int,
    blobs: Blobs,
    use_indices: bool,
) -> LanceScan:
    return LanceScan(
        dataset,
        columns,
        predicate,
        limit=limit,
        metadata=metadata,
        batch_rows=batch_rows,
        blobs=blobs,
        use_indices=use_indices,
    )
