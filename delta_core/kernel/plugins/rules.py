"""Rules: what a feature requires of a scan, a write or a commit. A closed set of frozen records.

Plugins return rules from hooks; the core composes them once per scan, write or attempt. A rule that
touches rows holds expressions, so that every engine can run it; functions over arrays touch file tables
and descriptors only. Functions are module-level, so that rules pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.expressions.ast import Expression
from delta_core.runtime.structs import PublicStruct
from delta_core.schema.types import DataType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.kernels.row_set import RowSet, RowSets

__all__ = [
    "ActionColumn", "ChangeCapture", "ChecksumField", "ColumnEncoding",
    "CommitInfoField", "CommitRule", "CommitSummary", "CommitTimestamp", "EncodedRows", "RemainingFilesCheck",
    "ExtraAction",
    "FileReference", "FileRequirement", "FillColumn", "HiddenColumn", "MetadataColumn", "ReadCheck",
    "ReadRule", "RemoveRows", "RowCheck", "RowFilter", "RowSelector", "VECTOR_LOCATION", "VectorBytes",
    "WriteRule",
]  # fmt: skip

#: The result of RowSelector.locate: one row a vector. ``file`` is the row in the file table; ``path`` is
#: percent-decoded (relative to the table's root, or absolute), null if ``data`` holds the bytes themselves.
VECTOR_LOCATION = pa.schema(
    [
        pa.field("file", pa.int32(), False),
        pa.field("path", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("data", pa.binary()),
        pa.field("cardinality", pa.int64()),
    ]
)


# --- reading -------------------------------------------------------------------------------


class VectorBytes(PublicStruct, frozen=True):
    """Vectors of dropped rows within one piece of bytes.

    Parameters
    ----------
    data : bytes-like
        The values at their places.
    num_files : int
        How many files there are.
    files, starts, sizes : int64[n]
        Of each vector: the number of its file, and where its bytes lie in ``data``.
    cardinalities : int64[n]
        How many rows it drops, -1 if that is not known.
    """

    data: Any
    num_files: int
    files: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    cardinalities: NDArray[np.int64]


class RowSelector(PublicStruct, frozen=True):
    """Drop rows of a file by position.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    columns : tuple of str
        The file table's columns that ``locate`` needs, e.g. ``("deletionVector",)``.
    locate : function(pyarrow.Table) -> pyarrow.Table
        From the file table, where each file's vector lies (`VECTOR_LOCATION`); files without one have no row.
    decode : function(bytes-like, cardinality: int or None, where: str) -> RowSet
        From the bytes of ``[offset, offset + length)`` (or ``data``), the rows that are *dropped*.
    decode_all : function(VectorBytes) -> (RowSets, bool[n]), optional
        The same for many vectors at once, and which of them were read; `decode` is called for each of the others.
    """

    feature: str
    columns: tuple[str, ...]
    locate: Callable[[pa.Table], pa.Table]
    decode: Callable[[Any, int | None, str], RowSet]
    decode_all: Callable[[VectorBytes], tuple[RowSets, NDArray[np.bool_]]] | None = None


class RowFilter(Struct, frozen=True):
    """Keep only rows for which the expression is true (not null). May prune by statistics too.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    expression : Expression
        The condition.
    """

    feature: str
    expression: Expression


class ReadCheck(Struct, frozen=True):
    """Fail the scan on a row for which the expression is false; null passes.

    The columns it needs are read even if the user did not request them, and no filter hides rows from it
    (rows dropped by a RowSelector are not checked).

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    name : str
        The name of the check.
    expression : Expression
        The condition.
    message : str
        The text of the error.
    """

    feature: str
    name: str
    expression: Expression
    message: str


class MetadataColumn(Struct, frozen=True):
    """A column that users may request by name in ``metadata=``; it never shadows a column of the table.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    name : str
        The name.
    type : DataType
        Its type.
    expression : Expression
        The value.
    identifies : bool
        Whether the values are stable ids of rows while the feature is active: whole numbers, unique in the table.
        Conversions keep them if a `HiddenColumn` carries them, and `AttemptView.reported` then has their bounds under
        the name.
    """

    feature: str
    name: str
    type: DataType
    expression: Expression
    identifies: bool = False


ReadRule = Union[RowSelector, RowFilter, ReadCheck, MetadataColumn]


class ColumnEncoding(Struct, frozen=True):
    """Store a column in another form: its values are encoded when files are written, and decoded when they are read.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it; one that readers need.
    column : tuple of str
        The logical path of the column: a top-level column of a primitive type that does not partition the table.
    stored : DataType
        The primitive type that files store.
    encode : Expression
        The stored form, over the column, whose values it has then.
    decode : Expression
        The values, over the column, which has the stored form then. Null is stored as null, and no value is, so that
        statistics of nulls are those of the values.
    statistics : bool
        Whether the log may show the least and the greatest value of each file, in plain form, to skip files by. The
        Arrow engine decodes new files once for it; files that Spark writes have no bounds.
    """

    feature: str
    column: tuple[str, ...]
    stored: DataType
    encode: Expression
    decode: Expression
    statistics: bool = False


class CommitTimestamp(Struct, frozen=True):
    """Commit times come from a field of ``commitInfo`` at and above a version, from file times below.

    ``enablement_version`` 0 and ``enablement_timestamp_ms`` None: for the table's whole life.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    field : str
        The field of ``commitInfo``, in milliseconds since the epoch.
    enablement_version : int
        The first version whose commit has the field.
    enablement_timestamp_ms : int or None
        The time of that version, in milliseconds since the epoch.
    """

    feature: str
    field: str
    enablement_version: int = 0
    enablement_timestamp_ms: int | None = None


# --- writing -------------------------------------------------------------------------------


class FillColumn(Struct, frozen=True):
    """Compute a column that the written rows lack (or only its nulls, or every row).

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    column : tuple of str
        The logical path of the column.
    expression : Expression
        The value.
    when : str
        ``absent``: if the rows lack the column; ``null``: for its nulls too; ``always``: for every row.
    report_bounds : bool
        Whether attempts get the least and the greatest value that was generated.
    exclusive : bool
        Whether values come from here alone: rows of users that contain the column are rejected.
    """

    feature: str
    column: tuple[str, ...]
    expression: Expression
    when: Literal["absent", "null", "always"] = "absent"
    report_bounds: bool = False
    exclusive: bool = False


class HiddenColumn(Struct, frozen=True):
    """A physical column that is not in the schema; files without a value of it lack it.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    name : str
        The physical name.
    type : DataType
        Its type.
    expression : Expression
        The value.
    on_rewrite : str
        Of rows that are moved to another file: ``carry`` their values along, or ``recompute`` them.
    field_id : int or None
        The id of the Parquet field.
    carries : str
        With ``carry``: the metadata column that returns the values; rows that are moved without it are rejected.
    on_update : str
        Of carried values, for rows that get new values in some columns: ``carry`` them along too, or ``clear`` them, so
        that these rows have what new rows have. Values that are recomputed are computed from the new values.
    """

    feature: str
    name: str
    type: DataType
    expression: Expression
    on_rewrite: Literal["carry", "recompute"] = "carry"
    field_id: int | None = None
    carries: str = ""
    on_update: Literal["carry", "clear"] = "carry"


class RowCheck(Struct, frozen=True):
    """Reject rows for which the expression is not true.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    name : str
        The name of the constraint.
    expression : Expression
        The condition.
    null_passes : bool
        Whether null is let through.
    sql : str
        The condition as its author wrote it, for messages.
    given : tuple of str, optional
        Check only if the written rows contain this column: it was not filled.
    """

    feature: str
    name: str
    expression: Expression
    null_passes: bool = False
    sql: str = ""
    given: tuple[str, ...] | None = None


class FileRequirement(Struct, frozen=True):
    """The requirements on each written file; requirements of several features unite.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    statistics_columns : tuple of Path
        Columns that must have statistics.
    materialize_partition_columns : bool
        Whether files contain the partition columns.
    num_records : bool
        Whether statistics must have ``numRecords``.
    random_prefix : bool
        Whether names of files begin with a random folder.
    field_ids : bool
        Whether Parquet fields carry their ids.
    folder : str
        The folder of new data files, from the table's root, such as ``bronze/2026``; empty: the root. Each part begins
        with a letter or digit, and has letters, digits and ``._=@+-``. Two features can't name different folders.
    """

    feature: str
    statistics_columns: tuple[tuple[str, ...], ...] = ()
    materialize_partition_columns: bool = False
    num_records: bool = False
    random_prefix: bool = False
    field_ids: bool = False
    folder: str = ""


class EncodedRows(Struct, frozen=True):
    """Dropped rows as they will lie on disk.

    Parameters
    ----------
    path : str or None
        The file that holds them, from the table's root; None if the descriptors hold them.
    data : bytes
        The file's content; empty without a file.
    descriptors : pyarrow.Array
        `actions.DELETION_VECTOR`, one per row set.
    """

    path: str | None
    data: bytes
    descriptors: pa.Array


class RemoveRows(PublicStruct, frozen=True):
    """Drop rows without rewriting files: ``encode(rows: Sequence[RowSet], prefix: str) -> EncodedRows``.

    ``prefix`` is the random directory that the table's files go into, empty for none. The core writes the bytes, and
    lists the files of lost attempts for deletion.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    encode : function(sequence of RowSet, str) -> EncodedRows
        Called with the rows to drop of each file, and the folder for files of vectors.
    """

    feature: str
    encode: Callable[[Sequence[RowSet], str], EncodedRows]


class ChangeCapture(Struct, frozen=True):
    """Write change rows beside the data, with the given column naming the kind of change.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    change_column : str
        The column that names the kind of change.
    """

    feature: str
    change_column: str


WriteRule = Union[FillColumn, HiddenColumn, RowCheck, FileRequirement, RemoveRows, ChangeCapture]


# --- committing ----------------------------------------------------------------------------


class ActionColumn(Struct, frozen=True):
    """Set a field of every ``add`` or ``remove`` of a commit: one value for each file, in the order of the files.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    action : str
        ``add`` or ``remove``.
    field : str
        The field.
    values : pyarrow.Array or pyarrow.ChunkedArray, **shape (n_files,)**
        A value for each file; null = the field is left out.
    """

    feature: str
    action: str
    field: str
    values: pa.Array | pa.ChunkedArray


class ExtraAction(Struct, frozen=True):
    """Add one action to the commit.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    kind : str
        The kind of action.
    value : dict
        Its fields, as JSON values.
    """

    feature: str
    kind: str
    value: dict[str, Any]


class CommitInfoField(Struct, frozen=True):
    """Set a field of ``commitInfo``; ``first`` requires that commitInfo be the first action.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    name : str
        The field.
    value : object
        A JSON value.
    first : bool
        Whether ``commitInfo`` must be the first action of the commit.
    """

    feature: str
    name: str
    value: Any
    first: bool = False


class RemainingFilesCheck(Struct, frozen=True):
    """Reject the commit while a file that stays in the table lacks a field of ``add``.

    For commits that switch a guarantee on: it costs a pass over that field of every file. Files that the commit removes
    or adds again are not requested.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    field : str
        Empty: no file may stay at all.
    message : str
        The missing part and the remedy; the number of files goes before it.
    """

    feature: str
    field: str
    message: str


class CommitSummary(Struct, frozen=True):
    """The sources of a checksum beside the table: the version's commit, and the checksum before it.

    Parameters
    ----------
    version : int
        The version.
    info : Mapping
        Its ``commitInfo``; empty if the commit was not read.
    previous : Mapping or None
        The checksum of the version before. None if there is none to add to: ``added`` is then every live file.
    added, removed : pa.Table
        The files that the commit adds and removes, with ``size`` (int64, bytes) and ``dvCardinality`` (int64, the rows
        that its deletion vector drops, null = no vector). Their other columns differ and are not for plugins.
    """

    version: int
    info: Mapping[str, Any]
    previous: Mapping[str, Any] | None
    added: pa.Table
    removed: pa.Table


class ChecksumField(Struct, frozen=True):
    """Add a field to the checksum file; ``value`` is what JSON can hold.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    name : str
        The field.
    value : object
        A JSON value.
    """

    feature: str
    name: str
    value: Any


CommitRule = Union[ActionColumn, ExtraAction, CommitInfoField, RemainingFilesCheck]


class FileReference(Struct, frozen=True):
    """Files that an action names beside its own path: vacuum, restore and clone need them.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    column : str
        The column of the file table that names them.
    paths : function(array) -> string array
        Their decoded paths, null for none.
    absolute : function(array) -> bool array
        Which of these do not begin at the table's root.
    relocated : function(array, string array), optional
        The column, with the files that a row names at the absolute URI (percent-encoded) of the second argument; null
        leaves a row as it is. Without it, tables with such files are not cloned.
    """

    feature: str
    column: str
    paths: Callable[[pa.Array], pa.Array]
    absolute: Callable[[pa.Array], pa.Array]
    relocated: Callable[[pa.Array, pa.Array], pa.Array] | None = None
