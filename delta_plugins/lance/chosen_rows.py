"""Rows of chosen fragments, or of chosen positions in them, as changes of rows read them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.api import (
    FILE_NUMBER,
    KNOWN_TYPES,
    ROW_INDEX,
    InternalError,
    PlannedRows,
    Texts,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    arrow_type,
)
from delta_core.kernels.arrow_buffers import number_array
from delta_plugins.lance.external_blobs import Reference, encode_reference
from delta_plugins.lance.projection import Columns
from delta_plugins.lance.scan import FragmentReader, LanceScan
from delta_plugins.lance.schema import LanceField, blob_kind, walk_fields, walk_paths
from delta_plugins.lance.version_files import VersionFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Expression, Path
    from delta_core.kernels.row_set import RowSet
    from delta_plugins.lance.dataset_version import DatasetVersion

__all__ = ["UnitRows"]

#: Deleted rows are loaded for this many fragments at a time.
_AT_ONCE = 256


class _CarriedBlobs(VersionFiles):
    """A version whose rows are written again: external blobs stay external.

    Attributes
    ----------
    used : Collection of int
        The ids of columns that new values are computed of, which a reference is no value for.
    """

    used: Collection[int] = ()

    def carried_blob(self, reference: Reference, field: int, path: str, column: str) -> bytes | None:
        """Return a reference in place of the bytes.

        Raises
        ------
        UnsupportedFeatureError
            If a value is computed of the bytes.
        """
        if field not in self.used:
            return encode_reference(reference)
        raise UnsupportedFeatureError(
            f"Data file {path!r} has an external blob of column {column!r} in {reference.uri!r}, and a new value is "
            "computed of it: external blobs stay as they are. Nothing was changed. Leave these rows or the column out.",
            feature="values of external blobs",
            path=path,
            column=column,
        )


class ChosenScan(LanceScan):
    """A scan of some fragments.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    columns : sequence of str or path, optional
        As of `LanceScan`.
    predicate : Expression, optional
        As of `LanceScan`.
    metadata : sequence of str
        As of `LanceScan`.
    chosen : Mapping of int to (RowSet or None)
        The fragments by index, in the order in which they are read, and which of their live rows; None for all.
    batch_bytes : int, optional
        About the most bytes of a batch, and half of those of batches that wait.
    **options : object
        Other arguments of `LanceScan`.
    """

    def __init__(
        self,
        dataset: VersionFiles,
        columns: Columns,
        predicate: Any,
        metadata: Sequence[str],
        chosen: Mapping[int, RowSet | None],
        batch_bytes: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(dataset, columns, predicate, metadata=metadata, **options)
        self._chosen = chosen
        self._batch_bytes = batch_bytes

    def _fragments(self) -> Iterator[int]:
        listed = self._may_pass(list(self._chosen))
        for start in range(0, len(listed), _AT_ONCE):
            some = listed[start : start + _AT_ONCE]
            self._dataset.deleted_rows([i for i in some if self._chosen[i] is None])
            yield from some

    def _live(self, reader: FragmentReader, fragment: int) -> NDArray[np.int64] | None:
        rows = self._chosen[fragment]
        return reader.live_positions() if rows is None else rows.positions()

    def _together(self, fragments: Sequence[int]) -> list[pa.RecordBatch] | None:
        if any(self._chosen[i] is not None for i in fragments):
            return None  # those are read whole
        return super()._together(fragments)

    def _left(self, rows: FragmentReader, fragment: int) -> tuple[NDArray[np.int64] | None, bool]:
        found, is_tested = super()._left(rows, fragment)
        chosen = self._chosen[fragment]
        if chosen is not None and found is not None and len(found):
            found = found[chosen.mask(rows.num_rows())[found]]
        return found, is_tested

    def count(self) -> int:
        return sum(b.num_rows for b in self.read_batches())


class UnitRows(PlannedRows):
    """Rows of units, which are the fragments of a table of units, in the types that expressions are evaluated on.

    Parameters
    ----------
    dataset : LanceDataset
        The version.
    units : pyarrow.Table
        With ``fragment``, the index of each one, and `FILE_NUMBER` if that is requested.
    columns : sequence of str or path
        Columns at the top of the schema.
    metadata : sequence of str
        `FILE_NUMBER`, `ROW_INDEX` and metadata columns of scans, in this order after the columns.
    predicate : Expression, optional
        Only rows for which it is true.
    rows : sequence of RowSet, optional
        Which rows of each unit; units without any are not read.
    is_plain : bool
        False for rows that are only moved: then they have the types of the dataset.
    batch_bytes : int, optional
        As of `ChosenScan`.
    carries : bool
        Whether the rows are written again: their external blobs are references then, not bytes.
    used : Collection of path
        Columns that new values of such rows are computed of.
    """

    def __init__(
        self,
        dataset: DatasetVersion,
        units: pa.Table,
        columns: Columns,
        metadata: Sequence[str] = (),
        predicate: Any = None,
        rows: Sequence[RowSet] | None = None,
        is_plain: bool = True,
        batch_bytes: int | None = None,
        carries: bool = False,
        used: Collection[Path] = (),
    ) -> None:
        indices = units.column("fragment").to_numpy()
        if rows is None:
            chosen: dict[int, RowSet | None] = dict.fromkeys(indices.tolist())
        else:
            chosen = {int(i): r for i, r in zip(indices, rows, strict=True) if r}
        own = [m for m in metadata if m not in (FILE_NUMBER, ROW_INDEX)]
        needed = [*own, *(["_rowaddr"] if len(own) < len(metadata) and "_rowaddr" not in own else [])]
        self._dataset = dataset
        files = dataset.files
        if carries and any(blob_kind(f) == 2 for f in walk_fields(dataset.manifest.fields)):
            files = _CarriedBlobs(files.engine, files.uri, files.manifest, files.branch, files.opening)
            files.used = _used_ids(dataset.manifest.fields, used)
        self._scan = ChosenScan(files, columns, predicate, needed, chosen, batch_bytes, blobs="bytes")
        self._metadata = tuple(metadata)
        storage = self._scan.storage_schema
        self._num_columns = len(storage) - len(needed)
        fields = [storage.field(i) for i in range(self._num_columns)]
        if is_plain:
            types = {f.name: f.type for f in dataset.schema.members}
            fields = [f.with_type(arrow_type(types[f.name], KNOWN_TYPES)) for f in fields]
        self._needs = tuple(needed)
        self._schema = pa.schema([*fields, *(pa.field(m, self._type(m)) for m in metadata)])
        if FILE_NUMBER in metadata:
            ids = dataset.manifest.fragments.id[indices]
            order = np.argsort(ids)
            self._ids, self._numbers = ids[order], units.column(FILE_NUMBER).to_numpy()[order]

    @staticmethod
    def _type(name: str) -> pa.DataType:
        return pa.int64() if name in (FILE_NUMBER, ROW_INDEX) else pa.uint64()

    @property
    def schema(self) -> pa.Schema:
        """The columns, then the metadata."""
        return self._schema

    @property
    def predicate(self) -> Expression | None:
        """The condition."""
        return self._scan.predicate

    @property
    def source(self) -> Any:
        """The version that is read."""
        return self._dataset

    def explain(self, run: bool = False) -> Any:
        """Reject: these rows are read by operations alone.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        raise UnsupportedOperationError("Rows of chosen fragments have no report: explain a scan of the dataset.")

    def count(self) -> int:
        """Return how many rows there are."""
        return self._scan.count()

    def read_batches(self, texts: Texts = "plain", *, is_collected: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the rows, unit after unit."""
        for batch in self._scan.read_batches():
            columns = [_stored(batch.column(i), self._schema.field(i).type) for i in range(self._num_columns)]
            hidden = {n: batch.column(self._num_columns + i) for i, n in enumerate(self._needs)}
            columns += [self._numbered(m, hidden) for m in self._metadata]
            if not columns:
                yield batch
                continue
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _numbered(self, name: str, hidden: Mapping[str, pa.Array]) -> pa.Array:
        if name in hidden:
            return hidden[name]
        addresses = hidden["_rowaddr"].to_numpy()
        if name == ROW_INDEX:
            return number_array((addresses & np.uint64(0xFFFFFFFF)).astype(np.int64))
        fragments = (addresses >> np.uint64(32)).astype(np.int64)
        at = np.searchsorted(self._ids, fragments)
        if not np.array_equal(self._ids[at], fragments):
            raise InternalError("A row came of a fragment that was not requested.")
        return number_array(self._numbers[at])


def _used_ids(fields: Sequence[LanceField], used: Collection[Path]) -> set[int]:
    """Return the ids of the fields that some paths lead to, through or into."""
    found = set()
    for path, field in walk_paths(fields):
        if any(path[: len(u)] == u or u[: len(path)] == path for u in map(tuple, used)):
            found.add(field.id)
    return found


def _stored(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array if array.type.equals(wanted) else array.cast(wanted)
