"""Changes of rows of a table of any format: what DELETE, UPDATE, MERGE and replacing writes need of it.

Files, or other units that hold rows (fragments), are the rows of an Arrow table, and a row is its unit's number in that
table and its physical position. The operations decide which rows change; a format's `TableChanges` finds, drops and
writes them, and commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import pyarrow as pa
from msgspec import Struct, field

from delta_core.engines.engine import Engine
from delta_core.engines.interface import Relation, Relations
from delta_core.engines.writer_properties import WriterProperties
from delta_core.expressions.ast import Expression
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.commit.options import MAX_COMMIT_RETRIES, PostCommit
from delta_core.kernel.plugins.rules import RowCheck
from delta_core.kernels.row_set import RowSets
from delta_core.operations.progress import OperationProgress, ProgressReport
from delta_core.scan.rows import PlannedRows
from delta_core.schema.fields import Path, Schema
from delta_core.schema.types import DataType, StructType, TypeDef

__all__ = [
    "FILE_NUMBER",
    "ChangeBase",
    "ChangeOptions",
    "ChangeTarget",
    "Changed",
    "Dropped",
    "Evolve",
    "TableChanges",
    "Timing",
]

#: The column of a scan with the number of the unit that a row is in.
FILE_NUMBER = "__file_number"
#: From the schema of a table, and a function that returns whether a column may change its type, to the evolved schema.
Evolve = Callable[[Schema, Callable[[Path, DataType, DataType], bool]], StructType]


class ChangeOptions(Struct, frozen=True):
    """How rows are changed.

    Parameters
    ----------
    predicate : str, filters or Expression, optional
        Which rows: those for which it is true. None: all.
    transactions : Mapping of str to int
        Application ids and versions: a version that the table has already changes nothing.
    progress : function(OperationProgress), optional
        Called as rows are found and written.
    writer_properties : WriterProperties, optional
        Of the files that are written.
    user_metadata : str, optional
        Kept in the commit.
    custom_metadata : Mapping of str to object
        Likewise.
    max_commit_retries : int
        How often a lost race is run again.
    post : PostCommit
        The steps after the commit.
    deletion_vectors : bool
        Whether rows are dropped by deletion vectors where the table has them enabled.
    commits_empty : bool
        Whether a change that selects no row is committed too.
    may_widen : function(str, str) -> bool
        Whether schema evolution may change a column of a type to another type, if the table allows that.
    """

    predicate: Any = None
    progress: Callable[[OperationProgress], None] | None = None
    writer_properties: WriterProperties | None = None
    transactions: Mapping[str, int] = {}
    user_metadata: str | None = None
    custom_metadata: Mapping[str, Any] = {}
    max_commit_retries: int = MAX_COMMIT_RETRIES
    post: PostCommit = field(default_factory=PostCommit)
    deletion_vectors: bool = True
    commits_empty: bool = False
    may_widen: Callable[[str, str], bool] = lambda old, new: True


class Changed(Struct, frozen=True):
    """The result of a change of rows.

    Parameters
    ----------
    snapshot : ChangeBase
        The table right after it; as it was if no row was selected.
    metrics : Mapping of str to int
        Named as delta-spark's operation metrics; ``numDeletedRows`` is missing where whole files without statistics
        were removed.
    is_committed : bool
        Whether there was something to commit.
    """

    snapshot: Any
    metrics: Mapping[str, int]
    is_committed: bool = False


class Dropped(Struct, frozen=True):
    """The result of dropping the rows that a predicate selects.

    Parameters
    ----------
    rows : int or None
        The live rows of the units that were removed, and those dropped of other units; None if it is not known.
    copied : int
        Rows of removed units that were written again.
    """

    rows: int | None
    copied: int = 0

    def metrics(self) -> dict[str, int]:
        """Return the operation metrics, named as delta-spark's."""
        deleted = {} if self.rows is None else {"numDeletedRows": self.rows - self.copied}
        return {"numCopiedRows": self.copied, **deleted}


class Timing:
    """The time that a change of rows takes, from when it is made on: `scanned` ends its search for rows."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._scan_ms = 0

    def scanned(self) -> None:
        """Take the time up to now for that of the search."""
        self._scan_ms = _ms_since(self._started)

    def metrics(self) -> dict[str, int]:
        """Return the milliseconds so far, named as delta-spark's operation metrics."""
        took = _ms_since(self._started)
        return {"executionTimeMs": took, "scanTimeMs": self._scan_ms, "rewriteTimeMs": max(0, took - self._scan_ms)}


def _ms_since(start: float) -> int:
    return int((time.perf_counter() - start) * 1000)


class TableChanges(Protocol):
    """Changes of rows in one transaction.

    First `candidates`, `positions` or `numbered_rows` find rows. Then `drop` (or `drop_files`) removes them from their
    units, `write_updated` and `write_inserted` write rows, and `write_changes` records all of it if the table keeps
    records of changes. As a context manager it deletes what was written if an error leaves the block.

    Attributes
    ----------
    progress : ProgressReport
        Reports found and written rows.
    num_updated, num_inserted : int
        Rows written so far.
    """

    progress: ProgressReport
    num_updated: int
    num_inserted: int

    @property
    def base(self) -> ChangeBase:
        """The version that is read, as the table will be defined."""
        ...

    @property
    def relations(self) -> Relations:
        """The engine's relations."""
        ...

    @property
    def changes_definition(self) -> bool:
        """Whether the table gets other columns by the commit."""
        ...

    @property
    def carried(self) -> Mapping[str, str]:
        """Values that updated rows keep: metadata column of a scan to the column of the rows that are written."""
        ...

    @property
    def carried_types(self) -> Mapping[str, pa.DataType]:
        """The Arrow types of `carried`, by metadata column."""
        ...

    @property
    def computed(self) -> frozenset[str]:
        """Columns whose values the table calculates if rows are written without them."""
        ...

    def default_of(self, path: Path, updates: bool = False) -> Expression | None:
        """Return the default of a column; None if it is calculated from the new row."""
        ...

    def check_assigned(self, names: Collection[str], used: Collection[Path] = ()) -> None:
        """Reject assignments to columns whose values only the table assigns.

        ``used``: the columns of the table that the new values are computed of, unless they stay where they are.
        """
        ...

    def whole_units(self, predicate: Expression | None, *, to_remove: bool) -> tuple[pa.Table, int | None] | None:
        """Return the units all of whose rows a predicate selects, if it selects no part of a unit, and their rows.

        None if rows have to be read to find out. The number is None if the table does not store it, and unless the
        units are to be removed without being read. The units count as read.
        """
        ...

    def candidates(self, predicate: Expression | None) -> tuple[pa.Table, int]:
        """Return the units that may hold rows for which a predicate is true, and how many others there are."""
        ...

    def find(self, predicate: Expression | None) -> tuple[pa.Table, RowSets]:
        """Return the units with rows for which a predicate is true, and these rows; both count as read."""
        ...

    def read(self, predicate: Expression | None, files: pa.Table) -> None:
        """Note that the decisions depend on these units, and on the rows for which a predicate is true."""
        ...

    def numbered_rows(
        self, files: pa.Table, predicate: Expression | None, columns: Sequence[str | Path]
    ) -> PlannedRows:
        """Return rows of units with `FILE_NUMBER`, a column of ``files``, and ``_file_row_index``."""
        ...

    def rows(
        self,
        files: pa.Table,
        rows: RowSets | None,
        columns: Sequence[str | Path] | None = None,
        metadata: Sequence[str] = (),
    ) -> PlannedRows:
        """Return rows by position (None: all), in this order, with the metadata columns of `carried` and others."""
        ...

    def positions(self, files: pa.Table, predicate: Expression | None) -> RowSets:
        """Return the physical positions, in each of some units, of the rows for which a predicate is true."""
        ...

    def drop(self, files: pa.Table, deleted: RowSets | None = None, updated: RowSets | None = None) -> None:
        """Drop rows by position in each of the units; `write_updated` writes the updated ones again."""
        ...

    def drop_files(self, files: pa.Table, updated: bool = False) -> None:
        """Remove whole units; ``updated``: `write_updated` writes their rows again."""
        ...

    def drop_where(self, predicate: Expression | None) -> Dropped:
        """Drop the rows for which a predicate is true, all rows without one; what was selected counts as read.

        In the way that takes the format least: it need not find the rows first.
        """
        ...

    def write_updated(self, rows: Relation) -> None:
        """Write rows of the table with new values: the table's columns, but for `computed` ones, and `carried`."""
        ...

    def write_inserted(
        self, rows: Relation, *, task_index: int = 0, num_tasks: int = 1, checks: Sequence[RowCheck] = ()
    ) -> None:
        """Write new rows, which may come in several calls.

        Raises
        ------
        ConstraintViolationError
            A row does not pass one of ``checks``, or of the table's own.
        """
        ...

    def write_changes(self) -> None:
        """Write the records of changes, if the table keeps them."""
        ...

    def metrics(self) -> dict[str, int]:
        """Return the files and rows of what was done so far, named as delta-spark's operation metrics."""
        ...

    def commit(self, options: ChangeOptions, metrics: Mapping[str, int]) -> Changed:
        """Commit what was done.

        Raises
        ------
        CommitConflictError
            Another writer's commit contradicts this one.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...


class ChangeBase(Protocol):
    """One version of a table of any format, as changes of its rows need it."""

    @property
    def schema(self) -> Schema:
        """The columns with their logical types."""
        ...

    @property
    def types(self) -> Mapping[str, TypeDef]:
        """Primitive types that the table may use, by name: `schema.types.KNOWN_TYPES` and the format's own."""
        ...

    @property
    def functions(self) -> Mapping[str, Function]:
        """Functions of plugins, by lower-case name."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine of the table's place."""
        ...

    def latest(self) -> Self:
        """Return the latest version."""
        ...


class ChangeTarget(ChangeBase, Protocol):
    """A version of a table of another format than Delta whose rows can be changed."""

    def has_applied(self, transactions: Mapping[str, int]) -> bool:
        """Whether the table has these versions of applications, or later ones; False for none."""
        ...

    def begin_changes(
        self,
        operation: Literal["DELETE", "UPDATE", "MERGE", "WRITE"],
        parameters: Mapping[str, Any],
        options: ChangeOptions,
        evolve: Evolve | None = None,
    ) -> TableChanges:
        """Begin changes of rows in one transaction.

        Parameters
        ----------
        operation : str
            The name of the operation in the history.
        parameters : Mapping of str to object
            Of the operation.
        options : ChangeOptions
            How rows are written.
        evolve : function, optional
            Returns the schema that the table gets.
        """
        ...
