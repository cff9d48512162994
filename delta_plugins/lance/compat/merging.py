"""Merges with pylance's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from delta_core.api import CommitProperties, InvalidArgumentError, open_source
from delta_plugins.lance.compat.rejections import OfferedNames, reject, translated
from delta_plugins.lance.compat.sql import condition
from delta_plugins.lance.projection import find_path
from delta_plugins.lance.schema import BLOB_V2

if TYPE_CHECKING:
    from delta_plugins.lance.dataset import LanceDataset as Dataset

__all__ = ["MergeInsertBuilder"]


def _quoted(name: str) -> str:
    return ".".join(f"`{p.replace('`', '``')}`" for p in name.split("."))


class MergeInsertBuilder(OfferedNames):
    """A merge by equal values of columns, to which clauses are added; nulls equal nothing.

    Parameters
    ----------
    dataset : delta_plugins.lance.dataset.LanceDataset
        The dataset.
    on : str or list of str
        The columns.
    """

    def __init__(self, dataset: Dataset, on: str | Iterable[str] | None) -> None:
        self._dataset = dataset
        self._on = [on] if isinstance(on, str) else list(on or ())
        if not self._on:
            raise InvalidArgumentError("merge_insert needs the columns that rows are matched by. Pass on.")
        for name in self._on:
            find_path(dataset.manifest.fields, name)
        self._matched: tuple[str, Any] | None = None
        self._inserts = False
        self._orphans: tuple[Any] | None = None
        self._retries = 10

    @translated
    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Update the columns of the source in rows that match, if a condition on ``source`` and ``target`` is true."""
        self._matched = "update", condition
        return self

    def when_matched_delete(self) -> Self:
        """Delete rows that match."""
        self._matched = "delete", None
        return self

    def when_not_matched_insert_all(self) -> Self:
        """Insert the rows of the source that match none; columns that they lack are null."""
        self._inserts = True
        return self

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> Self:
        """Delete rows that no row of the source matches, if a condition on them is true."""
        self._orphans = (expr,)
        return self

    def conflict_retries(self, max_retries: int) -> Self:
        """Set how often the merge runs again if another writer changes the same rows."""
        self._retries = max_retries
        return self

    def retry_timeout(self, timeout: Any) -> Self:
        """Not offered."""
        reject("MergeInsertBuilder.retry_timeout", {"retry_timeout": timeout})
        return self

    @translated
    def execute(self, data_obj: Any, *, schema: pa.Schema | None = None) -> dict[str, int]:
        """Merge rows, and return how many were inserted, updated and deleted.

        Raises
        ------
        CompatError, InvalidArgumentError
            There is no clause, or the rows do not fit.
        """
        if not (self._matched or self._inserts or self._orphans):
            raise InvalidArgumentError("The merge has no clause, so it would change nothing. Add one.")
        source = open_source(rows_of(data_obj, schema))
        values = {_quoted(n): f"source.{_quoted(n)}" for n in source.schema.names}
        same = " and ".join(f"target.{_quoted(n)} = source.{_quoted(n)}" for n in self._on)
        merger = self._dataset.merge(source, same, commit_properties=CommitProperties(max_commit_retries=self._retries))
        if self._matched is not None:
            kind, given = self._matched
            if kind == "delete":
                merger.when_matched_delete()
            else:
                merger.when_matched_update(values, condition(given, self._dataset.schema()))
        if self._inserts:
            merger.when_not_matched_insert(values)
        if self._orphans is not None:
            merger.when_not_matched_by_source_delete(condition(self._orphans[0], self._dataset.schema()))
        done = merger.execute()
        return {f"num_{n}_rows": done[f"num_target_rows_{n}"] for n in ("inserted", "updated", "deleted")}


def rows_of(data: Any, schema: pa.Schema | None) -> Any:
    """Return rows as our calls take them: also lists and dicts of Python values, and iterables of batches.

    Raises
    ------
    InvalidArgumentError
        For an iterable of batches without a schema.
    """
    if isinstance(data, dict):
        return pa.table(data, schema=schema)
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return pa.Table.from_pylist(data, schema=schema)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__") or not isinstance(data, Iterable):
        return data
    if type(data).__module__.startswith("pandas"):
        return data
    if schema is None:
        raise InvalidArgumentError("Found an iterable of batches without a schema. Pass schema.")
    return pa.RecordBatchReader.from_batches(schema, iter(data))


def without_uris(data: Any) -> Any:
    """Return rows whose blobs are all bytes, none given by a URI; a stream is checked as it is read.

    Raises
    ------
    InvalidArgumentError
        If one is.
    """
    rows = open_source(data)
    if not any(_takes_uris(f.type) for f in rows.schema):
        return rows
    if isinstance(rows, pa.Table):
        _check_uris(c for column in rows.columns for c in column.chunks)
        return rows
    return pa.RecordBatchReader.from_batches(rows.schema, _checked_batches(rows))


def _checked_batches(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        _check_uris(batch.columns)
        yield batch


def _takes_uris(of: Any) -> bool:
    if isinstance(of, pa.BaseExtensionType):
        return bool(of.extension_name == BLOB_V2)
    return pa.types.is_struct(of) and any(_takes_uris(f.type) for f in of)


def _check_uris(arrays: Iterable[Any]) -> None:
    for array in arrays:
        if isinstance(array, pa.ExtensionArray):
            if _takes_uris(array.type) and array.storage.flatten()[1].null_count < len(array):
                raise InvalidArgumentError(
                    "A blob is given by a URI, which is in no base path. Pass its bytes, or "
                    "allow_external_blob_outside_bases=True."
                )
        elif pa.types.is_struct(array.type):
            _check_uris(array.flatten())
