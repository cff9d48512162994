"""The engine seam: what does I/O and evaluates. The core specifies what; an engine specifies how.

Results are pyarrow objects throughout. Paths of the log are relative to the table's root or absolute URIs;
they are percent-decoded before they reach an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import pyarrow as pa

from delta_core.engines.records import (
    ActionQuery,
    FileIdentity,
    FileRead,
    FilesStatistics,
    FileWrite,
    FolderFiles,
    Listing,
    ParquetForm,
    PutResult,
    RangeRequest,
    Split,
    WrittenFile,
)
from delta_core.engines.writer_properties import WriterProperties
from delta_core.expressions.ast import Expression, FileStatistic, Leaf
from delta_core.expressions.plugin_functions import Function
from delta_core.kernels.json_actions import ParsedActions
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from delta_core.kernels.gather import SelectionVector
    from delta_core.kernels.row_set import RowSets

__all__ = [
    "Apply",
    "CheckpointHandle",
    "Compiled",
    "DataFiles",
    "Evaluator",
    "FootersRead",
    "LogFiles",
    "Relation",
    "Relations",
    "RemoteRows",
    "Spread",
    "Storage",
]

T = TypeVar("T")
R = TypeVar("R")


class Storage(Protocol):
    """Bytes under one table's root.

    Every method takes paths relative to the root, or absolute URIs or paths. A missing file raises
    FileNotFoundError; any other failure of the backend raises EngineError with the backend's as cause.

    Paths come from the log, which others wrote. Those that lead out of the root are read only as ``allow_external`` of
    `open_snapshot` specifies; nothing is written or deleted there. Every method raises ExternalPathError for the
    others.

    Attributes
    ----------
    store : str or None
        Names the store that has to prove, once a process, that a second `put_if_absent` fails; None if
        that is so by contract, as on local disks.

    Notes
    -----
    A storage may have an attribute ``commits``: the `CommitSource` of a table that an entry point of the group
    ``delta_core.stores`` opened by its name in a catalog. It serves unless the caller passes ``commits``. Its attribute
    ``has_issued_credentials`` is true if a catalog issues the credentials, which no other process has.
    """

    root: str
    store: str | None

    def list_from(self, directory: str, start: str = "", limit: int | None = None) -> Listing:
        """List a directory's files whose name is ``>= start``, sorted, without descending.

        A missing directory returns an empty listing. A store that lists in pages fetches no page below ``start``.

        Parameters
        ----------
        directory : str
            From the root, without a slash at its end.
        start : str
            The first name to list; all unless given.
        limit : int, optional
            How many names suffice: a store that can list the first ones alone leaves out the others, and returns an
            incomplete `Listing`. All names unless given.
        """
        ...

    def first_names(self, limit: int) -> list[str] | None:
        """Return names of some files at or below the root, at most ``limit`` of them, for error messages.

        None if the store has no cheap way to report, e.g. one call that stops at a limit.

        Parameters
        ----------
        limit : int
            The most names.
        """
        ...

    def stat(self, paths: Sequence[str]) -> list[tuple[int, int]]:
        """Return (size, modification time in ms) of each file, requested concurrently.

        Parameters
        ----------
        paths : sequence of str
            Relative to the root.
        """
        ...

    def identify(self, paths: Sequence[str]) -> list[FileIdentity]:
        """Return what distinguishes each file from any other one that takes its place, requested concurrently.

        Parameters
        ----------
        paths : sequence of str
            Relative to the root.
        """
        ...

    def read(self, requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        """Read ranges, in the order requested.

        At least 32 calls are in flight on a remote store. Ranges of one file that lie close are fetched by one call.

        Parameters
        ----------
        requests : sequence of RangeRequest
            The files, with the range of each in bytes.
        """
        ...

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access; ``size``, if known, saves a call.

        Parameters
        ----------
        path : str
            Relative to the root, not encoded.
        size : int, optional
            The bytes of the file, if they are known: saves a call on stores.
        """
        ...

    def local_path(self, path: str) -> str | None:
        """Return the path on this machine's disk, None on any other store.

        Parameters
        ----------
        path : str
            Relative to the root, not encoded.
        """
        ...

    def local_paths(self, paths: Sequence[str]) -> list[str | None]:
        """Return the `local_path` of each path.

        Parameters
        ----------
        paths : sequence of str
            Relative to the root.
        """
        ...

    def uri(self, path: str) -> str:
        """Return the absolute URI or path under which users find the file.

        Parameters
        ----------
        path : str
            Relative to the root, not encoded.
        """
        ...

    def uri_for_engine(self, path: str) -> str:
        """Return the URI for another engine, which reads with credentials of its own.

        Parameters
        ----------
        path : str
            Relative to the root, not encoded.

        Raises
        ------
        ExternalPathError
            For a place that is not to be sent them: another host or bucket than the table's.
        """
        ...

    def put_if_absent(
        self, path: str, data: bytes | Iterable[bytes], *, durable: bool = True, ready: Callable[[], None] | None = None
    ) -> PutResult:
        """Create the file whole, or report that it exists; never overwrite, never leave a part visible.

        ``data`` may come in pieces; nothing is created if making them raises an error.
        It is on the disk when this returns, unless not ``durable``: what can be computed again need not survive the
        machine. ``ready`` is called when all of it was taken, before the file has its name; nothing is created if it
        raises an error. It is passed only if a write by the same engine returned files that were not synced yet.

        Parameters
        ----------
        path : str
            Relative to the root, not encoded.
        data : bytes, or iterable of bytes
            The content, whole or in pieces.
        durable : bool
            Whether the file must survive a loss of power once the call returns.
        ready : function(), optional
            Called when the content is ready, immediately before it becomes visible.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write the file whole, replacing it.

        Parameters
        ----------
        path : str
            Relative to the root, not encoded.
        data : bytes
            The content.
        """
        ...

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file to be written piece by piece; no other writer may use its name.

        On a remote store nothing is visible before it is closed. On a disk the caller syncs the file and the folders
        below the root that have its name and theirs; missing ones are made.

        Parameters
        ----------
        path : str
            Relative to the root, not encoded.
        """
        ...

    def put_stream(self, path: str, *, replace: bool = True) -> AbstractContextManager[IO[bytes]]:
        """Write a file piece by piece.

        It is there whole when the context ends; when that ends by an exception, nothing of it is to be seen.
        Unless ``replace``, an existing file stays as it is and the end of the context raises FileExistsError. A store
        that creates no large file exclusively looks for the file right before it is written.

        Parameters
        ----------
        path : str
            Relative to the root, not encoded.
        replace : bool
            Whether a file that exists is replaced.
        """
        ...

    def copy(self, source: Storage, path: str, target: str) -> None:
        """Copy a file of a storage to this one, whole or not at all; what is at the target is replaced.

        By the store's own means if both are on one store, else through this process, a part in memory at a time.

        Parameters
        ----------
        source : Storage
            The store of the file.
        path : str
            The file, relative to the root of ``source``.
        target : str
            The copy, relative to the root.
        """
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; a missing one is no error.

        Parameters
        ----------
        paths : iterable of str
            Relative to the root.
        """
        ...

    def walk(self, skip: Callable[[str], bool], below: Sequence[str] = ("",)) -> Iterator[FolderFiles]:
        """Yield all files below the root piece by piece, in any order; symbolic links are not followed.

        Parameters
        ----------
        skip : function(str) -> bool
            Whether a folder (its path from the root) is left out; called at least once for each, before those below it.
        below : sequence of str
            Only files in these folders, and below them; none of them is below another one.
        """
        ...

    def list_folders(self, folders: Sequence[str]) -> tuple[FolderFiles, list[str]]:
        """Return the files that lie in folders, not those further below, and the folders in them.

        Parameters
        ----------
        folders : sequence of str
            Relative to the root.
        """
        ...

    def find(self, paths: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return sizes and modification times (ms) of files below the root; -1 for those that are not there.

        Parameters
        ----------
        paths : string array, **shape (n,)**
            Relative to the root; no nulls.
        """
        ...

    def delete_files(self, paths: pa.Array) -> int:
        """Delete files below the root, many at a time; return how many there were, as far as the store reports.

        Parameters
        ----------
        paths : string array, **shape (n,)**
            Relative to the root; no nulls.

        Raises
        ------
        EngineError
            If some could not be deleted; the others were.
        """
        ...

    def delete_folders(self, paths: Sequence[str]) -> int:
        """Delete folders below the root in which there is nothing, and return how many; the others stay.

        Parameters
        ----------
        paths : sequence of str
            Relative to the root.
        """
        ...


class CheckpointHandle(Protocol):
    """One open checkpoint part or sidecar, as row groups of columns.

    Opening reads the footer (Parquet) or the whole file (JSON, one group).
    """

    path: str
    #: Rows of each group.
    group_rows: list[int]
    #: The struct fields of each action that the file has: ``{"add": ["path", "stats_parsed", ...]}``.
    fields: Mapping[str, list[str]]

    def arrow_type(self, path: tuple[str, ...]) -> pa.DataType | None:
        """Return the type of a nested field as the file stores it, None if it has none."""
        ...

    def may_hold(self, group: int, action: str) -> bool:
        """Whether a group may hold a row of this action; False only when the footer proves that it does not."""
        ...

    def num_actions(self, group: int, action: str) -> int | None:
        """Return how many rows of a group are of this action, None if the footer does not specify it."""
        ...

    def all_null(self, group: int, path: tuple[str, ...]) -> bool:
        """Whether the footer proves that a nested field (no list or map) is null in every row of a group."""
        ...

    def group_bounds(self, leaves: Sequence[FileStatistic]) -> list[pa.Array]:
        """Return what the footer specifies for nested fields, one value a group; null if it specifies nothing.

        The path of a statistic is that of a field, such as ``("add", "stats_parsed", "minValues", "id")``; its kind is
        ``min``, ``max``, ``nullCount`` or ``numRecords`` (the group's rows). Bounds hold for every value of the group.
        """
        ...

    def read(
        self, group: int, columns: Sequence[tuple[str, ...]], dictionary: Sequence[tuple[str, ...]] = ()
    ) -> list[pa.Array]:
        """Read paths such as ``("add", "path")`` of one group, an array each with one row per row of the group.

        A row that is not of the action is null. Absent paths return null columns of their `FILE_COLUMNS` type.
        Columns in ``dictionary`` come with their strings (a map's keys and values) dictionary-encoded.
        """
        ...

    def pick(self, group: int, columns: Sequence[tuple[str, ...]], rows: NDArray[np.bool_]) -> list[pa.Array] | None:
        """Read as `read` does, only the rows for which a mask is true; None if this is no faster than `batches`."""
        ...

    def batches(self, group: int, columns: Sequence[tuple[str, ...]]) -> Generator[list[pa.Array]]:
        """Read as `read` does, a few thousand rows at a time: for what is too large to be in memory whole.

        Closing it early raises LogChangedError too, if the file was replaced meanwhile.
        """
        ...


class LogFiles(Protocol):
    """Actions of commits and checkpoints as Arrow, and back."""

    def read_commits(self, files: Sequence[Any], query: ActionQuery) -> ParsedActions:
        """Read `plans.LogFile` commits or compacted files in the order given; all fetched concurrently.

        Raises
        ------
        LogError
            For text that is not a sequence of JSON actions; the message names file and offset.
        """
        ...

    def open_checkpoints(
        self, paths: Sequence[str], sizes: Sequence[int | None], listed: Sequence[FileIdentity | None] = ()
    ) -> list[CheckpointHandle]:
        """Open checkpoint parts or sidecars (paths relative to the root), footers fetched concurrently.

        ``listed`` is what a listing reported of each file, if anything.

        Every later read of a handle is of the very content that was opened, or raises LogChangedError.

        Raises
        ------
        CheckpointError
            If a file can't be read; the message names it.
        LogChangedError
            If a file is gone.
        """
        ...

    def write_parquet(
        self, path: str, schema: pa.Schema, groups: Iterable[pa.Table], form: ParquetForm, *, replace: bool = True
    ) -> int:
        """Write a checkpoint or sidecar, a row group per table, as they come; return its size in bytes.

        Footers carry min, max and null counts. The file is to be seen whole or not at all.

        Raises
        ------
        EngineError
            If the store fails.
        FileExistsError
            If there is a file that is not to be replaced.
        """
        ...

    def write_lines(self, path: str, pieces: Iterable[bytes]) -> int:
        """Write a JSON checkpoint from pieces of its text, as `write_parquet` writes."""
        ...


class Compiled(Protocol):
    """An expression ready to run on arrays."""

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The meaning of the columns that are passed, in order."""
        ...

    @property
    def type(self) -> pa.DataType:
        """The result's type."""
        ...

    def __call__(self, columns: Sequence[Any], num_rows: int) -> pa.Array:
        """Evaluate; ``columns`` holds one array (or scalar) a leaf, in order of ``leaves``."""
        ...


class Evaluator(Protocol):
    """Expressions to functions over batches, with Spark's semantics."""

    def compile(
        self, expression: Expression, types: Mapping[Leaf, pa.DataType], functions: Mapping[str, Function] | None = None
    ) -> Compiled:
        """Compile once per plan. UnsupportedExpressionError names a part that can't run here.

        Parameters
        ----------
        expression : Expression
            The expression.
        types : Mapping of Leaf to pyarrow.DataType
            The Arrow types of the leaves.
        functions : Mapping of str to Function
            Functions of plugins, by lower-case name.
        """
        ...


class Apply(Protocol):
    """The core's work on a physical batch: called by the engine, on its worker threads."""

    def __call__(
        self,
        file: int,
        first: int,
        batch: pa.RecordBatch,
        picked: SelectionVector | None = None,
        is_tested: bool = False,
        /,
    ) -> pa.RecordBatch | None:
        """Return the batch to hand out; None: no row left.

        Parameters
        ----------
        file : int
            The file's number in the read.
        first : int
            The physical position of the batch's first row.
        batch : pyarrow.RecordBatch
            The rows, with the columns of the read.
        picked : SelectionVector, optional
            From an engine that left rows out, as `FileRead.selection` specifies: which of the rows from ``first`` on
            the batch has.
        is_tested : bool
            Whether the engine has run `FileRead.tests`.
        """
        ...


class FootersRead(Protocol):
    """Footers of files from elsewhere, which are read once."""

    def schemas(self) -> list[tuple[pa.Schema, int]]:
        """Return the different Arrow schemas, each with the number of its first file, in their order.

        INT96 counts as instants in UTC, as in Spark.
        """
        ...

    def file_schemas(self) -> Iterator[tuple[pa.Schema, NDArray[np.int64]]]:
        """Yield the Arrow schemas, each with the numbers of files that have it; one may come several times."""
        ...

    def statistics(self, schema: pa.Schema, columns: Sequence[Path]) -> Iterator[FilesStatistics]:
        """Yield the statistics of all files, in any order; of a column that a file has in another type there are none.

        Files may have further columns.

        Raises
        ------
        SchemaMismatchError
            If a file can't be read in ``schema``.
        """
        ...


class DataFiles(Protocol):
    """Data files to physical batches, and rows to data files."""

    def read(self, read: FileRead, apply: Apply) -> Iterator[pa.RecordBatch]:
        """Stream the files' batches through ``apply``, files in order, rows in file order, in bounded memory.

        Closing the iterator stops the work. A missing file raises DataFileNotFoundError naming it.
        """
        ...

    def row_counts(self, paths: Sequence[str], sizes: Sequence[int | None]) -> list[int]:
        """Return the number of physical rows of each file, from footers."""
        ...

    def write(self, write: FileWrite, source: pa.Table | pa.RecordBatchReader, apply: Split) -> list[WrittenFile]:
        """Write rows as data files, several at once, in bounded memory.

        Files are synced if the store is a disk, or will be if ``write.syncs`` is given. Rows keep their order within a
        file; those of a table without partitions lie in consecutive runs. After any error, every file that was
        begun is deleted before it is
        raised.
        """
        ...

    def footers(self, paths: Sequence[str]) -> FootersRead:
        """Read the footers of files from elsewhere, many at once.

        Raises
        ------
        DataFileNotFoundError, DataFileError
            For a file that is not there, or is no Parquet file.
        """
        ...

    def describe(
        self, paths: Sequence[str], schema: pa.Schema, statistics: Sequence[Path], *, strict: bool = True
    ) -> list[WrittenFile]:
        """Return what the footers of files from elsewhere report, in the order given.

        Bounds of floating-point columns are left out: a footer does not specify whether there is a NaN. Raises
        SchemaMismatchError for a file whose columns are not those of ``schema``; unless ``strict``, it may have further
        ones.
        """
        ...


class Relation(Protocol):
    """Rows that an engine can produce, once or many times; nothing runs before they are streamed or written."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        ...


class Relations(Protocol):
    """Whole-table algebra, for engines that have it: operations that change rows are written over it.

    An expression's `Column` leaves are the relation's columns by name. A relation that goes into another one or into
    a stream may not be used again.
    """

    @property
    def num_tasks(self) -> int:
        """How many calls of `write` may run at a time."""
        ...

    def scan(self, scan: Any) -> Relation:
        """Return the rows of a planned `Scan`, in its schema."""
        ...

    def from_arrow(self, rows: pa.RecordBatchReader | pa.Table) -> Relation:
        """Return rows that the caller has."""
        ...

    def filter(
        self, relation: Relation, predicate: Expression, functions: Mapping[str, Function] | None = None
    ) -> Relation:
        """Keep the rows for which a predicate is true (not null); ``functions`` are plugins', by lower-case name."""
        ...

    def select(
        self,
        relation: Relation,
        columns: Sequence[tuple[str, Expression]],
        functions: Mapping[str, Function] | None = None,
    ) -> Relation:
        """Compute columns, in order; ``functions`` are plugins', by lower-case name."""
        ...

    def union(self, relations: Sequence[Relation]) -> Relation:
        """Return the rows of all, one relation after the other; their schemas are equal but for nullability."""
        ...

    def stream(self, relation: Relation) -> pa.RecordBatchReader:
        """Return the rows as Arrow batches, in bounded memory.

        Raises
        ------
        UnsupportedOperationError
            If the rows of this engine never are in this process.
        """
        ...

    def order(
        self,
        relation: Relation,
        columns: Sequence[Path],
        order: Literal["zorder", "hilbert", "linear"],
        num_files: int,
        num_rows: int,
    ) -> Relation | None:
        """Return rows in another order, which `write` makes about ``num_files`` files of, one after the other.

        None if the rows of this engine pass this process, which orders them then.

        Parameters
        ----------
        relation : Relation
            The rows.
        columns : sequence of Path
            The columns that they are ordered by.
        order : str
            Along a curve, or ``linear`` for ascending values with nulls first.
        num_files, num_rows : int
            Files and rows, about.
        """
        ...

    def positions(self, relation: Relation, num_files: int, found: Callable[[int], None]) -> RowSets:
        """Collect the positions of rows within their files.

        Parameters
        ----------
        relation : Relation
            Two int64 columns without nulls: the number of a file, and the position of a row in it.
        num_files : int
            How many files there are; numbers are below.
        found : function(int)
            Called with numbers of rows as they are found.
        """
        ...

    def write(
        self,
        engine: Any,
        plan: Any,
        relation: Relation,
        *,
        origin: str,
        data_change: bool = True,
        properties: WriterProperties | None = None,
        task_index: int = 0,
        num_tasks: int = 1,
        in_order: bool = False,
        target_size: int | None = None,
        observe: Callable[[pa.RecordBatchReader], pa.RecordBatchReader] | None = None,
        syncs: list[Callable[[], None]] | None = None,
    ) -> Any:
        """Write rows as data files, or change files, of a table: see `write.files.write_files`.

        Parameters
        ----------
        engine : Engine
            The engine itself.
        plan : WritePlan
            The plan of the table's writes.
        relation : Relation
            The rows.
        origin : str
            As of `write.plan.Origin`; ``changes`` writes change files.
        data_change : bool
            False for rows that the table has already.
        properties : WriterProperties, optional
            Go before the table's properties.
        task_index, num_tasks : int
            Which of how many writes of one transaction this is.
        in_order : bool
            Whether files hold consecutive rows, each full before the next one begins.
        target_size : int, optional
            Bytes of a file, as far as the engine can choose them; else ``delta.targetFileSize``.
        observe : function(RecordBatchReader) -> RecordBatchReader, optional
            Sees the rows on their way, if they are in this process.
        syncs : list of function(), optional
            Takes what waits until the files are synced, as of `FileWrite`; an engine may wait itself instead.

        Returns
        -------
        Written

        Raises
        ------
        SchemaMismatchError, ConstraintViolationError, ExpressionError
            The rows don't fit the table. Every file that was begun is deleted.
        """
        ...


class Spread(Protocol):
    """Runs a function of many paths on other machines, for work on files that needs no rows of them."""

    def __call__(
        self, work: Callable[[pa.Array], Iterator[pa.RecordBatch]], paths: pa.Array, schema: pa.Schema
    ) -> pa.Table:
        """Call a function for parts of an array and return what it yields, in any order.

        Parameters
        ----------
        work : function(string array) -> iterator of RecordBatch
            Pickled, with what it holds. It may be called twice for a part: that has to do no harm.
        paths : string array
            The values that are divided; no nulls.
        schema : pyarrow.Schema
            That of the batches: strings and int64.

        Raises
        ------
        DeltaError
            The error of the function, or EngineError if the machines failed.
        """
        ...


class RemoteRows(Protocol):
    """Facts about rows that other machines read, so that none of them is read in this process."""

    def count(self, scan: Any) -> int:
        """Return the number of rows of a planned `Scan`."""
        ...

    def first(self, scan: Any) -> dict[str, Any] | None:
        """Return one row of a planned `Scan`, by column; None if it has none."""
        ...

    def bounds(self, scan: Any) -> tuple[Any, Any]:
        """Return the least and the greatest value of a planned `Scan` of one column; None without a value."""
        ...
