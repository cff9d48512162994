"""Scans with pylance's names: columns, computed columns, order and limits of the rows of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from delta_core.api import Column, DeltaError, Expression, InvalidArgumentError, Leaf, Literal, bind_typed, leaves
from delta_core.kernels.arrow_buffers import one_array
from delta_plugins.lance.blobs import Blobs
from delta_plugins.lance.chosen_rows import ChosenScan
from delta_plugins.lance.compat.rejections import NotOfferedError, OfferedNames, raise_translated, reject, translated
from delta_plugins.lance.compat.sql import condition, value
from delta_plugins.lance.dataset import LanceDataset as Dataset
from delta_plugins.lance.projection import METADATA, find_path
from delta_plugins.lance.scan import BATCH_ROWS

__all__ = ["ColumnOrdering", "LanceScanner", "make_scanner"]

_BLOBS: Mapping[str, Blobs] = {"all_binary": "bytes", "blobs_descriptions": "descriptor"}


class ColumnOrdering(Struct, frozen=True):
    """The order of rows by a column.

    Parameters
    ----------
    column_name : str
        The column.
    ascending : bool
        Whether the least value comes first.
    nulls_first : bool
        Whether nulls come before values.
    """

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


class _Output(Struct, frozen=True):
    """One column of the result: a column of the dataset, a field of a struct, or an expression."""

    name: str
    path: tuple[str, ...] | None = None
    expression: Any = None


class LanceScanner(OfferedNames):
    """A scan; `LanceDataset.scanner` makes it.

    Parameters
    ----------
    dataset : delta_plugins.lance.dataset.LanceDataset
        The version.
    columns : list of str or dict of str to str, optional
        Names, or SQL by name.
    filter : str or pyarrow expression, optional
        Which rows.
    limit, offset : int, optional
        The most rows, and how many rows come before them.
    batch_size : int, optional
        The most rows of a batch.
    strict_batch_size : bool, optional
        Whether all batches but the last one have that size.
    fragments : list of int, optional
        The ids of the fragments that are read.
    metadata : sequence of str
        Metadata columns after all others.
    use_scalar_index : bool
        Whether indices are used.
    blob_handling : str, optional
        ``all_binary`` or ``blobs_descriptions``.
    order_by : list of (str or ColumnOrdering), optional
        The order of the rows; they are sorted in memory.
    """

    def __init__(
        self,
        dataset: Dataset,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: Any = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        strict_batch_size: bool = False,
        fragments: Sequence[int] | None = None,
        metadata: Sequence[str] = (),
        use_scalar_index: bool = True,
        blob_handling: str | None = None,
        order_by: Sequence[Any] | None = None,
    ) -> None:
        for name, number, least in (("limit", limit, 0), ("offset", offset, 0), ("batch_size", batch_size, 1)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < least):
                raise InvalidArgumentError(f"Found {name} {number!r}, expected a number from {least} on.")
        self._dataset = dataset
        self._outputs = _outputs(dataset, columns, metadata)
        self._limit, self._offset = limit, offset or 0
        self._batch_size, self._is_strict = batch_size, strict_batch_size
        self._order = _ordering(dataset, order_by)
        self._filter = filter
        self._scan = self._planned(fragments, use_scalar_index, _blobs(blob_handling))
        self._compiled = {o.name: self._compile(o) for o in self._outputs if o.expression is not None}
        self._empty = pa.Table.from_batches([], self._scan.schema)

    def _planned(self, fragments: Sequence[int] | None, use_indices: bool, blobs: Blobs) -> Any:
        names: dict[str, None] = {}
        for output in self._outputs:
            used = (
                [output.path] if output.path else [x.path for x in leaves(output.expression) if isinstance(x, Column)]
            )
            names |= {p[0]: None for p in used if p[0] not in METADATA}
        names |= {o.column_name: None for o in self._order}
        metadata = [o.name for o in self._outputs if o.path and o.path[0] in METADATA]
        most = None if self._limit is None or self._order else self._limit + self._offset
        options: dict[str, Any] = {
            "limit": most,
            "batch_rows": self._batch_size or BATCH_ROWS,
            "blobs": blobs,
            "use_indices": use_indices,
        }
        files = self._dataset.files
        tops = [f.name for f in files.manifest.fields if f.name in names]
        where = condition(self._filter, self._dataset.schema())
        if fragments is None:
            return self._dataset.scan(tops, where, metadata=metadata, **options)
        listed = files.manifest.fragments.id.tolist()
        chosen = {listed.index(f): None for f in fragments}
        return ChosenScan(files, tops, where, metadata, chosen, **options)

    def _compile(self, output: _Output) -> Any:
        types: dict[Leaf, pa.DataType] = {x: _type_at(self._scan.schema, x.path) for x in _columns(output.expression)}
        return self._dataset.engine.evaluator.compile(output.expression, types)

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns of the dataset."""
        return self._dataset.schema()

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self._projected(self._empty).schema

    @translated
    def to_table(self) -> pa.Table:
        """Return the rows."""
        if not self._outputs:
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.nulls(self._counted(), pa.struct([])))])
        found = [self._projected(pa.Table.from_batches([b])) for b in self._rows()]
        return pa.concat_tables(found) if found else self._projected(self._empty)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        yield from self.to_reader()

    scan_batches = to_batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        batches: Iterator[pa.RecordBatch] = (
            b for t in self._rows() for b in self._projected(pa.Table.from_batches([t])).to_batches()
        )
        if self._is_strict:
            batches = _of_size(batches, self._batch_size or BATCH_ROWS)
        return pa.RecordBatchReader.from_batches(self.projected_schema, batches)

    def to_pandas(self, *, blob_mode: str = "lazy", **kwargs: Any) -> Any:
        """Return the rows as a data frame; other arguments are those of ``pyarrow.Table.to_pandas``."""
        reject("LanceScanner.to_pandas", {"blob_mode": blob_mode}, {"blob_mode": "lazy"})
        return self.to_table().to_pandas(**kwargs)

    @translated
    def count_rows(self) -> int:
        """Return how many rows pass.

        Raises
        ------
        CompatError, InvalidArgumentError
            If a limit is set, as in pylance.
        """
        if self._limit is not None or self._offset:
            raise InvalidArgumentError("The rows of a scan with a limit or an offset are not counted. Leave them out.")
        return int(self._scan.count())

    def of_rows(self, rows: Sequence[int]) -> pa.Table:
        """Return the columns of the scan for chosen rows of the dataset, in their order; computed ones too."""
        names = [f.name for f in self._dataset.manifest.fields if f.name in self._scan.schema.names]
        metadata = [n for n in self._scan.schema.names if n in METADATA]
        return self._projected(self._dataset.take(rows, names, metadata=metadata))

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        return self.to_table().slice(0, num_rows)

    def explain_plan(self, verbose: bool = False) -> str:
        """Return how the rows are read, as our own scans report it."""
        return str(self._scan.explain(run=verbose))

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Return how the rows are read, and what that took."""
        reject("LanceScanner.analyze_plan", {"count_rows": count_rows or None})
        return str(self._scan.explain(run=True))

    def _counted(self) -> int:
        found = int(self._scan.count())
        found = max(found - self._offset, 0)
        return found if self._limit is None else min(found, self._limit)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        if self._order:
            table = self._scan.to_table()
            keys = []
            for number, order in enumerate(self._order):
                nulls = pc.is_null(table.column(order.column_name))
                keys.append((f"nulls of {number}", "descending" if order.nulls_first else "ascending"))
                keys.append((order.column_name, "ascending" if order.ascending else "descending"))
                table = table.append_column(keys[-2][0], nulls)
            table = table.take(pc.sort_indices(table, keys))
            yield from table.slice(self._offset, self._limit).combine_chunks().to_batches(self._batch_size)
            return
        skipped = self._offset
        for batch in _translated_each(self._scan.read_batches()):
            found = batch.slice(skipped)
            skipped = max(skipped - batch.num_rows, 0)
            if found.num_rows:
                yield found

    def _projected(self, table: pa.Table) -> pa.Table:
        arrays, fields = [], []
        for output in self._outputs:
            if output.path is None:
                compiled = self._compiled[output.name]
                columns = {n: one_array(table.column(n)) for n in table.column_names}
                array = compiled([_at(columns, x.path) for x in compiled.leaves], table.num_rows)
                if isinstance(array, pa.Scalar):
                    array = pa.repeat(array, table.num_rows)
                field = pa.field(output.name, array.type)
            else:
                array = _at({output.path[0]: one_array(table.column(output.path[0]))}, output.path)
                field = table.schema.field(output.path[0]) if len(output.path) == 1 else None
                field = pa.field(output.name, array.type) if field is None else field.with_name(output.name)
            arrays.append(array)
            fields.append(field)
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=table.schema.metadata))


def _outputs(dataset: Dataset, columns: Any, metadata: Sequence[str]) -> list[_Output]:
    tops = dataset.manifest.fields
    if columns is None:
        found = [_Output(f.name, (f.name,)) for f in tops]
    elif isinstance(columns, Mapping):
        found = [_Output(n, None, _bound(dataset, t)) for n, t in columns.items()]
    elif isinstance(columns, str):
        raise InvalidArgumentError(f"columns is the text {columns!r}, expected a list of names.")
    else:
        found = [_named(dataset, c) for c in columns]
    names = [o.name for o in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(f"Column {name!r} is requested twice.", column=name)
    return [*found, *(_Output(m, (m,)) for m in metadata if m not in names)]


def _named(dataset: Dataset, name: str) -> _Output:
    if name in METADATA:
        return _Output(name, (name,))
    return _Output(name, tuple(f.name for f in find_path(dataset.manifest.fields, name)))


def _bound(dataset: Dataset, text: str) -> Any:
    bound = bind_typed(value(text), dataset.schema, dataset.functions).expression
    if isinstance(bound, Literal) and bound.type is None:
        raise InvalidArgumentError(f"{text!r} has no type. Cast it.")
    return bound


def _blobs(handling: str | None) -> Blobs:
    if handling is not None and handling not in _BLOBS:
        if handling == "all_descriptions":
            raise NotOfferedError(
                "blob_handling='all_descriptions' is not offered: descriptors are of columns of blobs alone.",
                name="blob_handling",
            )
        raise InvalidArgumentError(f"Found blob_handling {handling!r}, expected one of {', '.join(_BLOBS)}.")
    return _BLOBS[handling or "blobs_descriptions"]


def _ordering(dataset: Dataset, order_by: Sequence[Any] | None) -> list[ColumnOrdering]:
    found: list[ColumnOrdering] = []
    for given in order_by or ():
        listed = (given, True, False) if isinstance(given, str) else _parts(given)
        found.append(ColumnOrdering(*listed))
    for order in found:
        [field] = find_path(dataset.manifest.fields, order.column_name)
        if field.logical_type in ("float", "double", "halffloat") and not order.ascending:
            raise NotOfferedError(
                f"order_by of {order.column_name!r}, which is {field.logical_type}, in descending order is not "
                "offered, since NaN may be placed differently: sort the table.",
                name="order_by",
            )
    return found


def _parts(given: Any) -> tuple[str, bool, bool]:
    try:
        return given.column_name, given.ascending, given.nulls_first
    except AttributeError:
        raise InvalidArgumentError(f"Found {given!r} in order_by, expected a name or a ColumnOrdering.") from None


def _translated_each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches; errors are of the classes that scripts catch."""
    try:
        yield from batches
    except DeltaError as e:
        raise_translated(e)


def _of_size(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    kept: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        while rows >= size:
            table = pa.Table.from_batches(kept).combine_chunks()
            yield table.slice(0, size).to_batches()[0]
            kept, rows = table.slice(size).to_batches(), rows - size
    if rows:
        yield pa.Table.from_batches(kept).combine_chunks().to_batches()[0]


def _columns(expression: Expression) -> list[Column]:
    return [x for x in leaves(expression) if isinstance(x, Column)]


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    of: Any = schema.field(path[0]).type
    for name in path[1:]:
        of = of.field(name).type
    return of


def _at(columns: Mapping[str, Any], path: Sequence[str]) -> Any:
    array: Any = columns[path[0]]
    for name in path[1:]:
        array = array.flatten()[array.type.get_field_index(name)]
    return array


def make_scanner(
    dataset: Dataset,
    call: str,
    columns: Any = None,
    filter: Any = None,
    limit: int | None = None,
    offset: int | None = None,
    batch_size: int | None = None,
    fragments: Sequence[int] | None = None,
    *,
    scan_in_order: bool | None = None,
    prefilter: bool | None = None,
    with_row_id: bool | None = None,
    with_row_address: bool | None = None,
    use_scalar_index: bool | None = None,
    blob_handling: str | None = None,
    strict_batch_size: bool | None = None,
    order_by: Sequence[Any] | None = None,
    **others: Any,
) -> LanceScanner:
    """Return a scan for the arguments of one of pylance's calls.

    ``scan_in_order`` and ``prefilter`` may have any value: rows are always in order, and filters come before limits.
    """
    reject(call, {"include_deleted_rows": others.pop("include_deleted_rows", None) or None, **others})
    wanted = [n for n, w in (("_rowid", with_row_id), ("_rowaddr", with_row_address)) if w]
    return LanceScanner(
        dataset,
        columns,
        filter,
        limit=limit,
        offset=offset,
        batch_size=batch_size,
        strict_batch_size=bool(strict_batch_size),
        fragments=fragments,
        metadata=wanted,
        use_scalar_index=use_scalar_index is not False,
        blob_handling=blob_handling,
        order_by=order_by,
    )
