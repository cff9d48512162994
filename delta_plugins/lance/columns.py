"""Changes of the columns of a dataset: other schemas, and data files with new columns beside those of each fragment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import structs

from delta_core.api import (
    Column,
    EngineError,
    InvalidArgumentError,
    SchemaMismatchError,
    bind_typed,
    leaves,
    open_source,
    parse_sql,
)
from delta_core.kernels.arrow_buffers import number_array, one_array
from delta_core.kernels.nested import struct_of
from delta_plugins.lance.arrow_fields import check_column_name, lance_fields
from delta_plugins.lance.changes import units_of
from delta_plugins.lance.chosen_rows import UnitRows
from delta_plugins.lance.commit.draft import Draft, fragment_message
from delta_plugins.lance.commit.operations import Merge, Project
from delta_plugins.lance.external_blobs import Targets
from delta_plugins.lance.projection import find_path
from delta_plugins.lance.schema import LanceField, arrow_field, blob_kind, is_packed
from delta_plugins.lance.write.fitting import fit_batches
from delta_plugins.lance.write.fragments_writer import NewFile, check_file_version

if TYPE_CHECKING:
    from delta_plugins.lance.dataset_version import DatasetVersion
    from delta_plugins.lance.wire import Message

__all__ = ["NewColumns", "added_columns", "cast_column", "dropped_columns", "renamed_column"]

#: Rows of a new data file that are collected to be written at once.
_BATCH_ROWS = 1 << 16


# --- schemas -------------------------------------------------------------------------------


def _edited(
    fields: Sequence[LanceField], number: int, edit: Callable[[LanceField], LanceField | None]
) -> tuple[LanceField, ...]:
    """Return fields with another one, or none, in the place of that of an id."""
    found = []
    for field in fields:
        changed = edit(field) if field.id == number else field
        if changed is not None and changed.children and field.id != number:
            changed = structs.replace(changed, children=_edited(changed.children, number, edit))
        if changed is not None:
            found.append(changed)
    return tuple(found)


def _changeable_path(fields: Sequence[LanceField], name: str) -> list[LanceField]:
    """Return the fields from the top to the one of a name, if each of them has columns of its own.

    Raises
    ------
    ColumnNotFoundError
        If there is no such column.
    InvalidArgumentError
        For a field of a packed struct or of a blob.
    """
    path = find_path(fields, name)
    above = next((f for f in path[:-1] if is_packed(f) or blob_kind(f)), None)
    if above is not None:
        raise InvalidArgumentError(
            f"{name!r} lies in one column of the files with the other fields of {above.name!r}; change that one.",
            column=name,
        )
    return path


def dropped_columns(dataset: DatasetVersion, names: Sequence[str]) -> Project:
    """Return the operation that drops columns, or fields of structs by dotted names.

    Raises
    ------
    ColumnNotFoundError
        If there is no such column.
    InvalidArgumentError
        If no column, or no field of a struct, would be left.
    """
    if isinstance(names, str) or not names:
        raise InvalidArgumentError(f"Found columns {names!r}, expected a list of one name or more.")
    fields = dataset.manifest.fields
    for name in names:
        path = _changeable_path(fields, name)
        siblings = path[-2].children if len(path) > 1 else fields
        if len(siblings) == 1:
            what = f"struct {path[-2].name!r}" if len(path) > 1 else "dataset"
            raise InvalidArgumentError(f"Without {name!r} the {what} would have no field left.", column=name)
        fields = _edited(fields, path[-1].id, lambda _: None)
    return Project(fields)


def renamed_column(dataset: DatasetVersion, name: str, new_name: str) -> Project:
    """Return the operation that renames a column, or a field of a struct by its dotted name.

    Raises
    ------
    ColumnNotFoundError
        If there is no such column.
    InvalidArgumentError
        For a name that is empty, or that another column has.
    SchemaError
        For a column with a dot in its name.
    """
    fields = dataset.manifest.fields
    path = _changeable_path(fields, name)
    if len(path) == 1 and isinstance(new_name, str):
        check_column_name(new_name)
    siblings = path[-2].children if len(path) > 1 else fields
    _check_new(new_name, [f for f in siblings if f.id != path[-1].id])
    return Project(_edited(fields, path[-1].id, lambda f: structs.replace(f, name=new_name)))


def _check_new(name: Any, others: Sequence[LanceField]) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"Found the name {name!r} for a column, expected a text that is not empty.")
    if any(f.name == name for f in others):
        raise InvalidArgumentError(f"There is a column {name!r} already. Choose another name.", column=name)


# --- new data files ------------------------------------------------------------------------


class NewColumns:
    """An operation that adds data files, and the paths of these.

    Parameters
    ----------
    operation : Merge
        The operation that is committed.
    paths : list of str
        The files, as the storage takes them.
    """

    def __init__(self, operation: Merge, paths: list[str]) -> None:
        self.operation = operation
        self.paths = paths


def added_columns(dataset: DatasetVersion, columns: Any) -> NewColumns:
    """Return the operation that adds columns; their data files, if they need any, are written.

    Parameters
    ----------
    dataset : LanceDataset
        The latest version.
    columns : Mapping of str to str, pyarrow.Schema, pyarrow.Field, or rows
        SQL by new column; columns of nulls; or rows as of `open_source`, one for each row of the dataset in the order
        of a scan.

    Raises
    ------
    InvalidArgumentError
        For a column that is there already, and arguments of other types.
    ExpressionError, ColumnNotFoundError
        If an expression does not fit the dataset.
    SchemaMismatchError
        If there are more rows, or fewer, than the dataset has.
    """
    manifest = dataset.manifest
    first = Draft(manifest).next_field()
    if isinstance(columns, pa.Field):
        columns = pa.schema([columns])
    if isinstance(columns, pa.Schema):
        if required := [f.name for f in columns if not f.nullable]:
            raise InvalidArgumentError(
                f"Column {required[0]!r} is not nullable, but would be null in the rows that are there. Make it "
                "nullable, or pass its values.",
                column=required[0],
            )
        fields = _new_fields(dataset, columns, first)
        return NewColumns(Merge(manifest, (*manifest.fields, *fields), {}), [])
    check_file_version(manifest)
    rows = _computed(dataset, columns) if isinstance(columns, Mapping) else _stream(open_source(columns))
    fields = _new_fields(dataset, rows.schema, first)
    files, paths = _write_beside(dataset, fields, rows)
    return NewColumns(Merge(manifest, (*manifest.fields, *fields), files), paths)


def _stream(rows: pa.Table | pa.RecordBatchReader) -> pa.RecordBatchReader:
    return rows.to_reader(_BATCH_ROWS) if isinstance(rows, pa.Table) else rows


def _new_fields(dataset: DatasetVersion, schema: pa.Schema, first: int) -> tuple[LanceField, ...]:
    if not len(schema):
        raise InvalidArgumentError("Found no column to add, expected at least one.")
    for name in schema.names:
        _check_new(name, dataset.manifest.fields)
    # earlier rows, and deleted ones, have no value
    return lance_fields(pa.schema([f.with_nullable(True) for f in schema]), first)


def _computed(dataset: DatasetVersion, columns: Mapping[str, Any]) -> pa.RecordBatchReader:
    schema = dataset.schema
    values = []
    for name, text in columns.items():
        given = parse_sql(text, "name") if isinstance(text, str) else text
        values.append((name, bind_typed(given, schema, dataset.functions).expression))
    relations = dataset.engine.relations
    if relations is None:
        raise InvalidArgumentError("The engine computes no columns. Open the dataset with the engine 'arrow'.")
    used = dict.fromkeys(x.path[0] for _, e in values for x in leaves(e) if isinstance(x, Column))
    rows = UnitRows(dataset, units_of(dataset), list(used))
    return relations.stream(relations.select(relations.scan(rows), values, dataset.functions))


def cast_column(dataset: DatasetVersion, name: str, wanted: pa.DataType) -> NewColumns:
    """Return the operation that casts a column, or a field of a struct, to another type; its data files are written.

    Raises
    ------
    ColumnNotFoundError
        If there is no such column.
    InvalidArgumentError
        For a column with fields of its own, or of blobs.
    SchemaMismatchError
        If a value does not fit the type.
    """
    manifest = dataset.manifest
    path = _changeable_path(manifest.fields, name)
    old = path[-1]
    if old.children or blob_kind(old) or is_packed(old):
        raise InvalidArgumentError(f"Column {name!r} is {old.logical_type}; only columns without fields are cast.")
    check_file_version(manifest)
    arrow = pa.field(old.name, wanted, old.nullable)
    [made] = lance_fields(pa.schema([arrow]), Draft(manifest).next_field())
    if made.children:
        raise InvalidArgumentError(f"Found the type {wanted} for column {name!r}, expected one without fields.")
    new = structs.replace(made, parent_id=old.parent_id, metadata={**old.metadata, **made.metadata})
    fields = _edited(manifest.fields, old.id, lambda _: new)
    pruned = new
    for above in reversed(path[:-1]):
        pruned = structs.replace(above, children=(pruned,))
    rows = UnitRows(dataset, units_of(dataset), [tuple(f.name for f in path)], is_plain=False)
    schema = pa.schema([arrow_field(pruned)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows.batches():
            found = _cast(batch.column(0), [f.name for f in path], schema.field(0).type)
            yield pa.RecordBatch.from_arrays([found], schema=schema)

    files, paths = _write_beside(dataset, (pruned,), pa.RecordBatchReader.from_batches(schema, batches()))
    return NewColumns(Merge(manifest, fields, files), paths)


def _cast(array: Any, path: Sequence[str], wanted: Any) -> pa.Array:
    """Return a column in another type; of a struct, it has one field on each level."""
    if len(path) > 1:
        child = _cast(array.field(0), path[1:], wanted.field(0).type)
        return struct_of([wanted.field(0)], [child], array)
    try:
        return array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise SchemaMismatchError(
            f"Column {path[0]!r} can't be cast from {array.type} to {wanted}: {e}. Correct the values, or choose "
            "another type.",
            column=path[0],
        ) from e


def _write_beside(
    dataset: DatasetVersion, fields: Sequence[LanceField], rows: pa.RecordBatchReader
) -> tuple[dict[int, Sequence[Message]], list[str]]:
    """Write columns of all live rows to one new data file for each fragment."""
    manifest, files = dataset.manifest, dataset.files
    source = _Rows(fit_batches(iter(rows), rows.schema, fields, Targets(dataset.storage, manifest.base_paths)))
    found: dict[int, Sequence[Message]] = {}
    paths: list[str] = []
    file: NewFile | None = None
    try:
        for index, number in enumerate(manifest.fragments.id.tolist()):
            num_rows = files.physical_rows(index)
            deleted = files.deleted_rows([index])[0]
            live = None if deleted is None else np.flatnonzero(~deleted.mask(num_rows))
            file = NewFile(
                dataset.storage, files.below, fields, manifest.file_version, manifest.message["schema_metadata"], paths
            )
            for batch in _spread(source, live, num_rows):
                file.write(batch)
            message = file.finish()
            file = None
            found[number] = [*fragment_message(manifest, index)["files"], message]
        source.check_end(dataset)
    except BaseException:
        if file is not None:
            file.abandon()
        with suppress(EngineError):
            dataset.storage.delete(paths)
        raise
    return found, paths


class _Rows:
    """Rows of a stream, a given number at a time."""

    def __init__(self, batches: Iterator[tuple[pa.RecordBatch, Any]]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None
        self.taken = 0

    def take(self, most: int) -> pa.RecordBatch:
        """Return at least one row and at most a given number."""
        while self._rest is None or not self._rest.num_rows:
            found = next(self._batches, None)
            if found is None:
                raise SchemaMismatchError(
                    f"The new columns have {self.taken} rows, fewer than the dataset. Pass one row for each row of a "
                    "scan, in its order.",
                    rows=self.taken,
                )
            self._rest = found[0]
        batch, self._rest = self._rest.slice(0, most), self._rest.slice(most)
        self.taken += batch.num_rows
        return batch

    def check_end(self, dataset: DatasetVersion) -> None:
        """Check that no row is left."""
        is_left = self._rest is not None and self._rest.num_rows
        if is_left or any(b.num_rows for b, _ in self._batches):
            raise SchemaMismatchError(
                f"The new columns have more than {self.taken} rows, which is how many the dataset has. Pass one row "
                "for each row of a scan, in its order.",
                rows=self.taken,
            )


def _spread(source: _Rows, live: Any, num_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a fragment; a deleted one has the values of a row beside it, so that no null is added."""
    if live is None:
        left = num_rows
        while left:
            batch = source.take(left)
            left -= batch.num_rows
            yield batch
        return
    start = at = 0
    while at < len(live):
        batch = source.take(len(live) - at)
        own = live[at : at + batch.num_rows]
        at += batch.num_rows
        stop = num_rows if at == len(live) else int(own[-1]) + 1
        indices = number_array(np.minimum(np.searchsorted(own, np.arange(start, stop)), len(own) - 1))
        yield pa.RecordBatch.from_arrays([one_array(c.take(indices)) for c in batch.columns], schema=batch.schema)
        start = stop
