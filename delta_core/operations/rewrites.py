"""Rows of a table of any format written again without being changed: what compaction and clustering need of it.

Files, or other units that hold rows (fragments), are the rows of an Arrow table with the column ``size``, bytes. The
operation decides which units are written together, and when they are committed; a format's `TableRewrites` reads,
writes and commits them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from numpy.typing import NDArray

from delta_core.engines.writer_properties import WriterProperties
from delta_core.expressions.ast import Expression
from delta_core.kernel.commit.options import MAX_COMMIT_RETRIES, PostCommit
from delta_core.operations.changes import ChangeBase
from delta_core.operations.progress import OperationProgress
from delta_core.operations.row_order import Order
from delta_core.scan.rows import PlannedRows
from delta_core.schema.fields import Path

__all__ = [
    "Ints",
    "LiveUnits",
    "OptimizeOptions",
    "RewriteTarget",
    "Rewritten",
    "RowOrder",
    "Syncs",
    "TableRewrites",
    "Units",
]

Ints = NDArray[np.int64]
#: Takes what waits until written files are synced.
Syncs = list[Callable[[], None]]


class OptimizeOptions(Struct, frozen=True):
    """Which files are written again, and how.

    Parameters
    ----------
    predicate : str, filters or Expression, optional
        Over partition columns: only files of these partitions.
    prunes_files : bool
        Whether the predicate may name other columns too: files stay out that can't hold such rows. Of Delta tables.
    target_size : int, optional
        Bytes of a file; else what the table specifies, as ``delta.targetFileSize``.
    purge : bool
        Write every file with deleted rows again, and no other.
    order : str, optional
        Write all rows of each partition again in another order: ``zorder`` or ``hilbert`` along a curve through
        ``order_by``, ``linear`` sorted by it.
    order_by : sequence of str
        Columns, dotted for fields of structs.
    max_spill_size : int, optional
        Bytes of memory for rows that are ordered; more go by way of temporary files.
    max_temp_directory_size : int, optional
        Bytes of these files; no limit unless given.
    choose : function(pyarrow.Table) -> sequence of int64 arrays, optional
        From the live units (of Delta: columns of `intents.READ_FILE`), the bins of unit numbers to write again, each
        within one partition; in place of the choice made here.
    describe : function(pyarrow.Table) -> pyarrow.Table, optional
        Called with the units of each bin that was written; returns what is committed, for example with tags.
    parameters : Mapping
        Facts in the history beside, or in place of, the usual operation parameters.
    max_concurrent_tasks : int, optional
        How many groups of files are written at a time; by default the engine's number of cores.
    min_commit_interval : float, optional
        Seconds after which what is done is committed; 0: each group by itself. None: everything in one commit.
    commit_size : int, optional
        Bytes of files written again after which what is done is committed too.
    writer_properties : WriterProperties, optional
        How the Parquet files are encoded; goes before the table's properties.
    progress : function(OperationProgress), optional
        Called after each group.
    transactions : Mapping of str to int
        Versions of applications that the commit records.
    custom_metadata : Mapping
        Further fields of ``commitInfo``.
    max_commit_retries : int
        How often a lost race is run again.
    post : PostCommit
        The upkeep that follows the commit.
    """

    predicate: Any = None
    prunes_files: bool = False
    target_size: int | None = None
    purge: bool = False
    order: Order | None = None
    order_by: Sequence[str] = ()
    max_spill_size: int | None = None
    max_temp_directory_size: int | None = None
    choose: Callable[[pa.Table], Sequence[Ints]] | None = None
    describe: Callable[[pa.Table], pa.Table] | None = None
    parameters: Mapping[str, Any] = {}
    max_concurrent_tasks: int | None = None
    min_commit_interval: float | None = None
    commit_size: int | None = None
    writer_properties: WriterProperties | None = None
    progress: Callable[[OperationProgress], None] | None = None
    transactions: Mapping[str, int] = {}
    custom_metadata: Mapping[str, Any] = {}
    max_commit_retries: int = MAX_COMMIT_RETRIES
    post: PostCommit = field(default_factory=PostCommit)


class Units(Struct, frozen=True):
    """Units of a version that may be written again.

    Parameters
    ----------
    table : pyarrow.Table
        One row each: ``size`` in bytes, and what the format needs to read, remove and find them.
    partitions : int64[n]
        Equal for units whose rows may be in one unit.
    order : int64[n]
        The numbers of the units, those of a partition in a row, neighbours beside each other.
    deleted : float64[n]
        The share of its rows that are deleted; 1 if it is not known.
    """

    table: pa.Table
    partitions: Ints
    order: Ints
    deleted: NDArray[np.float64]


class RowOrder(Struct, frozen=True):
    """An order of rows, and what they become.

    Parameters
    ----------
    columns : sequence of Path
        The columns that rows are ordered by.
    order : str
        Along a curve, or ``linear`` for ascending values with nulls first.
    num_files, num_rows : int
        Files and rows, about.
    """

    columns: Sequence[Path]
    order: Order
    num_files: int
    num_rows: int


class Rewritten(Protocol):
    """Units that are whole on their store and not yet part of the table."""

    @property
    def adds(self) -> pa.Table:
        """The units, one row each, with ``size`` in bytes."""
        ...

    @property
    def num_rows(self) -> int:
        """Their rows."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, as storage takes them."""
        ...

    def cleanup(self) -> None:
        """Delete the files: they are not going to be committed."""
        ...


class LiveUnits(Protocol):
    """The units of the latest known version."""

    def have(self, units: pa.Table) -> bool:
        """Whether all of these units are live, with the same rows."""
        ...

    def now(self, units: pa.Table) -> pa.Table:
        """Return those of these units that are live, as they are now: with other deleted rows, perhaps."""
        ...


W = TypeVar("W", bound=Rewritten)


class TableRewrites(Protocol[W]):
    """Rows written again, in one or several commits.

    Its methods, but for `commit`, `follow` and `live`, are called by several threads.
    """

    @property
    def base(self) -> ChangeBase:
        """The version that units are read of: the one it began with, then that of the last commit, or of `follow`."""
        ...

    @property
    def num_tasks(self) -> int:
        """How many groups of units can be written at a time."""
        ...

    @property
    def is_spread(self) -> bool:
        """Whether rows stay on other machines, which order them too."""
        ...

    @property
    def target_size(self) -> int:
        """Bytes of a unit."""
        ...

    @property
    def in_doubt(self) -> bool:
        """Whether the last commit may have landed: then nothing that it names is deleted."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """Further facts of the commits for the metrics of the operation, such as the indices that they dropped."""
        ...

    def check_predicate(self, predicate: Expression) -> None:
        """Reject a predicate that selects parts of units, as these are written whole.

        Raises
        ------
        InvalidArgumentError
            If it does.
        """
        ...

    def order_columns(self, names: Sequence[str]) -> tuple[Path, ...]:
        """Return columns that rows can be ordered by, within a partition.

        Raises
        ------
        InvalidArgumentError
            For a column whose value is the same in all rows of a unit.
        """
        ...

    def units(self, predicate: Expression | None) -> Units:
        """Return the units that a predicate selects, all without one."""
        ...

    def partitions(self, units: pa.Table) -> Ints:
        """Return the partitions of some units, as `Units.partitions`."""
        ...

    def num_rows(self, units: pa.Table) -> int:
        """Return the rows of units as far as they are known without reading them, deleted ones too."""
        ...

    def deletions(self, units: pa.Table) -> tuple[int, int]:
        """Return how many of the units have deleted rows, and how many rows these are."""
        ...

    def column_rows(self, units: pa.Table | None, columns: Sequence[Path]) -> PlannedRows:
        """Return some columns of the rows of units, of all without any."""
        ...

    def moved(self, units: pa.Table, *, numbered: bool = False) -> pa.RecordBatchReader:
        """Return the rows of units as `write_rows` takes them, with what they carry along (row ids).

        ``numbered``: with the column `FILE_NUMBER`, the number of the row's unit in the table.
        """
        ...

    def write(self, units: pa.Table, syncs: Syncs) -> W:
        """Write the rows of units again, in their order; the units of a bin become one, or as few as are needed."""
        ...

    def write_ordered(self, units: pa.Table, order: RowOrder, syncs: Syncs) -> W | None:
        """Write the rows of units in another order; None if the caller has to order them (`moved`, `write_rows`)."""
        ...

    def write_rows(self, rows: pa.Table, syncs: Syncs) -> W:
        """Write rows of `moved` to one unit, or as few as are needed, in this order."""
        ...

    def join(self, parts: Sequence[W]) -> W:
        """Return what several calls wrote as that of one."""
        ...

    def described(self, written: W, describe: Callable[[pa.Table], pa.Table]) -> W:
        """Return the same with other facts of the units."""
        ...

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files that no commit names."""
        ...

    def live(self, columns: Sequence[str]) -> LiveUnits:
        """Return the units of `base`; ``columns`` are those of the tables that are looked up."""
        ...

    def follow(self) -> bool:
        """Take the latest version as `base`; return whether it has the same definition: columns, features, rules."""
        ...

    def commit(
        self, done: Sequence[tuple[pa.Table, W]], syncs: Syncs, options: OptimizeOptions, metrics: Mapping[str, int]
    ) -> int:
        """Replace units by what was written for them, and return the attempts; `base` is the new version.

        Parameters
        ----------
        done : sequence of (pyarrow.Table, Rewritten)
            Units, and what replaces them.
        syncs : list of function()
            Waits until the files are synced.
        options : OptimizeOptions
            Of the first commit with its ``transactions``.
        metrics : Mapping of str to int
            For the history.

        Raises
        ------
        MetadataChangedError, ProtocolChangedError
            Another writer changed the definition.
        CommitConflictError
            Another writer changed the units; they are written again as they are now.
        """
        ...


class RewriteTarget(ChangeBase, Protocol):
    """A version of a table of another format than Delta whose rows can be written again."""

    def has_applied(self, transactions: Mapping[str, int]) -> bool:
        """Whether the table has these versions of applications, or later ones; False for none."""
        ...

    def begin_rewrites(self, parameters: Mapping[str, Any], options: OptimizeOptions) -> TableRewrites[Any]:
        """Begin to write rows again.

        Parameters
        ----------
        parameters : Mapping of str to object
            Of the operation, in the history.
        options : OptimizeOptions
            How rows are written.
        """
        ...
