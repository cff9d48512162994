"""Data files of the Arrow engine: Parquet to physical batches, on threads, in order, in bounded memory.

On a local disk each core takes a file, a run of row groups of a big one, or a run of files that are read together
(`joined_files`). On a remote store small files are fetched whole, many at once, before they are decoded; big ones are
read by ranges.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core import parquet
from delta_core.engines.records import FileRead, FileWrite, Split, WrittenFile
from delta_core.errors import (
    AccessDeniedError,
    DataFileError,
    DataFileNotFoundError,
    DeltaError,
    EngineError,
    SchemaMismatchError,
)
from delta_core.parquet import file_parts, parts
from delta_core.parquet.columns import GROUP_BYTES, GroupReader
from delta_core.parquet.filtered_groups import Batch, FilteredGroups
from delta_core.parquet.footer import read_footer
from delta_core.parquet.opened_file import DataFile, FileFooter
from delta_core.parquet.row_groups import GroupPruner
from delta_core.parquet.types import FilePlan, UnconvertibleError, plan_file
from delta_core.runtime.processes import cached_property
from delta_core.runtime.threads import Changes, Task as PoolTask, ThreadPool, num_cores
from delta_core.schema.fields import Path, Schema
from delta_core.storage.places import LINK, is_of_system
from delta_core.storage.ranges import REMOTE_GAP

if TYPE_CHECKING:
    from delta_core.engines.interface import Apply, Evaluator, FootersRead, Storage
    from delta_core.parquet.joined_files import JoinedFiles
    from delta_core.runtime.ordered import Task

__all__ = ["ArrowDataFiles"]

#: The most bytes of finished batches of later files while an earlier file is being read: in all, and for each thread.
BUDGET_BYTES = 256 << 20
THREAD_BYTES = 16 << 20
#: The same for each thread if the rows are written as they come, which takes longer than the read, as a rule.
THREAD_BYTES_BESIDE_WRITE = 2 << 20
#: Batches that the task whose turn it is may run ahead of the consumer beyond that.
HEAD_BATCHES = 4
#: Files above this are split into runs of row groups, one thread each; smaller ones too, if there are too few for all
#: threads, into `_RUNS_PER_THREAD`.
SPLIT_BYTES = 64 << 20
_RUNS_PER_THREAD = 2
#: A file below this is read by the caller's own thread when it is the only one.
INLINE_BYTES = 4 << 20
#: Files whose requested columns take less in memory are read by the caller's own thread, if they turn out to be quick:
#: the columns of conditions, or all columns if there are no conditions; and all columns in any case.
QUICK_BYTES = 1 << 20
MOST_QUICK_BYTES = 4 << 20
#: The least bytes of a value of a nested column.
_NESTED_BYTES = 4
#: Up to this number of rows of all files are read by the caller's own thread, if the first task has them.
FEW_ROWS = 1 << 16
#: Threads that decode small remote files, and that read big ones by ranges, a run of row groups at a time.
REMOTE_WORKERS = 8
REMOTE_RUNS = 32
#: The most decoded bytes of the columns of a run of remote row groups, and of all runs that are read concurrently.
REMOTE_RUN_BYTES = 4 << 20
REMOTE_BYTES = 128 << 20
#: Remote files whose footers are read ahead.
FOOTERS_AHEAD = 32
#: The least rows of row groups whose dictionaries are kept, and of files with a single row group:
#: to make a dictionary array takes longer than to decode few strings.
_CODED_ROWS, _CODED_FILE_ROWS = 1 << 14, 4096
#: Strings that take fewer stored bytes than this each are dictionary codes, worth keeping so.
ENCODED_BYTES = 4


class ArrowDataFiles:
    """DataFiles of the seam over pyarrow's Parquet reader.

    Parameters
    ----------
    storage : Storage
    evaluator : Evaluator, optional
        Evaluates the predicates that prune row groups; without one none is pruned.
    """

    def __init__(self, storage: Storage, evaluator: Evaluator | None = None) -> None:
        self._storage = storage
        self._evaluator = evaluator

    def __repr__(self) -> str:
        return f"ArrowDataFiles({self._storage.root!r})"

    def read(self, read: FileRead, apply: Apply) -> Iterator[pa.RecordBatch]:
        """Stream the files' batches through ``apply``, files in order, rows in file order, in bounded memory."""
        evaluator = self._evaluator
        prune = None if read.prune is None or evaluator is None else GroupPruner(read.prune, evaluator)
        return _Job(self._storage, read, apply, prune).run()

    def row_counts(self, paths: Sequence[str], sizes: Sequence[int | None]) -> list[int]:
        """Return the number of physical rows of each file, from footers."""

        def one(path: str, size: int | None) -> int:
            with _naming(path):
                source = self._storage.local_path(path) or self._storage.open(path, size)
                return int(file_parts.ParquetFile(source).metadata.num_rows)

        if len(paths) == 1:
            return [one(paths[0], sizes[0])]
        with ThreadPool(32, "delta-footers") as pool:
            return pool.map(one, paths, sizes)

    def write(self, write: FileWrite, source: pa.Table | pa.RecordBatchReader, apply: Split) -> list[WrittenFile]:
        """Write rows as data files, several at once, in bounded memory."""
        return parquet.write_parquet_files(self._storage, write, source, apply)

    def footers(self, paths: Sequence[str]) -> FootersRead:
        """Read the footers of files from elsewhere, many at once."""
        describe = partial(self._describe, strict=False)
        return parquet.ArrowFooters(self._storage, paths, self._arrow_schema, describe, _check_schema)

    def _arrow_schema(self, path: str) -> pa.Schema:
        with _naming(path):
            source = self._storage.local_path(path) or self._storage.open(path, None)
            return parquet.read_schema(file_parts.ParquetFile(source, read_footer(source)))

    def describe(
        self, paths: Sequence[str], schema: pa.Schema, statistics: Sequence[Path], *, strict: bool = True
    ) -> list[WrittenFile]:
        """Return what the footers of files from elsewhere report, in the order given."""
        with ThreadPool(32, "delta-footers") as pool:
            return pool.map(lambda path: self._describe(path, schema, statistics, strict), paths)

    def _describe(self, path: str, schema: pa.Schema, statistics: Sequence[Path], strict: bool) -> WrittenFile:
        with _naming(path):
            ((size, modified_ms),) = self._storage.stat([path])
            source = self._storage.local_path(path) or self._storage.open(path, size)
            file = file_parts.ParquetFile(source, read_footer(source))
        found = file.schema_arrow
        unknown = [n for n in found.names if schema.get_field_index(n) < 0]
        if unknown and strict:
            raise SchemaMismatchError(
                f"Data file {path!r} has the column {unknown[0]!r}, which the table's files do not have; they have: "
                f"{', '.join(schema.names[:20])}.",
                path=path,
                column=unknown[0],
            )
        _check_schema(path, found, schema)
        # a bound in another unit or order than the table's type has would mislead
        wanted = {leaf.path: leaf.type for leaf in parquet.leaves_of(schema, statistics)}
        leaves = [leaf for leaf in parquet.leaves_of(found, statistics) if leaf.type.equals(wanted.get(leaf.path))]
        facts = parquet.footer_statistics(file.metadata, leaves, None)
        return WrittenFile(path, 0, size, modified_ms, file.metadata.num_rows, facts)


def _check_schema(path: str, found: pa.Schema, schema: pa.Schema) -> None:
    """Reject a file that can't be read in the table's schema."""
    try:
        plan_file(found, schema, Schema.from_arrow(schema))
    except UnconvertibleError as e:
        raise SchemaMismatchError(
            f"Data file {path!r} can't be read as the table's schema specifies: {e}.",
            path=path,
            column=e.column,
            found=e.found,
            expected=e.wanted,
        ) from e


class _naming:  # noqa: N801  # used like a function; one of a generator takes several times as long
    """Turn the reader's errors into ones that name the file."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, Exception):
            _raise_named(self._path, error)


def _raise_named(path: str, e: Exception) -> None:
    """Raise an error that names the file for one of the reader's that does not; return for any other one."""
    if isinstance(e, DataFileError) and "path" not in e.facts:
        raise DataFileError(f"Data file {path!r} can't be read: {e}", path=path, **e.facts) from e
    if isinstance(e, DeltaError):
        return
    if isinstance(e, UnconvertibleError):
        raise DataFileError(
            f"Data file {path!r} can't be read as the table's schema specifies: {e}.",
            path=path,
            column=e.column,
            found=e.found,
            expected=e.wanted,
        ) from e
    if isinstance(e, FileNotFoundError):
        raise DataFileNotFoundError.of(path) from e
    if isinstance(e, PermissionError):
        raise AccessDeniedError.of(path, e) from e
    if isinstance(e, MemoryError):
        return
    if is_of_system(e):
        raise EngineError(f"Data file {path!r} could not be read: {type(e).__name__}: {e}.", path=path) from e
    if isinstance(e, (pa.ArrowException, OSError, UnicodeDecodeError)):
        sound = "not yet implemented" in str(e).lower()
        what = "PyArrow does not decode what it holds" if sound else "it is no sound Parquet file"
        raise DataFileError(f"Data file {path!r} can't be read: {what} ({e}).", path=path) from e


class _Job:
    """One call of `read`: what its files share."""

    def __init__(self, storage: Storage, read: FileRead, apply: Apply, prune: GroupPruner | None) -> None:
        self._storage = storage
        self._read = read
        self._apply = apply
        self._prune = prune
        self._plans: dict[Any, FilePlan] = {}
        #: Which row groups are left of files that are read part by part.
        self._kept: dict[int, list[bool]] = {}
        self._local = storage.local_paths(read.paths)
        self._prefetch = (
            None if None not in self._local else file_parts.Prefetch(storage, read.paths, read.sizes, self._local)
        )
        self._ranged = _Ranged(self._ranged_files())
        self._room = _Room(REMOTE_BYTES)
        #: Whether the only file is split into one part of one row group, which is decoded at once.
        self._is_one_group = False
        #: The first file, if it was opened to find out how much there is to read.
        self._first: DataFile | None = None

    @cached_property
    def _joined(self) -> JoinedFiles:
        return parts.JoinedFiles(self._read, self._local)

    def _runs_of_files(self) -> Iterator[tuple[int, int]]:
        """Yield runs of files that are read together, from one number to another."""
        return self._joined.runs() if len(self._read.sizes) > 1 else iter([(0, 1)] * len(self._read.sizes))

    def _ranged_files(self) -> list[int]:
        """Return the remote files that are read by ranges."""
        # a file in an archive is unpacked from its beginning for each range
        if self._prefetch is None or self._read.most_rows is not None or LINK in self._storage.root:
            return []
        remote = [i for i, size in enumerate(self._read.sizes) if size is not None and self._local[i] is None]
        return [i for i in remote if not self._prefetch.fetches(i)]

    def run(self) -> Iterator[pa.RecordBatch]:
        sizes = self._read.sizes
        try:
            if len(sizes) == 1 and (sizes[0] or SPLIT_BYTES) <= INLINE_BYTES:
                yield from self.file(0, lanes=self._lanes(1))
                return
            cores = num_cores()
            workers = min(cores if self._prefetch is None else max(cores, REMOTE_WORKERS), max(len(sizes), cores))
            thread_bytes, ahead = THREAD_BYTES, HEAD_BATCHES
            if self._read.beside_write and self._prefetch is None:
                # each thread's decoded rows are in memory beside those that are written
                workers, thread_bytes, ahead = max(1, workers // 2), THREAD_BYTES_BESIDE_WRITE, 1
            budget = min(BUDGET_BYTES, workers * thread_bytes)
            if len(sizes) > 1 and self._joined.needs_first:
                self._joined.plan_first(*self._first_file(), self._first_bytes, workers)
            tasks = self._tasks()
            if self._has_few_rows():
                # as a rule the first file has all of them; threads would decode others for nothing
                yield from next(tasks, tuple)()
            elif self._is_quick():
                yield from parts.run_quick(tasks)
            elif len(sizes) == 1 and self._prefetch is None:
                found = list(tasks)
                if self._is_one_group and not self._read.beside_write:
                    # the caller waits for its only row group: a thread has nothing to read ahead
                    yield from found[0]()
                    return
                tasks, workers = iter(found), min(workers, len(found))
            yield from parts.run_ordered(tasks, max(workers, self._ranged.workers), budget, ahead)
        finally:
            if self._first is not None:
                self._first.close()
            self._ranged.close()
            if self._prefetch is not None:
                self._prefetch.close()

    def _has_few_rows(self) -> bool:
        """Whether no more rows of local files are needed than one batch may have."""
        most = self._read.most_rows
        return self._prefetch is None and most is not None and most <= min(self._read.batch_rows, FEW_ROWS)

    def _is_quick(self) -> bool:
        """Whether files take so little time that threads would wait for each other's Python code, by the first one."""
        read = self._read
        run = next(self._runs_of_files(), (0, 0))
        if self._prefetch is not None or run != (0, 1) or (read.sizes[0] or SPLIT_BYTES) >= SPLIT_BYTES:
            return False
        file, plan = self._first_file()
        tested = plan.leaves_of(read.tested_columns)
        size = file.plain_bytes(tested) if tested else self._first_bytes
        size = max(size, _NESTED_BYTES * _num_nested(file, plan.leaves))
        return size <= QUICK_BYTES and self._first_bytes <= MOST_QUICK_BYTES

    def _first_file(self) -> tuple[DataFile, FilePlan]:
        """Return the first file, which is opened once, and its plan."""
        with _naming(self._read.paths[0]):
            if self._first is None:
                self._first = DataFile(self._source(0))
            return self._first, self._plan_of(self._first)

    @cached_property
    def _first_bytes(self) -> int:
        """The bytes of the first file's requested columns, decoded."""
        file, plan = self._first_file()
        return file.plain_bytes(plan.leaves)

    @cached_property
    def _part_bytes(self) -> int:
        """The most bytes of a run of row groups of a local file."""
        sizes = self._read.sizes
        if None in self._local or self._read.most_rows is not None:
            return SPLIT_BYTES
        share = sum(size or 0 for size in sizes) // (_RUNS_PER_THREAD * num_cores())
        return min(max(share, INLINE_BYTES), SPLIT_BYTES)

    def _lanes(self, tasks: int) -> int:
        """Return how many threads each of ``tasks`` tasks may use: the idle threads."""
        read = self._read
        # beside a write, rows that are decoded at once are in memory at once
        if None in self._local or read.most_rows is not None or read.beside_write:
            return 1
        return max(1, num_cores() // max(tasks, 1))

    def _tasks(self) -> Iterator[Task]:
        lanes = self._lanes(len(self._read.sizes))
        for start, stop in self._runs_of_files():
            size = self._read.sizes[start]
            if stop - start > 1:
                yield partial(self._together, start, stop)
            elif start in self._ranged:
                yield from self._ranges(start)
            elif size is not None and size > self._part_bytes:
                yield from self._parts(start)
            else:
                yield partial(self.file, start, lanes=lanes)

    def _together(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Read a run of files, many at a time, and by itself each file that differs from those before."""
        while start < stop:
            for end, batch in self._joined.batches(start, stop):
                start = end
                if batch is not None:
                    step = self._read.batch_rows
                    yield from (batch.slice(first, step) for first in range(0, batch.num_rows, step))
            if start < stop:
                yield from self.file(start, is_example=True)
                start += 1

    def _parts(self, index: int) -> Iterator[Task]:
        """Split a big file into runs of row groups that are read on their own."""
        with _naming(self._read.paths[index]):
            file = self._opened(index, None)
        try:
            with _naming(self._read.paths[index]):
                keep = self._kept_groups(index, file.footer, self._plan_of(file), is_part=True)
            footer, leaves = file.footer, range(len(file.layout.leaves))
            runs: list[list[int]] = []
            weight = self._part_bytes
            for group in range(len(footer.group_rows)):
                if keep is None or keep[group]:
                    if weight >= self._part_bytes:
                        runs.append([])
                        weight = 0
                    runs[-1].append(group)
                    weight += footer.plain_bytes(group, leaves)
        finally:
            file.close()
        self._is_one_group = [len(run) for run in runs] == [1] and weight <= GROUP_BYTES
        lanes = self._lanes(max(len(runs), len(self._read.sizes)))
        for run in runs or [[]]:
            yield partial(self.file, index, footer, run, lanes=lanes)

    def _ranges(self, index: int) -> Iterator[Task]:
        """Split a remote file into runs of row groups that wait for the store at the same time, in bounded memory."""
        with _naming(self._read.paths[index]):
            file = self._ranged.opened(index, self._open_ranged)
            file.close()
            plan = self._plan_of(file)
        footer, run, weight, was_alone = file.footer, list[int](), 0, False
        keep = self._kept_groups(index, footer, plan, is_part=True)
        for group in range(len(footer.group_rows)):
            size = 0 if keep is not None and not keep[group] else footer.plain_bytes(group, plan.leaves)
            # conditions are tested group by group: each would wait for the one before, unless it is fetched whole
            is_alone = bool(self._read.tests) and not _is_small(footer, group, plan.leaves)
            if weight and size and (is_alone or was_alone or weight + size > REMOTE_RUN_BYTES):
                yield self._in_room(index, footer, run, weight)
                run, weight = [], 0
            run.append(group)
            weight += size
            was_alone = is_alone
        yield self._in_room(index, footer, run, weight)

    def _in_room(self, index: int, footer: FileFooter, run: list[int], weight: int) -> Task:
        """Wait until tasks before have room for one more. Not on the task's thread: the first one never waits."""
        self._room.take(weight)

        def task() -> Iterator[pa.RecordBatch]:
            try:
                yield from self.file(index, footer, run)
            finally:
                self._room.give(weight)

        return task

    def _source(self, index: int) -> Any:
        local = self._local[index]
        if local is not None:
            return local
        path, size = self._read.paths[index], self._read.sizes[index]
        if index in self._ranged and size is not None:
            return file_parts.RangedSource(self._storage, path, size)
        fetched = self._prefetch.take(index) if self._prefetch is not None else None
        return fetched if fetched is not None else self._storage.open(path, size)

    def file(
        self,
        index: int,
        footer: FileFooter | None = None,
        groups: list[int] | None = None,
        *,
        is_example: bool = False,
        lanes: int = 1,
    ) -> Iterator[pa.RecordBatch]:
        """Read a file, or some of its row groups, through ``apply``; an example is how its like are read together."""
        path = self._read.paths[index]
        with _naming(path):
            file = self._opened(index, footer)
        try:
            with _naming(path):
                plan = self._plan_of(file)
            if is_example:
                self._joined.add_layout(file, plan)
            if self._read.opened is not None:
                self._read.opened(index, file.num_rows)
            is_limited, is_collected = self._read.most_rows is not None, self._read.is_collected
            reader = GroupReader(file, plan.leaves, is_limited, lanes, is_collected)
            groups_of = FilteredGroups(reader, plan, self._read, index)
            is_tested = bool(self._read.tests)
            keep = self._kept_groups(index, file.footer, plan, is_part=groups is not None)
            runs = self._runs(file.footer, keep, groups)
            if index in self._ranged:
                runs = self._fetched(index, file, plan, reader, runs)
            if self._read.observer is not None:
                runs = self._observed(index, reader, plan, groups, runs)
            for first, run in runs:
                for position, batch, picked in self._batches(path, groups_of.batches(run, first)):
                    out = self._apply(index, position, batch, picked, is_tested)
                    if out is not None and out.num_rows:
                        yield out
        finally:
            file.close()

    def _opened(self, index: int, footer: FileFooter | None) -> DataFile:
        found = self._first if index == 0 else None
        if found is None:
            return DataFile(self._source(index), footer)
        self._first = None
        return found

    def _open_ranged(self, index: int) -> DataFile:
        return DataFile(self._source(index))

    def _fetched(
        self, index: int, file: DataFile, plan: FilePlan, reader: GroupReader, runs: Iterator[tuple[int, list[int]]]
    ) -> Iterator[tuple[int, list[int]]]:
        """Fetch at once what is read of all row groups: one after the other, each would wait for the store.

        With conditions only their columns, but all columns of small row groups. Columns that are read in stretches
        are fetched part by part.
        """
        found = list(runs)
        tested = plan.leaves_of(self._read.tested_columns)
        chunks: list[tuple[int, int]] = []
        for group in self._with_rows(index, file.footer, found):
            is_whole = not self._read.tests or _is_small(file.footer, group, plan.leaves)
            leaves = plan.leaves if is_whole else tested
            if not reader.has_stretches(group, leaves):
                chunks += [(group, leaf) for leaf in leaves]
        if chunks:
            with _naming(self._read.paths[index]):
                file.arrow.fetch(chunks)
        yield from found

    def _with_rows(self, index: int, footer: FileFooter, runs: Iterable[tuple[int, list[int]]]) -> Iterator[int]:
        """Yield the row groups of runs that have requested rows."""
        for position, run in runs:
            first = position
            for group in run:
                rows = footer.group_rows[group]
                picks = None if self._read.selection is None else self._read.selection(index, first, rows)
                if picks is None or picks.count:
                    yield group
                first += rows

    def _observed(
        self,
        index: int,
        reader: GroupReader,
        plan: FilePlan,
        groups: list[int] | None,
        runs: Iterator[tuple[int, list[int]]],
    ) -> Iterator[tuple[int, list[int]]]:
        """Report which row groups are left before they are read, and the pages of these when that is done."""
        found = list(runs)
        left = [group for _, run in found for group in run]
        size = sum(reader.footer.stored_bytes(group, plan.leaves) for group in left)
        assert self._read.observer is not None
        total = len(reader.group_rows if groups is None else groups)
        self._read.observer.row_groups(index, total, len(left), size)
        try:
            yield from found
        finally:
            self._read.observer.pages(reader.pages.total, reader.pages.decoded)

    def _batches(self, path: str, stream: Iterator[Batch]) -> Iterator[Batch]:
        while True:
            with _naming(path):
                found = next(stream, None)
            if found is None:
                return
            yield found

    def _kept_groups(self, index: int, footer: FileFooter, plan: FilePlan, is_part: bool) -> list[bool] | None:
        """Return which row groups of a file may hold a row; of one that is read part by part they are found once."""
        if self._prune is None or not footer.group_rows:
            return None
        keep = self._kept.get(index)
        if keep is None:
            keep = self._prune.kept(footer, plan.stored)
            if is_part:
                self._kept[index] = keep
        return keep

    def _runs(
        self, footer: FileFooter, keep: list[bool] | None, groups: list[int] | None
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield runs of neighbouring row groups that are not pruned, each with its first row's position."""
        wanted = None if groups is None else set(groups)
        run: list[int] = []
        first = position = 0
        for group, rows in enumerate(footer.group_rows):
            if (keep is None or keep[group]) and (wanted is None or group in wanted):
                if not run:
                    first = position
                run.append(group)
            elif run:
                yield first, run
                run = []
            position += rows
        if run:
            yield first, run

    def _plan_of(self, file: DataFile) -> FilePlan:
        """Return how a file is read, with the strings kept encoded that its footer specifies are worth it."""
        plan = self._plan(file)
        if self._read.encoded and (encoded := _worth_encoding(file, plan)):
            file.encode(encoded)
            plan = self._plan(file, plan)
        return plan

    def _plan(self, file: DataFile, unencoded: FilePlan | None = None) -> FilePlan:
        # a layout of its own may be equal to one before; that is found by its schema
        layout = file.layout
        key = (layout.key or layout.schema.serialize().to_pybytes(), layout.calendar, file.encoded)
        plan = self._plans.get(key)
        if plan is None and unencoded is not None:
            plan = unencoded.encoded(file.encoded)
        if plan is None:
            make = partial(self._made_plan, file)
            plan = make() if file.encoded else layout.planned(self._read, make)
        self._plans[key] = plan
        return plan

    def _made_plan(self, file: DataFile) -> FilePlan:
        read, layout = self._read, file.layout
        return plan_file(
            file.schema,
            read.schema,
            read.columns,
            read.match,
            encoded=read.encoded,
            calendar=layout.calendar,
            types=read.types,
            num_stored=len(layout.leaves),
        )


class _Ranged:
    """Remote files that are read by ranges, their footers read ahead and many at once."""

    def __init__(self, files: Sequence[int]) -> None:
        self._files = files
        self._places = {file: place for place, file in enumerate(files)}
        self._pending: dict[int, PoolTask[DataFile]] = {}
        self._started = 0
        self._pool = ThreadPool(FOOTERS_AHEAD, "delta-footers") if files else None

    @property
    def workers(self) -> int:
        """Threads that read them."""
        return REMOTE_RUNS if self._files else 0

    def __contains__(self, index: int) -> bool:
        return index in self._places

    def opened(self, index: int, open_file: Callable[[int], DataFile]) -> DataFile:
        """Return a file, each once and in their order."""
        assert self._pool is not None
        for file in self._files[self._started : self._places[index] + FOOTERS_AHEAD]:
            self._pending[file] = self._pool.submit(open_file, file)
            self._started += 1
        return self._pending.pop(index).result()

    def close(self) -> None:
        """Start no further task, and close the files that were opened but not read."""
        if self._pool is not None:
            self._pool.stop()
        for file in self._pending.values():
            file.when_done(_close_opened)


def _close_opened(file: PoolTask[DataFile]) -> None:
    # no caller is left to which an error could be raised
    with suppress(Exception):
        file.result().close()


class _Room:
    """Memory that tasks share: a task takes a part of it while it runs."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = self._tasks = 0
        self._lock = threading.Lock()
        self._changed = Changes()

    def take(self, size: int) -> None:
        """Wait until there is room; a single task has it, however much it takes."""
        while True:
            with self._lock:
                if not self._tasks or self._taken + size <= self._size:
                    self._taken += size
                    self._tasks += 1
                    return
                changed = self._changed.next()
            changed.acquire()

    def give(self, size: int) -> None:
        """Return what a task took."""
        with self._lock:
            self._taken -= size
            self._tasks -= 1
            self._changed.notify()


def _is_small(footer: FileFooter, group: int, leaves: Iterable[int]) -> bool:
    """Whether columns of a row group lie so close together that a remote store's ranges of any two are joined."""
    chunks = [c for leaf in leaves if (c := footer.chunk(group, leaf)) is not None]
    return not chunks or max(c.first + c.compressed for c in chunks) - min(c.first for c in chunks) <= REMOTE_GAP


def _num_nested(file: DataFile, leaves: Iterable[int]) -> int:
    """Return how many values nested columns have, about: small codes take as long to decode as other values."""
    rows, total = file.footer.group_rows, 0
    for leaf in leaves:
        facts = file.footer.chunk(0, leaf) if rows and leaf not in file.layout.flat else None
        if facts is not None:
            total += facts.num_values * file.num_rows // max(rows[0], 1)
    return total


def _worth_encoding(file: DataFile, plan: FilePlan) -> tuple[str, ...]:
    """Return the top-level string columns of few distinct values, by the size of their stored codes.

    None of files with small row groups: each of them has dictionaries of its own.
    """
    if file.num_rows < max(_CODED_ROWS * (len(file.footer.group_rows) - 1), _CODED_FILE_ROWS):
        return ()
    return tuple(plan.texts[leaf] for leaf in file.footer.short_texts(list(plan.texts), ENCODED_BYTES))
