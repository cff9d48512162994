"""The records that the core and an engine hand each other: requests, and what is returned for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa
from msgspec import Struct, field

from delta_core.expressions.ast import Expression
from delta_core.runtime.structs import PublicStruct
from delta_core.schema.fields import Path
from delta_core.schema.types import BASE_TYPES, StructType, TypeDef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from delta_core.engines.conditions import ColumnTest, RowCondition
    from delta_core.engines.writer_properties import WriterProperties
    from delta_core.kernels.gather import SelectionVector

__all__ = [
    "ActionQuery", "ColumnStatistics", "ColumnsStatistics", "FileIdentity", "FileRead", "FileWrite",
    "FilesStatistics", "FolderFiles", "Listing", "ParquetForm", "PutResult", "RangeRequest", "ReadObserver",
    "RowTest", "Split", "WALKED_FILE", "WrittenFile",
]  # fmt: skip


class Listing(Struct, frozen=True):
    """Names in one directory, sorted bytewise.

    Parameters
    ----------
    names : list of str
        Relative to the directory that was listed.
    sizes, modified_ms : list of int, or None
        Parallel to ``names``; None if the store's cheap listing does not report (require `Storage.stat`).
    tags : list of str, or None
        Entity tags, parallel to ``names``; None if the listing has none.
    is_complete : bool
        Whether no name follows; only a limited listing may be incomplete.
    """

    names: list[str]
    sizes: list[int] | None = None
    modified_ms: list[int] | None = None
    tags: list[str] | None = None
    is_complete: bool = True


#: The columns of `FolderFiles.files`.
WALKED_FILE = pa.schema([("path", pa.string()), ("size", pa.int64()), ("modified_ms", pa.int64())])


class FolderFiles(Struct, frozen=True):
    """Some of the files below a table's root.

    Parameters
    ----------
    files : pyarrow.RecordBatch
        Columns of `WALKED_FILE`: the path from the root, as the store has it, bytes, and ms since the epoch (null if
        the store does not report it). Files of one folder lie together.
    empty : tuple of str
        Folders in which there is nothing; none on stores without folders.
    linked : tuple of str
        Folders and files below the root, to which symbolic links lead that are below it too.
    num_folders : int
        How many folders these files are of.
    links_to_files, links_to_folders : tuple of str
        The symbolic links in these folders; those that lead nowhere count as links to files.
    unnamed : tuple of str
        Files whose names are no UTF-8, so that no log can name them: with halves of surrogate pairs, as Python spells
        them. They are not among ``files``.
    irregular : tuple of str
        The pipes, sockets and devices in these folders.
    """

    files: pa.RecordBatch
    empty: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    num_folders: int = 0
    links_to_files: tuple[str, ...] = ()
    links_to_folders: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    irregular: tuple[str, ...] = ()


class RangeRequest(Struct, frozen=True):
    """Bytes ``[offset, offset + length)`` of a file; ``length`` None reads to its end.

    Parameters
    ----------
    path : str
        Relative to the root, not encoded.
    offset : int
        The first byte.
    length : int or None
        The number of bytes; None reads to the end of the file.
    """

    path: str
    offset: int = 0
    length: int | None = None


PutResult = Literal["created", "exists"]


class FileIdentity(Struct, frozen=True):
    """Which content a name represents: equal for two looks at one content, different for different contents.

    Parameters
    ----------
    size : int
        Bytes.
    tag : str
        The store's entity tag; on disks the file's number and the time of its last change. Empty if a listing has none.
    modified_ms : int, optional
        Modification time, if the tag does not specify it.
    """

    size: int
    tag: str
    modified_ms: int | None = None

    def is_as_listed(self, listed: FileIdentity) -> bool:
        """Whether this is what a listing showed, as far as that reports."""
        same = self.tag == listed.tag if listed.tag else self.modified_ms == listed.modified_ms
        return same and self.size == listed.size


class ActionQuery(Struct, frozen=True):
    """The parts of commits to read.

    Parameters
    ----------
    columns : tuple of str
        The columns of file actions: names of `actions.FILE_COLUMNS`. ``path``, ``dvId``,
        ``version`` and ``line`` are always there.
    partition_keys : tuple of str
        Physical names of partition columns requested as columns ``partition:<name>``.
    kinds : frozenset of str or None
        The kinds of action requested; None for all.
    skip : frozenset of str
        Kinds passed over.
    extra_fields : Mapping of str to tuple of str
        Fields that plugins add to ``add``, ``remove`` or ``cdc``; each is a column ``extra:<name>`` of raw JSON text.
    """

    columns: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    kinds: frozenset[str] | None = None
    skip: frozenset[str] = frozenset()
    extra_fields: Mapping[str, tuple[str, ...]] = {}


class ParquetForm(Struct, frozen=True):
    """How a Parquet file of the log is encoded.

    Parameters
    ----------
    codec : str
        The value of ``delta.parquet.compression.codec``.
    version : str
        The value of ``delta.parquet.format.version``.
    dictionary : tuple of path
        Nested fields (maps: with their keys and values) with few distinct values.
    """

    codec: str = ""
    version: str = "1.0.0"
    dictionary: tuple[tuple[str, ...], ...] = ()


class RowTest(PublicStruct, frozen=True):
    """One condition on the rows of a read, for an engine that can test rows before it decodes their other columns.

    Parameters
    ----------
    columns : tuple of int
        The physical columns that it needs, by their number in `FileRead.columns`.
    select : function(int, int, Mapping of int to Array, int, SelectionVector or None) -> SelectionVector or None
        From a file's number, the position of a row, these columns (as ``apply`` gets them) of some rows from there on,
        how many rows these are, and which ones (None: each one): those of them that pass, None for all. Raises what a
        failed check of the table raises.
    values : ColumnTest or RowCondition, optional
        The same condition as tests of the values of columns, if it is made of these: for an engine that tests values as
        it decodes them.
    """

    columns: tuple[int, ...]
    select: Callable[[int, int, Mapping[int, pa.Array], int, SelectionVector | None], SelectionVector | None]
    values: ColumnTest | RowCondition | None = None


class ReadObserver(Protocol):
    """Receives the facts of a read while it runs, on the threads of the engine; used by explanations only."""

    def row_groups(self, file: int, total: int, left: int, size_bytes: int) -> None:
        """Note the row groups of a file, or of a part of it: all, those not pruned, stored bytes of their columns."""
        ...

    def pages(self, total: int, decoded: int) -> None:
        """Note the data pages of column chunks that were read, and those of them whose values were decoded."""
        ...

    def decoded(self, number: int, rows: int, took_ms: float) -> None:
        """Note that values were tested as they were decoded: the test's number, the rows it had, the time of both."""
        ...


class FileRead(PublicStruct, frozen=True):
    """One read of many data files.

    Parameters
    ----------
    paths : list of str
        One per file, percent-decoded.
    sizes : list of int or None
        Bytes, as the log specifies.
    columns : StructType
        The physical columns requested, in order; nested projection by leaving out fields. A field's Parquet id
        is in its metadata under `schema.FIELD_ID`.
    match : "name" or "id"
        How columns are found in a file.
    schema : pyarrow.Schema
        The Arrow type that each physical column has when it reaches ``apply``: the engine casts what the file
        stores (narrower ints, INT96, millis, legacy decimals) or rejects with DataFileError, and fills columns
        and nested fields that the file lacks with nulls.
    prune : Expression or None
        Over FileStatistic leaves: a row group for which it is false (not null) is skipped. Positions stay true.
    batch_rows : int
        The largest batch, in rows.
    encoded : bool
        Whether string columns may reach ``apply`` as ``dictionary<int32, string>``; the engine decides, batch by
        batch. ``apply`` then decodes only the rows it keeps.
    keeps_codes : bool
        Whether ``apply`` returns codes as such: they save the whole work on the strings, not a part of it.
    types : Mapping
        The meaning of the primitive types' names; one with a ``decode`` is read whole and decoded.
    opened : function(int, int), optional
        Called on the worker thread with a file's number and its physical rows, before its first batch.
    selection : function(int, int, int), optional
        From a file's number, a row's position and a number of rows, a mask of those that are requested at all (None:
        all). For an engine that can leave out rows as it decodes; ``apply`` drops them for one that can't.
    tests : tuple of RowTest
        Conditions on the rows that are requested, in the order in which they are to run: each sees those rows alone
        that passed the ones before. An engine that runs them reports it to ``apply``, which otherwise runs them itself.
    tested_only : frozenset of int
        Physical columns that nothing but ``tests`` looks at: a reader that runs those may return nulls in their place.
    apply_files : function(int, NDArray[int64], RecordBatch) -> RecordBatch or None, optional
        Replaces ``apply`` if an engine reads whole files together: takes the first file's number, if the rows
        of each of them end in the batch, and a batch of all their rows. It makes ``opened`` needless for these files.
    apply_passing : function(int, NDArray[int64], RecordBatch) -> RecordBatch or None, optional
        The same for a batch of those rows of files alone that are requested and pass all ``tests``. None if the
        positions of rows matter.
    requested : function(int, int) -> (SelectionVector or None, int64) or None, optional
        From the number of the first of neighbouring files to the one after the last: which of their rows are
        requested (None: all), and how many rows each file has by the log; None if that is in the files alone.
        It is there if rows of any file are dropped.
    select_files : function, optional
        From the first file's number, where the requested rows of each of neighbouring files end (int64), the columns of
        ``tests`` by number and how many rows these are: a SelectionVector of the rows that pass all ``tests``, None for
        all. It is there if ``apply_passing`` is.
    most_rows : int, optional
        How many of a file's requested rows are needed at most, the first ones; an engine may return all. Never with
        ``tests``.
    most_passing : int, optional
        How many of a file's rows that pass ``tests`` are needed at most, the first ones; an engine may return all.
    observer : ReadObserver, optional
        Called with the facts of each file that is opened; an engine may ignore it.
    beside_write : bool
        Whether all rows are written again as they come: the write takes a part of the threads, and memory too.
    is_collected : bool
        Whether all batches are in memory together in the end: to decode a large row group part by part saves none.
    """

    paths: list[str]
    sizes: list[int | None]
    columns: StructType
    match: Literal["name", "id"]
    schema: pa.Schema
    prune: Expression | None = None
    batch_rows: int = 131_072
    encoded: bool = False
    keeps_codes: bool = False
    types: Mapping[str, TypeDef] = field(default_factory=lambda: BASE_TYPES)
    opened: Callable[[int, int], None] | None = None
    selection: Callable[[int, int, int], SelectionVector | None] | None = None
    tests: tuple[RowTest, ...] = ()
    tested_only: frozenset[int] = frozenset()
    apply_files: Callable[[int, NDArray[np.int64], pa.RecordBatch], pa.RecordBatch | None] | None = None
    apply_passing: Callable[[int, NDArray[np.int64], pa.RecordBatch], pa.RecordBatch | None] | None = None
    requested: Callable[[int, int], tuple[SelectionVector | None, NDArray[np.int64]] | None] | None = None
    select_files: Callable[[int, NDArray[np.int64], Mapping[int, pa.Array], int], SelectionVector | None] | None = None
    most_rows: int | None = None
    most_passing: int | None = None
    observer: ReadObserver | None = None
    beside_write: bool = False
    is_collected: bool = False

    @property
    def tested_columns(self) -> list[int]:
        """The physical columns that ``tests`` look at, in the order of the tests."""
        return list(dict.fromkeys(column for test in self.tests for column in test.columns))


#: Called by the engine, on its worker threads, with the number of the batch's first row in the whole write and a batch
#: as the user passed it; returns physical batches (`FileWrite.schema`), each with its partition's number.
Split = Callable[[int, pa.RecordBatch], "Sequence[tuple[int, pa.RecordBatch]]"]


class FileWrite(PublicStruct, frozen=True):
    """One write of many data files.

    Parameters
    ----------
    schema : pyarrow.Schema
        Physical columns; a field with a Parquet id has it in its metadata as ``PARQUET:field_id``, at every level.
    name : function(int) -> str
        From a partition's number, the path of a new file of it, relative to the root and not encoded. Called once a
        file, on any thread.
    statistics : tuple of Path
        The physical leaves to measure; a list, map or variant is a leaf.
    target_file_size : int
        Bytes; a file is closed once it is about that big.
    partitioned : bool
        Whether ``apply`` may answer with several partitions.
    in_order : bool
        Whether each partition has one file at a time, which holds consecutive rows and is full before the next one
        begins. The rows are then written by the caller's thread alone.
    beside_reads : bool
        Whether the rows come from a read that runs meanwhile on threads of its own. Less memory is then worth more than
        further threads: row groups may be smaller.
    syncs : list of function(), optional
        If given, files may be returned before they are synced. The engine then appends a function that waits until they
        are, and raises EngineError if they can't be; the caller calls it before a commit names the files.
    """

    schema: pa.Schema
    name: Callable[[int], str]
    statistics: tuple[Path, ...]
    properties: WriterProperties
    target_file_size: int
    partitioned: bool = False
    in_order: bool = False
    beside_reads: bool = False
    syncs: list[Callable[[], None]] | None = None


class ColumnStatistics(Struct, frozen=True):
    """The statistics of one leaf in one file.

    Parameters
    ----------
    null_count : int or None
        Rows if it is null, rows with a null parent counted.
    low, high : int, float, bytes or None
        Bounds as Parquet stores them: days, microseconds, unscaled decimals, UTF-8 bytes in byte order. None if
        there is no value, or a NaN among them, or the type has no order.
    """

    path: Path
    null_count: int | None
    low: Any = None
    high: Any = None


class WrittenFile(Struct, frozen=True):
    """A data file that is whole on its store; ``modified_ms`` is its modification time, ms since the epoch."""

    path: str
    partition: int
    size: int
    modified_ms: int
    num_rows: int
    statistics: tuple[ColumnStatistics, ...]


class ColumnsStatistics(Struct, frozen=True):
    """The statistics of one column of many files: see `ColumnStatistics`.

    Parameters
    ----------
    path : Path
        The column, by physical names.
    null_counts : pyarrow.Array
        int64[n_files]; null if unknown.
    lows, highs : pyarrow.Array
        [n_files], null if unknown: int64, double, or bytes (of decimals: two's complement, big-endian).
    """

    path: Path
    null_counts: pa.Array
    lows: pa.Array
    highs: pa.Array


class FilesStatistics(PublicStruct, frozen=True):
    """The statistics of some of the files of a `FootersRead`.

    Parameters
    ----------
    files : int64, **shape (n_files,)**
        Their numbers.
    num_rows : int64, **shape (n_files,)**
    columns : tuple of ColumnsStatistics
        Of the columns that the files have.
    """

    files: NDArray[np.int64]
    num_rows: NDArray[np.int64]
    columns: tuple[ColumnsStatistics, ...]
