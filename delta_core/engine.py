"""The engine seam: what does I/O and evaluates. The core says what; an engine says how.

Results are pyarrow objects throughout. Paths of the log are relative to the table's root or absolute URIs;
they are percent-decoded before they reach an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import pyarrow as pa

from delta_core.expressions.ast import Expression, Leaf
from delta_core.kernels.json_actions import ParsedActions
from delta_core.rules import Function
from delta_core.types import BASE_TYPES, StructType, TypeDef

__all__ = [
    "ActionQuery", "CheckpointHandle", "Compiled", "DataFiles", "Engine", "Evaluator", "FileRead", "Listing", "LogFiles",
    "ParsedActions", "RangeRequest", "Relations", "Storage", "PutResult",
]  # fmt: skip

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Listing:
    """Names in one directory, sorted bytewise.

    Parameters
    ----------
    names : list of str
        Relative to the directory that was listed.
    sizes, modified_ms : list of int, or None
        Parallel to ``names``; None where the store's cheap listing does not tell (ask `Storage.stat`).
    """

    names: list[str]
    sizes: list[int] | None = None
    modified_ms: list[int] | None = None


@dataclass(frozen=True)
class RangeRequest:
    """Bytes ``[offset, offset + length)`` of a file; ``length`` None reads to its end."""

    path: str
    offset: int = 0
    length: int | None = None


PutResult = Literal["created", "exists"]


class Storage(Protocol):
    """Bytes under one table's root.

    Every method takes paths relative to the root, or absolute URIs or paths. A missing file raises
    FileNotFoundError; any other failure of the backend raises EngineError with the backend's as cause.
    """

    root: str

    def list_from(self, directory: str, start: str = "") -> Listing:
        """List a directory's files whose name is ``>= start``, sorted, without descending.

        A missing directory gives an empty listing. A store that lists in pages fetches no page below ``start``.
        """
        ...

    def stat(self, paths: Sequence[str]) -> list[tuple[int, int]]:
        """Return (size, modification time in ms) of each file, asked concurrently."""
        ...

    def read(self, requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        """Read ranges, in the order asked.

        At least 32 calls are in flight on a remote store. Ranges of one file that lie close are fetched by one call.
        """
        ...

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access; ``size``, where known, saves a call."""
        ...

    def local_path(self, path: str) -> str | None:
        """Return the path on this machine's disk, None on any other store."""
        ...

    def uri(self, path: str) -> str:
        """Return the absolute URI or path under which users and other engines find the file."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create the file whole, or report that it exists; never overwrite, never leave a part visible."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write the file whole, replacing it."""
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; a missing one is no error."""
        ...


@dataclass(frozen=True)
class ActionQuery:
    """What to read of commits.

    Parameters
    ----------
    columns : tuple of str
        The columns of file actions: names of `actions.FILE_COLUMNS`. ``path``, ``dvId``,
        ``version`` and ``line`` are always there.
    partition_keys : tuple of str
        Physical names of partition columns wanted as columns ``partition:<name>``.
    kinds : frozenset of str or None
        The kinds of action wanted; None for all.
    skip : frozenset of str
        Kinds passed over.
    extra_fields : Mapping of str to tuple of str
        Fields that plugins add to ``add``, ``remove`` or ``cdc``; each is a column ``extra:<name>`` of raw JSON text.
    """

    columns: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    kinds: frozenset[str] | None = None
    skip: frozenset[str] = frozenset()
    extra_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
        """Return the type of a nested field as the file stores it, None where it has none."""
        ...

    def may_hold(self, group: int, action: str) -> bool:
        """Whether a group may hold a row of this action; False only when the footer proves that it does not."""
        ...

    def all_null(self, group: int, path: tuple[str, ...]) -> bool:
        """Whether the footer proves that a nested field (no list or map) is null in every row of a group."""
        ...

    def read(
        self, group: int, columns: Sequence[tuple[str, ...]], dictionary: Sequence[tuple[str, ...]] = ()
    ) -> list[pa.Array]:
        """Read paths such as ``("add", "path")`` of one group, an array each with one row per row of the group.

        A row that is not of the action is null. Absent paths give null columns of their `FILE_COLUMNS` type.
        Columns in ``dictionary`` come with their strings (a map's keys and values) dictionary-encoded.
        """
        ...


class LogFiles(Protocol):
    """Actions of commits and checkpoints as Arrow."""

    def read_commits(self, files: Sequence[Any], query: ActionQuery) -> ParsedActions:
        """Read `plans.LogFile` commits or compacted files in the order given; all fetched concurrently.

        Raises LogError naming file and offset for text that is not a sequence of JSON actions.
        """
        ...

    def open_checkpoints(self, paths: Sequence[str], sizes: Sequence[int | None]) -> list[CheckpointHandle]:
        """Open checkpoint parts or sidecars (paths relative to the root), footers fetched concurrently.

        Raises CheckpointError naming the file if one can't be read, FileNotFoundError if it is gone.
        """
        ...


class Compiled(Protocol):
    """An expression ready to run on arrays."""

    leaves: tuple[Leaf, ...]
    type: pa.DataType

    def __call__(self, columns: Sequence[Any], num_rows: int) -> pa.Array:
        """Evaluate; ``columns`` holds one array (or scalar) a leaf, in order of ``leaves``."""
        ...


class Evaluator(Protocol):
    """Expressions to functions over batches, with Spark's semantics."""

    def compile(
        self, expression: Expression, types: Mapping[Leaf, pa.DataType], functions: Mapping[str, Function] = ...
    ) -> Compiled:
        """Compile once per plan. UnsupportedExpressionError names a part that can't run here."""
        ...


#: Called by the engine, on its worker threads, with the file's number in the read, the physical position of
#: the batch's first row, and the physical batch; returns the batch to hand out (None: no row left).
Apply = Callable[[int, int, pa.RecordBatch], "pa.RecordBatch | None"]


@dataclass(frozen=True)
class FileRead:
    """One read of many data files.

    Parameters
    ----------
    paths : list of str
        One per file, percent-decoded.
    sizes : list of int or None
        Bytes, as the log says.
    columns : StructType
        The physical columns wanted, in order; nested projection by leaving out fields. A field's Parquet id
        stands in its metadata under `schema.FIELD_ID`.
    match : "name" or "id"
        How columns are found in a file.
    schema : pyarrow.Schema
        The Arrow type that each physical column has when it reaches ``apply``: the engine casts what the file
        stores (narrower ints, INT96, millis, legacy decimals) or refuses with DataFileError, and fills columns
        and nested fields that the file lacks with nulls.
    prune : Expression or None
        Over FileStatistic leaves: a row group for which it is false (not null) is skipped. Positions stay true.
    batch_rows : int
        The largest batch, in rows.
    encoded : bool
        Whether string columns may reach ``apply`` as ``dictionary<int32, string>``; the engine decides, batch by
        batch. ``apply`` then decodes only the rows it keeps.
    types : Mapping
        What the primitive types' names mean; one with a ``decode`` is read whole and decoded.
    opened : function(int, int), optional
        Called on the worker thread with a file's number and its physical rows, before its first batch.
    """

    paths: list[str]
    sizes: list[int | None]
    columns: StructType
    match: Literal["name", "id"]
    schema: pa.Schema
    prune: Expression | None = None
    batch_rows: int = 131_072
    encoded: bool = False
    types: Mapping[str, TypeDef] = field(default_factory=lambda: BASE_TYPES)
    opened: Callable[[int, int], None] | None = None


class DataFiles(Protocol):
    """Data files to physical batches."""

    def read(self, read: FileRead, apply: Apply) -> Iterator[pa.RecordBatch]:
        """Stream the files' batches through ``apply``, files in order, rows in file order, in bounded memory.

        Closing the iterator stops the work. A missing file raises DataFileNotFoundError naming it.
        """
        ...

    def row_counts(self, paths: Sequence[str], sizes: Sequence[int | None]) -> list[int]:
        """Return the number of physical rows of each file, from footers."""
        ...


class Relations(Protocol):
    """Whole-table algebra, for engines that have it; operations that change rows are written over it."""


@dataclass(frozen=True)
class Engine:
    """What an entry point of the group ``delta_core.engines`` makes of ``(uri, storage_options)``."""

    name: str
    storage: Storage
    logs: LogFiles
    data: DataFiles
    evaluator: Evaluator
    relations: Relations | None = None
    map: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = lambda f, items: [f(x) for x in items]
