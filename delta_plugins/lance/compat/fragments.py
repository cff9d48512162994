"""Fragments with pylance's names, and operations that commit fragments which were written or changed before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.api import InvalidArgumentError, open_source
from delta_core.kernels.arrow_buffers import values_of
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.compat.rejections import OfferedNames, not_offered, reject, translated
from delta_plugins.lance.compat.scanner import LanceScanner, make_scanner
from delta_plugins.lance.compat.sql import required
from delta_plugins.lance.dataset import LanceDataset as Dataset
from delta_plugins.lance.external_blobs import Targets
from delta_plugins.lance.write.fitting import fit_batches, sorted_columns
from delta_plugins.lance.write.fragments_writer import MAX_BYTES, MAX_ROWS, FragmentsWriter, check_file_version

__all__ = ["FragmentMetadata", "LanceFragment", "LanceOperation", "staged_fragments"]

_BATCH_ROWS = 1 << 16


class FragmentMetadata(Struct, frozen=True):
    """A fragment that was written, or whose rows were deleted, and is not committed yet.

    Parameters
    ----------
    id : int
        Its id; 0 if it has none yet.
    physical_rows : int
        Its rows, deleted ones too.
    num_deletions : int
        Its deleted rows.
    written : NewFragment, optional
        A new fragment.
    version : int
        The version that it is of; 0 = none yet.
    deleted : bytes
        The rows that were deleted since that version, as a bitmap.
    """

    id: int
    physical_rows: int
    num_deletions: int = 0
    written: Any = None
    version: int = 0
    deleted: bytes = b""

    @property
    def num_rows(self) -> int:
        """The rows that are not deleted."""
        return self.physical_rows - self.num_deletions


class LanceFragment(OfferedNames):
    """A fragment of a version.

    Parameters
    ----------
    dataset : LanceDataset
        The version, with our names or pylance's.
    fragment_id : int
        The fragment.
    """

    def __init__(self, dataset: Any, fragment_id: int) -> None:
        self._ours: Dataset = getattr(dataset, "ours", dataset)
        [index] = self._ours.manifest.fragments.find(np.array([fragment_id], np.int64)).tolist()
        if index < 0:
            raise InvalidArgumentError(f"There is no fragment {fragment_id} in version {self._ours.version}.")
        self._index = index
        self._id = fragment_id

    def __repr__(self) -> str:
        return f"LanceFragment(id={self._id}, physical_rows={self.physical_rows})"

    @property
    def fragment_id(self) -> int:
        """The id."""
        return self._id

    @property
    def schema(self) -> pa.Schema:
        """The columns of the dataset."""
        return self._ours.schema()

    @property
    def physical_rows(self) -> int:
        """The rows, deleted ones too."""
        return self._ours.files.physical_rows(self._index)

    @property
    def num_deletions(self) -> int:
        """The deleted rows."""
        [rows] = self._ours.files.deleted_rows([self._index])
        return 0 if rows is None else rows.cardinality

    @property
    def metadata(self) -> FragmentMetadata:
        """The fragment as operations take it."""
        return FragmentMetadata(self._id, self.physical_rows, self.num_deletions, version=self._ours.version)

    @translated
    def scanner(
        self,
        *,
        columns: Any = None,
        batch_size: int | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: str | None = None,
        order_by: Sequence[Any] | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
    ) -> LanceScanner:
        """Return a scan of the fragment; arguments as of `LanceDataset.scanner`."""
        reject("LanceFragment.scanner", {"batch_readahead": batch_readahead}, {"batch_readahead": 16})
        return make_scanner(
            self._ours,
            "LanceFragment.scanner",
            columns,
            filter,
            limit,
            offset,
            batch_size,
            [self._id],
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            blob_handling=blob_handling,
            order_by=order_by,
            use_scalar_index=use_scalar_index,
            strict_batch_size=strict_batch_size,
            io_buffer_size=io_buffer_size,
            late_materialization=late_materialization,
            include_deleted_rows=include_deleted_rows,
            batch_size_bytes=batch_size_bytes,
        )

    def to_table(self, columns: Any = None, filter: Any = None, **arguments: Any) -> pa.Table:
        """Return the rows; other arguments as of `scanner`."""
        found: pa.Table = self.scanner(columns=columns, filter=filter, **arguments).to_table()
        return found

    def to_batches(self, **arguments: Any) -> Iterator[pa.RecordBatch]:
        """Return the rows in batches; arguments as of `scanner`."""
        found: Iterator[pa.RecordBatch] = self.scanner(**arguments).to_batches()
        return found

    def to_pandas(self, columns: Any = None, filter: Any = None, *, blob_mode: str = "lazy", **arguments: Any) -> Any:
        """Return the rows as a data frame; other arguments as of `scanner`."""
        return self.scanner(columns=columns, filter=filter, **arguments).to_pandas(blob_mode=blob_mode)

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        return self.to_table(limit=num_rows)

    @translated
    def count_rows(self, filter: Any = None) -> int:
        """Return how many rows there are, or pass."""
        return int(self.scanner(columns=[], filter=filter).count_rows())

    @translated
    def delete(self, predicate: str) -> FragmentMetadata | None:
        """Return the fragment without the rows for which a predicate is true, to be committed; None if none is left."""
        table = self.scanner(columns=["_rowaddr"], filter=required(predicate)).to_table()
        rows = values_of(table.column("_rowaddr").combine_chunks()).astype(np.int64) & 0xFFFFFFFF
        left = self.metadata
        if len(rows) + left.num_deletions >= left.physical_rows:
            return None
        deleted = RowSet.from_positions(np.sort(rows))
        return FragmentMetadata(
            self._id, left.physical_rows, left.num_deletions + len(rows), None, left.version, deleted.to_roaring(32)
        )


class _Operations(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise not_offered(name, "LanceOperation")


class LanceOperation(metaclass=_Operations):
    """The operations that `LanceDataset.commit` commits."""

    class Append(Struct, frozen=True):
        """Fragments that are added.

        Parameters
        ----------
        fragments : list of FragmentMetadata
            As `staged_fragments` returns them.
        """

        fragments: Iterable[FragmentMetadata]

    class Overwrite(Struct, frozen=True):
        """Columns and fragments in place of all others.

        Parameters
        ----------
        new_schema : pyarrow.Schema
            The columns.
        fragments : list of FragmentMetadata
            As `staged_fragments` returns them.
        initial_bases : None
            Not offered.
        """

        new_schema: pa.Schema
        fragments: Iterable[FragmentMetadata]
        initial_bases: Any = None

    class Delete(Struct, frozen=True):
        """Fragments whose rows were deleted in part, and those that go.

        Parameters
        ----------
        updated_fragments : list of FragmentMetadata
            As `LanceFragment.delete` returns them.
        deleted_fragment_ids : list of int
            Fragments all of whose rows go.
        predicate : str
            Kept in the transaction.
        """

        updated_fragments: Iterable[FragmentMetadata]
        deleted_fragment_ids: Iterable[int]
        predicate: str


def staged_fragments(
    dataset: Dataset, data: Any, schema: pa.Schema | None, limits: Mapping[str, int], mode: str
) -> list[FragmentMetadata]:
    """Write rows as fragments that no version has yet.

    Parameters
    ----------
    dataset : delta_plugins.lance.dataset.LanceDataset
        The version that they are for.
    data : anything with the Arrow PyCapsule interface
        The rows.
    schema : pyarrow.Schema, optional
        The columns, if they replace those of the dataset.
    limits : Mapping of str to int
        ``max_rows`` and ``max_bytes`` of a file.
    mode : "append" or "overwrite"
        Whether the rows have the columns of the dataset, or their own.
    """
    source, base = open_source(data), dataset.manifest
    check_file_version(base)
    fields, metadata = base.fields, base.message["schema_metadata"]
    if mode != "append":
        fields, metadata = lance_fields(source.schema if schema is None else schema, 0), {}
    places = sorted_columns(source.schema.names, fields)
    written = [f for f, p in zip(fields, places, strict=True) if p is not None or mode != "append"]
    given = {"max_rows": MAX_ROWS, "max_bytes": MAX_BYTES, **limits}
    writer = FragmentsWriter(dataset.storage, dataset.files.below, written, base.file_version, metadata, **given)
    try:
        batches = source.to_batches(_BATCH_ROWS) if isinstance(source, pa.Table) else source
        for batch, _ in fit_batches(iter(batches), source.schema, written, Targets(dataset.storage, base.base_paths)):
            writer.write(batch)
        found = writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return [FragmentMetadata(0, f.rows, 0, f) for f in found]
